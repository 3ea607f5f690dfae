"""Drivers of Spark in separate processes, independent of the settings of Spark and Python in this
one.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.costs import charge

ROOT = Path(__file__).resolve().parents[3]
CONF = Path(__file__).with_name("conf")
"""Spark's defaults for small data; the value of ``SPARK_CONF_DIR``."""


def clean_environment() -> dict[str, str]:
    """Return the environment of this process without its settings of Spark and of Python's path.

    Spark listens on 127.0.0.1 there, and has the defaults of `CONF`.
    """
    settings = ("PYTHONPATH", "PYSPARK_", "SPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(CONF)}


def run_driver(
    module: str, given: Mapping[str, object], *, folder: Path, first: Path | None = None
) -> Any:
    """Run ``python -m module JSON`` to its end, with all processes that it starts.

    Args:
        given: The JSON.
        folder: Folder for all other files of the driver and the executors.
        first: A folder that is first in PYTHONPATH, also for workers and executors.

    Returns:
        The JSON in the last line of its output.
    """
    charge("jvm")
    command = [sys.executable, "-m", module, json.dumps(given)]
    path = os.pathsep.join(map(str, [first, ROOT] if first else [ROOT]))
    with subprocess.Popen(
        command,
        cwd=folder,
        env=clean_environment() | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        try:
            printed, _ = driver.communicate()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)  # Java and executors of a failed driver
    assert driver.returncode == 0, printed
    return json.loads(printed.splitlines()[-1])
