"""A driver in another process that runs several queries of the crash suite in one session.

The process is `python -m tests.spark.other_driver MASTER`. It reads a `Counting` as JSON from each
line of its input, and prints `DONE` after each run. It ends when its input ends or a query fails.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from tests.idempotent.databases import database_at
from tests.spark.counting import Counting
from tests.support.costs import charge
from tests.support.spark.pipeline import insert_values
from tests.support.spark.session import start_session

ROOT = Path(__file__).resolve().parents[2]
DONE = "counted"


def cluster_environment() -> dict[str, str]:
    """The variables of drivers that start executors as processes."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),  # each executor runs in its own folder
        "SPARK_LOCAL_IP": "127.0.0.1",  # also for the ports of a cluster's master and worker
    }


class OtherDriver:
    """The parent's interface to the process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, counting: Counting) -> None:
        """Run a query to its end.

        Raises:
            AssertionError: The driver ended; its error output has the reason.
        """
        charge("jvm")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(asdict(counting))}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.strip() == DONE:
                return
        raise AssertionError(f"the driver ended with {self._process.wait()}")


@contextmanager
def other_driver(master: str) -> Iterator[OtherDriver]:
    """Yield a driver that starts its session now; at the end, its JVM and executors have ended."""
    charge("jvm")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.other_driver", master],
        env=cluster_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield OtherDriver(process)
            process.communicate()  # the end of its input
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def main(master: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder), master)
        for line in sys.stdin:
            counting = Counting(**json.loads(line))
            database = database_at(counting.database)
            with closing(database.ledger()) as ledger:
                counting.run(spark, ledger, insert_values(database.placeholder))
            print(DONE, flush=True)
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
