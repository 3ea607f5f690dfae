"""Shared code of `bench/spark`: a session without output, and the CPU time of its processes."""

import os
from pathlib import Path
from typing import Any, NamedTuple, Self

from pyspark.sql import SparkSession

from spark_udfs import configure_spark

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Figures(NamedTuple):
    """Seconds of wall time, and of CPU time of the JVM and of the Python workers."""

    wall: float
    jvm: float
    python: float

    def since(self, begun: Self) -> "Figures":
        return Figures(*(end - start for start, end in zip(begun, self, strict=True)))


def quiet_session(*, kafka: bool = True, **settings: str) -> SparkSession:
    """Return a session with two cores on the loopback interface, and these Spark settings."""
    builder = SparkSession.builder.master("local[2]").config(
        map={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "ERROR",
            **settings,
        }
    )
    return configure_spark(builder, kafka=kafka).getOrCreate()


def jvm_of(spark: SparkSession) -> int:
    """Return the process id of the session's JVM."""
    gateway: Any = spark.sparkContext._gateway
    return int(gateway.proc.pid)


def cpu_seconds(root: int) -> tuple[float, float]:
    """Return CPU times of a process (the JVM) and of all its children (Python workers)."""
    times: dict[int, tuple[int, int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # the process has ended
            continue
        own, reaped = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        times[int(stat.parent.name)] = int(fields[1]), own, own + reaped
    parents, started = {root}, times[root][2] - times[root][1]
    while parents:
        children = {pid for pid, (parent, _, _) in times.items() if parent in parents}
        started += sum(times[pid][2] for pid in children)
        parents = children
    return times[root][1] / TICKS_A_SECOND, started / TICKS_A_SECOND
