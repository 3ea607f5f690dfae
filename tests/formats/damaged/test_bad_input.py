"""Damaged partitions: no reader returns fewer records than Kafka without an error, or changes data.

`make bad-input` reads 2,000 of them.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.formats.damaged import readers
from tests.formats.damaged.campaign import Table, trials
from tests.formats.damaged.damage import KINDS, kind_of
from tests.formats.damaged.judge import verdicts
from tests.formats.damaged.reference import Answers, Kafka
from tests.formats.damaged.results import Result
from tests.formats.damaged.sample import sample

STORED = sample()
CHUNKS = [list(STORED)[start : start + 2] for start in range(0, len(STORED), 2)]


def answers(seed: int, original: Path, scratch: Path) -> Answers:
    return STORED[seed]


def test_the_sample_has_each_kind_of_damage() -> None:
    assert {kind_of(seed) for seed in STORED} == set(KINDS)


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_readers_keep_to_the_rules(seeds: list[int], tmp_path: Path) -> None:
    broken = [
        f"{trial.damage}: {text}"
        for trial in trials(seeds, tmp_path, answers)
        for text in verdicts(trial)
    ]
    assert broken == []


@pytest.mark.jvm
@pytest.mark.campaign
def test_more_seeds_with_a_running_kafka(tmp_path: Path) -> None:
    first = int(os.environ.get("BAD_INPUT_FIRST", "10000"))
    table = Table()
    with Kafka() as kafka:
        broken = []
        for trial in trials(
            range(first, first + 100), tmp_path, lambda _, *paths: kafka.answers(*paths)
        ):
            table.add(trial)
            broken += [f"{trial.damage}: {text}" for text in verdicts(trial)]
    assert broken == [], "\n".join(table.lines())


def stops_at_damage(folder: Path) -> Result:
    return readers.by_log(folder, read_only=True, on_damage="stop")


def loses_the_last_record(folder: Path) -> Result:
    result = readers.by_log(folder, read_only=True)
    return Result(result.rows[:-1], result.error)


def cuts_what_it_does_not_read(folder: Path) -> Result:
    last = max(folder.glob("*.log"), default=None)
    if last is not None:
        last.write_bytes(last.read_bytes()[:-1])
    return Result(readers.by_log(folder, read_only=True).rows)


def cuts_a_record_and_reports_it(folder: Path) -> Result:
    rows = loses_the_last_record(folder).rows
    cuts_what_it_does_not_read(folder)
    return Result(rows, report="the log was cut")


def changes_a_byte(folder: Path) -> Result:
    for log in folder.glob("*.log"):
        data = bytearray(log.read_bytes())
        if data:
            data[0] ^= 1
            log.write_bytes(data)
    return Result(error="refused")


def raises(folder: Path) -> Result:
    return Result(error="crash IndexError: list index out of range")


WRONG: dict[Callable[[Path], Result], str] = {
    stops_at_damage: "fewer records than Kafka",
    loses_the_last_record: "fewer records than Kafka",
    cuts_what_it_does_not_read: "data were cut",
    cuts_a_record_and_reports_it: "data were cut",
    changes_a_byte: "data were changed",
    raises: "crashed",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_the_sample_finds_a_wrong_reader(wrong: Callable[[Path], Result], tmp_path: Path) -> None:
    found = trials(STORED, tmp_path, answers, {"wrong": wrong}, with_brokers=False)
    texts = [text for trial in found for text in verdicts(trial)]
    assert any(WRONG[wrong] in text for text in texts)
