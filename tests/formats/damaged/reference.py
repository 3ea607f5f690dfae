"""Apache Kafka 4.2.1 as a reader: one JVM opens any number of partitions."""

import json
import selectors
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from tests.formats.damaged.results import Result, Rows
from tests.formats.legacy.write import HERE as LEGACY
from tests.support.java import QUICK_TO_START, classpath
from tests.support.patience import PATIENCE_S

PROGRAM: Final = LEGACY / "kafka-4.2.1"


class Answers(NamedTuple):
    """The results of Kafka.

    Attributes:
        clean: After a clean stop: Kafka trusts the files.
        recovered: After any other stop, without recovery points: Kafka recovers every segment.
    """

    clean: Result
    recovered: Result


class Kafka:
    """A JVM that reads partitions as Apache Kafka and its consumer do."""

    def __enter__(self) -> "Kafka":
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            ["java", *QUICK_TO_START, "-Xmx256m", "-cp", classpath(PROGRAM), "Open"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def answers(self, folder: Path, scratch: Path) -> Answers:
        """Read copies of a partition: Kafka changes what it opens."""
        return Answers(*(self._read(folder, scratch, stop) for stop in ("clean", "unclean")))

    def _read(self, folder: Path, scratch: Path, stop: str) -> Result:
        copy = scratch / f"kafka-{stop}" / folder.name
        shutil.copytree(folder, copy)
        self._questions.write(f"{stop} {copy}\n")
        self._questions.flush()
        with selectors.DefaultSelector() as ready:
            ready.register(self._answers, selectors.EVENT_READ)
            if not ready.select(PATIENCE_S):
                self._end()
                self._start()
                return Result(error="hang")
        answer = json.loads(self._answers.readline())
        rows = [(int(offset), str(mark)) for offset, mark in answer["records"]]
        error = answer["error"]
        shutil.rmtree(copy.parent)
        return Result(
            rows, None if error is None else error.replace(f"{copy}/", ""), sizes=answer["sizes"]
        )


Json = dict[str, Any]


def stored(answers: Answers) -> Json:
    """The answers as JSON; what recovery does not change is there once."""
    clean, recovered = map(_as_json, answers)
    if recovered["rows"] == clean["rows"]:
        del recovered["rows"]
    return {"clean": clean, "recovered": recovered}


def loaded(facts: Json) -> Answers:
    """The opposite of `stored`."""
    clean, recovered = facts["clean"], facts["recovered"]
    return Answers(_of_json(clean), _of_json({"rows": clean["rows"], **recovered}))


def _as_json(result: Result) -> Json:
    return {"rows": as_text(result.rows), "error": result.error, "sizes": result.sizes}


def _of_json(facts: Json) -> Result:
    return Result(of_text(facts["rows"]), facts["error"], sizes=facts["sizes"])


def as_text(rows: Iterable[tuple[int, str]]) -> str:
    """Records on one line."""
    return " ".join(f"{offset}:{mark}" for offset, mark in rows)


def of_text(text: str) -> Rows:
    """The opposite of `as_text`."""
    pairs = (word.split(":") for word in text.split())
    return [(int(offset), mark) for offset, mark in pairs]
