"""The records of each partition of the corpus: plans in plain text for `kafka-*/Write.java`.

A plan is a list of steps on one partition directory, each for one release of Kafka. README.md
describes the lines.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

Release = Literal["0.9.0", "0.10.0", "0.10.2", "4.2.1", "0.11", "1.1", "2.8", "3.9", "4.3", "4.4"]
Record = tuple[int, bytes | None, bytes | None]
"""Timestamp, key, value."""
Headers = list[tuple[bytes, bytes | None]]

FIRST_MS: Final = 1_500_000_000_000
SETTINGS: Final = "segment.bytes=1000000 index.interval.bytes=150 segment.index.bytes=1200"
AS_V0: Final = "message.format.version=0.9.0"
CODECS: Final = ("none", "gzip", "snappy", "lz4")


@dataclass
class Plan:
    """The steps of one partition; each method adds lines to the last step."""

    name: str
    steps: list[tuple[Release, list[str]]] = field(default_factory=list)
    _written: int = 0

    def __post_init__(self) -> None:
        self.dice = random.Random(self.name)

    def open(self, release: Release, settings: str = "") -> None:
        """Begin a step; the clock of a release is a day after the first record."""
        self.steps.append((release, []))
        self.clock(FIRST_MS + 86_400_000)
        self._add(f"open DIRECTORY {SETTINGS} {settings}".rstrip())

    def clock(self, now_ms: int) -> None:
        """Set the clock of the writer."""
        self._add(f"clock {now_ms}")

    def append(
        self,
        codec: str,
        magic: int,
        records: list[Record],
        producer: str = "",
        headers: Callable[[Record], Headers] = lambda record: [],
    ) -> None:
        """One request; `producer` is ``ID EPOCH SEQUENCE TRANSACTIONAL`` (format 2)."""
        self._add(f"append {codec} {magic} {len(records)} {producer}".rstrip())
        for record in records:
            timestamp, key, value = record
            words = [_hex(part) for header in headers(record) for part in header]
            self._add(" ".join([str(timestamp), _hex(key), _hex(value), *words]))

    def say(self, *lines: str) -> None:
        """Lines as they are: roll, clean, marker, close."""
        for line in lines:
            self._add(line)

    def _add(self, line: str) -> None:
        self.steps[-1][1].append(line)

    def samples(self, count: int) -> list[Record]:
        """The next records: all kinds of keys and values, some timestamps go back."""
        return [self._sample() for _ in range(count)]

    def _sample(self) -> Record:
        n = self._written
        self._written += 1
        keys = (None, b"", b"key %d" % n, f"ключ {n}".encode())
        values = (b"value %d" % n, None, b"", self.dice.randbytes(n % 40), b"long " * (n % 30))
        back = 25_000 if n % 5 == 4 else 0
        return FIRST_MS + 10_000 * n - back, keys[n % 4], values[n % 5]

    def keyed(self, count: int) -> list[Record]:
        """The next records over twelve keys; every seventh is a tombstone."""
        return [self._keyed() for _ in range(count)]

    def _keyed(self) -> Record:
        n = self._written
        self._written += 1
        key = b"key %d" % self.dice.randrange(12)
        return FIRST_MS + 10_000 * n, key, None if n % 7 == 6 else b"value %d of %s" % (n, key)


def _hex(data: bytes | None) -> str:
    return "null" if data is None else f"x{data.hex()}"


def plans() -> Iterator[Plan]:
    """Every partition of the corpus, in the order in which a table shows them."""
    yield from _one_format(0, "0.9.0")
    yield _old_format_by_newer_release()
    yield from _compacted(0, "0.9.0")
    yield from _one_format(1, "0.10.2")
    yield _without_time_index()
    yield _log_append_time()
    yield from _compacted(1, "0.10.2")
    yield _by_newest()
    yield from _mixed()
    yield _transactions()


def _one_format(magic: int, release: Release) -> Iterator[Plan]:
    for codec in CODECS:
        plan = Plan(f"v{magic}-{codec}")
        plan.open(release)
        for _ in range(3):
            for count in (1, 5, 9, 3, 2, 7):
                plan.append(codec, magic, plan.samples(count))
            plan.say("roll")
        if magic == 1:
            plan.append(codec, magic, [(-1, b"no", b"timestamp"), *plan.samples(2)])
            plan.append(codec, magic, [(-1, None, b"only records without a timestamp")])
        plan.append(codec, magic, plan.samples(4))
        plan.say("close")
        yield plan


def _old_format_by_newer_release() -> Plan:
    plan = Plan("v0-by-0.10.2")
    plan.open("0.10.2", AS_V0)
    for codec in CODECS:
        for count in (6, 1, 5):
            plan.append(codec, 1, plan.samples(count))
            plan.append(codec, 0, plan.samples(2))
        plan.say("roll")
    plan.append("none", 1, plan.samples(2))
    plan.say("close")
    return plan


def _without_time_index() -> Plan:
    plan = Plan("v1-without-time-index")
    plan.open("0.10.0")
    for codec in CODECS:
        for count in (1, 5, 3):
            plan.append(codec, 1, plan.samples(count))
        plan.say("roll")
    plan.append("gzip", 1, plan.samples(3))
    plan.say("close")
    return plan


def _log_append_time() -> Plan:
    plan = Plan("v1-log-append-time")
    plan.open("0.10.2", "message.timestamp.type=LogAppendTime")
    now_ms = FIRST_MS
    for _ in range(2):
        for codec in CODECS:
            plan.clock(now_ms)
            plan.append(codec, 1, plan.samples(6))
            now_ms += 60_000 if codec != "snappy" else -30_000
        plan.say("roll")
    plan.append("gzip", 1, plan.samples(3))
    plan.say("close")
    return plan


def _rounds(plan: Plan, magic: int) -> None:
    for codec in CODECS:
        for count in (1, 8, 4, 5):
            plan.append(codec, magic, plan.keyed(count))
        plan.say("roll")


def _compacted(magic: int, release: Release) -> Iterator[Plan]:
    for name in ("keyed", "cleaned"):
        plan = Plan(f"v{magic}-{name}")
        plan.open(release, "cleanup.policy=compact")
        _rounds(plan, magic)
        if name == "cleaned":
            plan.say("clean")
        plan.append("gzip", magic, plan.keyed(4))
        plan.append("none", magic, plan.keyed(2))
        plan.say("close")
        yield plan


def _by_newest() -> Plan:
    """Formats 0 and 1 by the classes of Kafka 4.2.1, in one segment each."""
    plan = Plan("v0-v1-by-4.2.1")
    for magic in (0, 1):
        plan.open("4.2.1")
        for codec in CODECS:
            plan.append(codec, magic, plan.samples(5))
        plan.say("roll", "close")
    return plan


def _mixed() -> Iterator[Plan]:
    """A partition that was upgraded twice, with a roll at each upgrade and without."""
    for name, end in (
        ("v0-v1-v2-segments", ["roll", "close"]),
        ("v0-v1-v2-one-segment", ["close"]),
    ):
        plan = Plan(name)
        releases: tuple[Release, ...] = ("0.9.0", "0.10.2", "4.2.1")
        for magic, release in enumerate(releases):
            plan.open(release)
            for codec in CODECS:
                plan.append(codec, magic, plan.keyed(4))
                plan.append(codec, magic, plan.samples(3))
            plan.say(*end)
        yield plan


def _transactions() -> Plan:
    """Format 1, then idempotent and transactional batches of format 2, one transaction aborted."""
    plan = Plan("v1-v2-transactions")
    plan.open("0.10.2")
    plan.append("none", 1, plan.keyed(6))
    plan.append("lz4", 1, plan.keyed(6))
    plan.say("close")
    plan.open("4.2.1")
    plan.append("none", 2, plan.keyed(3), "7 0 0 false")
    plan.append("gzip", 2, plan.keyed(3), "7 0 3 false")
    plan.append("none", 2, plan.keyed(3), "8 0 0 true")
    plan.append("lz4", 2, plan.keyed(2), "9 0 0 true")
    plan.say("marker 8 0 ABORT", "roll")
    plan.append("none", 2, plan.keyed(3), "8 0 3 true")
    plan.say("marker 8 0 COMMIT", "marker 9 0 COMMIT")
    plan.append("none", 2, plan.keyed(2))
    plan.say("close")
    return plan
