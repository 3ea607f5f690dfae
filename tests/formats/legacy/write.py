"""Write the partitions of `plans.py` with the releases of Kafka that they name."""

import itertools
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.formats.legacy.plans import Plan, plans
from tests.support.java import QUICK_TO_START, classpath
from tests.support.patience import seconds

HERE = Path(__file__).resolve().parent


def write(data: Path, chosen: Iterable[Plan] | None = None) -> None:
    """Write partitions of the corpus, by default all of them: ``DATA/NAME-0``."""
    carry_out(HERE, data, chosen or plans())


def carry_out(programs: Path, data: Path, chosen: Iterable[Plan]) -> None:
    """Carry out plans with the `Write` of each release, ``PROGRAMS/kafka-RELEASE``.

    One JVM writes the first step of every partition of its release. Only the later steps of
    upgraded partitions need more.
    """
    steps = [(n, plan, step) for plan in chosen for n, step in enumerate(plan.steps)]
    steps.sort(key=lambda entry: entry[0])
    for (_, release), group in itertools.groupby(steps, key=lambda entry: (entry[0], entry[2][0])):
        lines = [line for _, plan, step in group for line in _located(plan, step[1], data)]
        _run(programs / f"kafka-{release}", lines)


def _located(plan: Plan, lines: list[str], data: Path) -> list[str]:
    return [line.replace("DIRECTORY", str(data / f"{plan.name}-0"), 1) for line in lines]


def _run(program: Path, lines: list[str]) -> None:
    done = subprocess.run(
        ["java", *QUICK_TO_START, "-cp", classpath(program), "Write"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=seconds(120),
        check=False,
    )
    assert done.returncode == 0, f"{program.name}: {done.stdout}\n{done.stderr}"
