"""The records of each partition that a release with message format 2 writes.

The lines of a plan are those of `tests.formats.legacy.plans`; a record may have headers.
"""

from collections.abc import Iterator
from typing import Final

from tests.formats.legacy.plans import FIRST_MS, Headers, Plan, Record, Release

RELEASES: Final[tuple[Release, ...]] = ("0.11", "1.1", "2.8", "3.9", "4.3", "4.4")
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
WITHOUT_ZSTD: Final = ("0.11", "1.1")


def plans() -> Iterator[Plan]:
    """Every partition, by release."""
    for release in RELEASES:
        yield _codecs(release)
        yield _cleaned(release)
        yield _transactions(release)


def _codecs(release: Release) -> Plan:
    """A segment for each codec, and a last one with all of them; some records have headers."""
    plan = _opened(release, "codecs")
    codecs = [codec for codec in CODECS if codec != "zstd" or release not in WITHOUT_ZSTD]
    for codec in codecs:
        for count in (1, 6, 3):
            _append(plan, codec, plan.samples(count))
        plan.say("roll")
    for codec in codecs:
        _append(plan, codec, plan.samples(2))
    plan.say("close")
    return plan


def _cleaned(release: Release) -> Plan:
    """Twelve keys with tombstones, compacted; then six more records."""
    plan = _opened(release, "cleaned", "cleanup.policy=compact")
    for codec in ("none", "gzip", "lz4"):
        for count in (1, 8, 5):
            _append(plan, codec, plan.keyed(count))
        plan.say("roll")
    plan.say("clean")
    _append(plan, "gzip", plan.keyed(4))
    _append(plan, "none", plan.keyed(2))
    plan.say("close")
    return plan


def _transactions(release: Release) -> Plan:
    """An idempotent producer and three transactions: one is aborted, one stays open."""
    plan = _opened(release, "transactions")
    _append(plan, "none", plan.keyed(3), "7 0 0 false")
    _append(plan, "gzip", plan.keyed(3), "7 0 3 false")
    _append(plan, "none", plan.keyed(3), "8 0 0 true")
    _append(plan, "lz4", plan.keyed(2), "9 0 0 true")
    plan.say("marker 8 0 ABORT", "roll")
    _append(plan, "none", plan.keyed(3), "8 0 3 true")
    plan.say("marker 8 0 COMMIT", "marker 9 0 COMMIT", "roll")
    _append(plan, "none", plan.keyed(2))
    _append(plan, "snappy", plan.keyed(2), "8 0 6 true")
    plan.say("close")
    return plan


def _opened(release: Release, name: str, settings: str = "") -> Plan:
    plan = Plan(f"kafka-{release}-{name}")
    plan.open(release, settings)
    return plan


def _append(plan: Plan, codec: str, records: list[Record], producer: str = "") -> None:
    """One request; every third record has two headers, the second without a value."""
    plan.append(codec, 2, records, producer, headers=_headers)


def _headers(record: Record) -> Headers:
    n = (record[0] - FIRST_MS) // 10_000
    return [(b"n", b"%d" % n), ("нет".encode(), None)] if n % 3 == 0 else []
