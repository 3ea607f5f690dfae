"""The rules for bad input: they compare results with Kafka's, and files with those before."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from tests.formats.damaged.damage import Damage
from tests.formats.damaged.reference import Answers
from tests.formats.damaged.results import Files, Result

READ_ONLY: Final = ("read-only", "arrow")
"""Readers that change no file."""
LIKE_RECOVERY: Final = ("repair", "broker, unclean")
"""Readers that do what Kafka's recovery does."""

Outcome = Literal["all", "all, reported", "fewer, reported", "FEWER", "CRASH"]


@dataclass(frozen=True)
class Trial:
    """One damaged partition, what Kafka read and what our readers read.

    Attributes:
        damage: The damage.
        before: The files before they were read.
        kafka: Kafka's results.
        results: Those of our readers, by name.
        after: The files afterwards, by reader.
    """

    damage: Damage
    before: Files
    kafka: Answers
    results: dict[str, Result]
    after: dict[str, Files]

    def wanted(self, reader: str) -> list[Result]:
        """Kafka's results whose records the reader has to have."""
        if reader in LIKE_RECOVERY:
            return [self.kafka.recovered]
        return [self.kafka.clean] if reader == "broker, clean" else list(self.kafka)

    def outcome(self, reader: str) -> Outcome:
        """How the reader did."""
        result = self.results[reader]
        if result.has_crashed:
            return "CRASH"
        lacks = any(set(kafka.rows) - set(result.rows) for kafka in self.wanted(reader))
        if result.is_silent:
            return "FEWER" if lacks else "all"
        return "fewer, reported" if lacks else "all, reported"


def verdicts(trial: Trial) -> Iterator[str]:
    """Each broken rule, with its reader."""
    for reader in trial.results:
        for rule in (_crashes, _fewer, _changes):
            for text in rule(trial, reader):
                yield f"{reader}: {text}"


def _crashes(trial: Trial, reader: str) -> Iterator[str]:
    if trial.results[reader].has_crashed:
        yield f"crashed: {trial.results[reader].error}"


def _fewer(trial: Trial, reader: str) -> Iterator[str]:
    if trial.outcome(reader) == "FEWER":
        rows = {row for kafka in trial.wanted(reader) for row in kafka.rows}
        lacking = sorted(offset for offset, _ in rows - set(trial.results[reader].rows))
        yield f"fewer records than Kafka, without an error: {len(lacking)}, {lacking[:8]}"


def _changes(trial: Trial, reader: str) -> Iterator[str]:
    before, after = trial.before, trial.after[reader]
    if reader in READ_ONLY and before != after:
        yield "files were changed"
    for name in before:
        data, left = before[name], after.get(name, b"")
        if not name.endswith(".log") or data == left:
            continue
        if not data.startswith(left):
            yield f"data were changed: {name}"
        recovered = trial.kafka.recovered
        kept = recovered.sizes.get(name, 0) if recovered.error is None else 0
        if len(left) >= kept:
            continue
        # A report excuses the cut of bytes in which Kafka does not find records either, and any cut
        # of `repair`, which shows it first and has `--keep`.
        result = trial.results[reader]
        cut = {offset for offset, _ in set(recovered.rows) - set(result.rows)}
        if result.is_silent or (cut and reader != "repair"):
            text = f"data were cut: {name} to {len(left)} bytes; Kafka keeps {kept}"
            yield f"{text}, and offsets {sorted(cut)[:8]}"
