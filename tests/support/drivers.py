"""Drivers of Spark in processes of their own, which print what they found."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ABOUT_SPARK = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS")
"""What a session of this process, or the user's shell, says of Spark: the driver has its own."""


def run_driver(
    module: str, given: Mapping[str, object], *, folder: Path, first: Path | None = None
) -> Any:
    """Run ``python -m module JSON`` to its end, with all that it started.

    Args:
        given: The JSON.
        folder: Where it and the executors write beside what they are given.
        first: A folder that comes first in PYTHONPATH, for workers and executors, too.

    Returns:
        The JSON of the last line that it printed.
    """
    command = [sys.executable, "-m", module, json.dumps(given)]
    environment = {name: value for name, value in os.environ.items() if name not in ABOUT_SPARK}
    environment |= {
        "PYTHONPATH": os.pathsep.join(map(str, [first, ROOT] if first else [ROOT])),
        "SPARK_LOCAL_IP": "127.0.0.1",  # all ports of a cluster, too
    }
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        try:
            printed, _ = driver.communicate()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)  # Java and executors, where it failed
    assert driver.returncode == 0, printed
    return json.loads(printed.splitlines()[-1])
