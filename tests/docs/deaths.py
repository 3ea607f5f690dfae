"""Run an example again and again, dying elsewhere each time: `-m tests.docs.deaths PROGRAM ADDRESS DIRECTORY COUNT`.

Theory of operation. Counted are the lines of the program and of ``pykafka_core.idempotent`` from the program's
loop on. A first run makes the tables, a second tells which lines two batches come by. Then each of the chosen lines
has its run, which is a fork of this process (it holds no client) and ends by SIGKILL where it comes to the line;
the n-th time counts, so that a line may be met in the second batch. One more run dies when all records of COUNT
are behind it, and the last one, which finds nothing more, ends by itself.

Prints what each death left behind, as JSON.
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

# A run that is to die has records to come; only the last one waits in vain.
IDLE_SECONDS, IDLE_SECONDS_LAST = 100.0, 1.0
LIBRARY = str(Path(pykafka_core.idempotent.__file__).parent)
EFFECTS = ("append", "insert")
"""What the programs call their effect."""


class Line(NamedTuple):
    file: str
    function: str
    number: int


class Point(NamedTuple):
    """A line when it is come by for the ``nth`` time, from 1."""

    line: Line
    nth: int


class Left(NamedTuple):
    """What a run leaves that died in a function.

    It had begun the effect for so many records, was done with so many, and so many payments can be seen.
    """

    function: str
    begun: int
    done: int
    made: int


class Death:
    """SIGKILL at a point; the last words are what the run has come by."""

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
    """SIGKILL at the loop once the position is the last."""

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
    """One program on one directory, whose runs follow each other."""

    def __init__(self, program: str, address: str, directory: Path, count: int) -> None:
        self._program, self._address, self._directory = program, address, directory
        self._count = count
        nodes = ast.walk(ast.parse(Path(program).read_text()))
        loop = next(node.lineno for node in nodes if isinstance(node, ast.While))
        self.loop = Line(program, "main", loop)

    def die(self, point: Point) -> tuple[Left, list[Line]]:
        """What was left, and the lines that were passed."""
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
        """In a child; its wait status."""
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
    """The program's lines each time; the library's once from the effect on, and before it one of each function.

    Those of the library are met in the second batch if it comes by there.
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
    """The payments that are there for anyone to see."""
    text, database = directory / "payments.txt", directory / "payments.db"
    if text.exists():
        return text.read_text().splitlines()
    if not database.exists():
        return []
    with closing(sqlite3.connect(database)) as connection:
        return [value for (value,) in connection.execute("SELECT value FROM payments")]


def position(directory: Path) -> int:
    """How many records the program has behind it, as it would find out after a crash."""
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
