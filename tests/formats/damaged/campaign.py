"""Damaged partitions by seed, read by each reader and by Kafka."""

import faulthandler
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.formats.damaged import readers
from tests.formats.damaged.damage import damaged
from tests.formats.damaged.judge import Trial
from tests.formats.damaged.reference import Answers
from tests.formats.damaged.results import Result, files
from tests.support.patience import PATIENCE_S

Reference = Callable[[int, Path, Path], Answers]
"""Kafka's answers for a seed, its partition and a scratch folder."""
Reader = Callable[[Path], Result]

READERS: Final[dict[str, Reader]] = {
    "read-only": lambda folder: readers.by_log(folder, read_only=True),
    "arrow": readers.by_arrow,
    "library": lambda folder: readers.by_log(folder, read_only=False),
    "repair": readers.by_repair,
}
BROKERS: Final = {"broker, clean": True, "broker, unclean": False}
BROKER_TOPICS: Final = 25
"""Partitions that one broker reads."""


def trials(
    seeds: Iterable[int],
    scratch: Path,
    reference: Reference,
    chosen: Mapping[str, Reader] = READERS,
    *,
    with_brokers: bool = True,
) -> Iterator[Trial]:
    """Damage a partition for each seed, and have it read. A hang ends the process."""
    rest = list(seeds)
    while rest:
        batch, rest = rest[:BROKER_TOPICS], rest[BROKER_TOPICS:]
        faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
        folder = scratch / "batch"
        made = [_trial(seed, folder, reference, chosen) for seed in batch]
        for reader, clean in BROKERS.items() if with_brokers else ():
            _by_broker(made, folder, reader, clean=clean)
        shutil.rmtree(folder)
        faulthandler.cancel_dump_traceback_later()
        yield from made


def _trial(seed: int, folder: Path, reference: Reference, chosen: Mapping[str, Reader]) -> Trial:
    original = folder / "original" / f"damaged{seed}-0"
    damage = damaged(seed, original)
    trial = Trial(damage, files(original), reference(seed, original, folder), {}, {})
    for name, reader in chosen.items():
        copy = Path(shutil.copytree(original, folder / name / original.name))
        trial.results[name] = reader(copy)
        trial.after[name] = files(copy)
    return trial


def _by_broker(made: list[Trial], folder: Path, reader: str, *, clean: bool) -> None:
    topics = {f"damaged{trial.damage.seed}": trial for trial in made}
    copies = {topic: folder / reader / f"{topic}-0" for topic in topics}
    for copy in copies.values():
        shutil.copytree(folder / "original" / copy.name, copy)
    found = readers.by_broker(copies, folder, clean=clean)
    for topic, trial in topics.items():
        trial.results[reader] = found[topic]
        trial.after[reader] = files(copies[topic])


class Table:
    """Outcomes by kind of damage and reader."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._kinds: Counter[str] = Counter()

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        kind = trial.damage.kind
        self._kinds[kind] += 1
        for name, kafka in trial.kafka._asdict().items():
            self._counts[
                kind, f"Kafka, {name}", "no error" if kafka.error is None else "error"
            ] += 1
        for reader in trial.results:
            self._counts[kind, reader, trial.outcome(reader)] += 1

    def lines(self) -> Iterator[str]:
        """The table in Markdown; a cell has counts in the order of the outcomes."""
        columns = {
            **dict.fromkeys(("Kafka, clean", "Kafka, recovered"), ("no error", "error")),
            **dict.fromkeys([*READERS, *BROKERS], OUTCOMES),
        }
        yield f"| damage | cases | {' | '.join(columns)} |"
        yield "|---" * (2 + len(columns)) + "|"
        for kind in [*sorted(self._kinds), TOTAL]:
            yield f"| {kind} | {self._count(kind)} | {self._cells(kind, columns)} |"

    def _count(self, kind: str) -> int:
        return self._kinds.total() if kind == TOTAL else self._kinds[kind]

    def _cells(self, kind: str, columns: Mapping[str, tuple[str, ...]]) -> str:
        kinds = list(self._kinds) if kind == TOTAL else [kind]
        return " | ".join(
            "/".join(str(sum(self._counts[k, reader, name] for k in kinds)) for name in outcomes)
            for reader, outcomes in columns.items()
        )


TOTAL: Final = "all"
OUTCOMES: Final = ("all", "all, reported", "fewer, reported", "FEWER", "CRASH")
