"""Run an example many times and kill each run at another line.

Usage: `-m tests.docs.deaths PROGRAM ADDRESS DIRECTORY COUNT`

Theory of operation. The traced lines are those of the program and of ``pykafka_core.idempotent``
that run after the program has reached its loop. The first run creates the tables. The second run
records the lines that run during two batches. Then there is one run for each chosen line: a fork
of this process, which has no client, is killed by SIGKILL when it reaches the line for the n-th
time. A line can therefore be chosen in the second batch. One more run is killed when all COUNT
records have been processed. The last run finds no more records and ends without a kill.

Prints the state after each kill as JSON.
"""

import ast
import importlib.util
import json
import os
import signal
import sqlite3
import sys
import warnings
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from confluent_kafka import Consumer  # noqa: F401  (loaded once, before the forks)

import pykafka_core.idempotent

# A run that will be killed always gets more records; only the last run must time out.
IDLE_SECONDS, IDLE_SECONDS_LAST = 100.0, 1.0
LIBRARY = str(Path(pykafka_core.idempotent.__file__).parent)
EFFECTS = ("append", "insert")
"""The names of the effect's function in the programs."""


class Line(NamedTuple):
    file: str
    function: str
    number: int


class Point(NamedTuple):
    """A line that runs for the ``nth`` time; the first is 1."""

    line: Line
    nth: int


class Left(NamedTuple):
    """The state after a run that was killed in a function.

    ``begun`` and ``done`` count the records for which the run had started and completed the effect.
    ``made`` counts the new payments that others can see.
    """

    function: str
    begun: int
    done: int
    made: int


class Death:
    """SIGKILL at a point; before it, the counts and the lines so far are written to ``words``."""

    def __init__(self, point: Point, loop: Line, words: Path) -> None:
        self._point, self._loop, self._words = point, loop, words
        self._passed: list[Line] = []
        self._nth = self._begun = self._done = 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        line = Line(frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno)
        if line.file != self._loop.file and not line.file.startswith(LIBRARY):
            return None
        if event == "line":
            self._pass(line)
        elif line.function in EFFECTS:
            records = len(frame.f_locals.get("records", ["one"]))
            self._begun += records * (event == "call")
            self._done += records * (event == "return")
        return self.trace

    def _pass(self, line: Line) -> None:
        if not self._passed and line != self._loop:
            return
        self._passed.append(line)
        self._nth += line == self._point.line
        if self._nth == self._point.nth:
            self._words.write_text(json.dumps([self._begun, self._done, self._passed]))
            os.kill(os.getpid(), signal.SIGKILL)


class End:
    """SIGKILL at the loop, when all ``count`` records have been processed."""

    def __init__(self, loop: Line, directory: Path, count: int) -> None:
        self._loop, self._directory, self._count = loop, directory, count

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        line = Line(frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno)
        if line.file != self._loop.file:
            return None
        if event == "line" and line == self._loop and position(self._directory) == self._count:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.trace


class Trial:
    """The runs of one program in one directory, one after the other."""

    def __init__(self, program: str, address: str, directory: Path, count: int) -> None:
        self._program, self._address, self._directory = program, address, directory
        self._count = count
        nodes = ast.walk(ast.parse(Path(program).read_text()))
        loop = next(node.lineno for node in nodes if isinstance(node, ast.While))
        self.loop = Line(program, "main", loop)

    def die(self, point: Point) -> tuple[Left, list[Line]]:
        """Kill a run at a point; return the state after it and the lines that ran."""
        words, before = self._directory / "words.json", len(made(self._directory))
        status = self._run(Death(point, self.loop, words))
        assert status == signal.SIGKILL, f"not killed at {point}: {status}"
        begun, done, passed = json.loads(words.read_text())
        after = len(made(self._directory))
        left = Left(point.line.function, begun, done, after - before)
        return left, [Line(*line) for line in passed]

    def finish(self) -> None:
        assert self._run(End(self.loop, self._directory, self._count)) == signal.SIGKILL
        assert self._run(None) == 0

    def _run(self, death: Death | End | None) -> int:
        """Run the program in a child process; return its wait status."""
        child = os.fork()
        if child == 0:
            try:
                spec = importlib.util.spec_from_file_location("example", self._program)
                assert spec is not None
                assert spec.loader is not None
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                if death is not None:
                    sys.settrace(death.trace)
                idle_s = IDLE_SECONDS_LAST if death is None else IDLE_SECONDS
                module.main(self._address, self._directory, idle_s)
                os._exit(0)
            finally:
                os._exit(1)
        return os.waitpid(child, 0)[1]


def points(passed: list[Line], loop: Line) -> list[Point]:
    """Choose the points at which runs are killed.

    A line of the program is chosen each time it runs. In the library, before the effect, only the
    first line of each function is chosen; from the effect on, each line is chosen once. The point
    of a line in the library is in the second batch if the line runs there.
    """
    nth: Counter[Line] = Counter()
    batches: defaultdict[int, dict[object, Point]] = defaultdict(dict)
    effect_begun = False
    for line in passed:
        nth[line] += 1
        effect_begun = line != loop and (effect_begun or line.function in EFFECTS)
        name: object = line if effect_begun else line[:2]
        if line.file == loop.file:
            name = line, nth[line]
        batches[nth[loop]].setdefault(name, Point(line, nth[line]))
    chosen: dict[object, Point] = {}
    for found in batches.values():
        chosen |= found
    return list(chosen.values())


def made(directory: Path) -> list[str]:
    """Return the payments that other processes can see."""
    text, database = directory / "payments.txt", directory / "payments.db"
    if text.exists():
        return text.read_text().splitlines()
    if not database.exists():
        return []
    with closing(sqlite3.connect(database)) as connection:
        return [value for (value,) in connection.execute("SELECT value FROM payments")]


def position(directory: Path) -> int:
    """Return the number of processed records, as the program would read it after a crash."""
    text, database = directory / "position.txt", directory / "payments.db"
    if text.exists():
        return int(text.read_text())
    with closing(sqlite3.connect(database)) as connection:
        marks = connection.execute("SELECT next_offset FROM pykafka_marks").fetchall()
    return int(marks[0][0])


def main(program: str, address: str, directory: str, count: str) -> None:
    warnings.simplefilter("error")
    trial = Trial(program, address, Path(directory), int(count))
    two_batches = Point(trial.loop, 3)
    trial.die(two_batches)
    _, passed = trial.die(two_batches)
    left = [trial.die(point)[0] for point in points(passed, trial.loop)]
    trial.finish()
    print(json.dumps(left))


if __name__ == "__main__":
    main(*sys.argv[1:])
