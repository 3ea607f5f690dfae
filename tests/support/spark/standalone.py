"""A standalone cluster of Spark on this machine: a master and two workers, each with one core."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.support.costs import charge
from tests.support.processes.logs import wait_for_line

SPARK = Path(pyspark.__file__).parent
ROOT = Path(__file__).resolve().parents[3]
HOSTS = ("127.0.0.1", "localhost")
"""Two names for one address: Spark only starts the second copy of a task on a host with another
name."""

SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
}
"""Settings for a second copy of each task that does not end soon, if a core is free."""


@contextmanager
def standalone(home: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a cluster; yield the master's address once both workers have registered.

    Args:
        home: Folder for their files.
        environment: The environment of their processes and of the executors. None: the one of this
            process, with our sources.
    """
    charge("jvm")
    environment = {
        **(environment or os.environ | {"PYTHONPATH": str(ROOT)}),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "SPARK_WORKER_DIR": str(home / "work"),
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }

    def start(name: str, *options: str) -> "subprocess.Popen[str]":
        command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *options],
            cwd=home,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        return process

    with ExitStack() as stack:
        master = start("master.Master", "--host", "127.0.0.1", "--port", "0")
        address = wait_for_line(
            master, r"Starting Spark master at (spark://\S+)", "the Spark master"
        )[1]
        for host in HOSTS:
            options = ("--host", host, "--cores", "1", "--memory", "1g", address)
            worker = start("worker.Worker", *options)
            wait_for_line(worker, "Successfully registered with master", f"Spark worker {host}")
        yield address
