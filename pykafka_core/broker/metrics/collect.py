"""What a broker's metrics are made of: its counters, its partitions and its groups, each read once.

Nothing here runs where records do. Counters are one snapshot. Sizes and groups come from the control thread, a thousand
at a time between clients' requests; offsets are asked on the caller's thread, of the partitions that have a log. The
first question after a start opens that log, in about a millisecond and without keeping a descriptor.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.summary import GroupSummary
from pykafka_core.errors import KafkaError, LocalError
from pykafka_core.metadata.image.image import MetadataImage

from .exposition import Family, Sample, lines
from .questions import Ask, ask_sizes, ask_summaries

if TYPE_CHECKING:
    from pykafka_core._core import Core, LogOffsets

NS_PER_S = 10**9
LEVELS = frozenset(
    {
        "answers_held_bytes",
        "connections_muted",
        "connections_open",
        "events_waiting",
        "input_held_bytes",
        "requests_parked",
        "requests_parked_bytes",
    }
)
"""Counters of the core that go down as well."""
LINES_AT_ONCE = 100
_REQUESTS = "requests_"
_EMPTY = (0, 0, 0)


class Sources(NamedTuple):
    """Where values come from."""

    core: "Core"
    node_id: int
    image: Callable[[], MetadataImage]
    statistics: Callable[[], Mapping[str, int]]
    ask: Ask


class Partition(NamedTuple):
    """A partition that this node leads. ``high_watermark`` and ``log_end_offset`` are exclusive."""

    topic: str
    number: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    size: int


def collect(sources: Sources) -> str:
    """Return everything in Prometheus' text format.

    Raises:
        ClosedError: The broker stopped.
    """
    partitions, unread_count = _partitions(sources)
    groups, shards_unread = ask_summaries(sources.ask, sources.node_id)
    families = [
        *_counters(sources.statistics()),
        *_of_partitions(partitions, unread_count),
        _single(
            "group_shards_unread", "gauge", "partitions of groups that it loads", shards_unread
        ),
        *_of_groups(groups, {(one.topic, one.number): one.high_watermark for one in partitions}),
    ]
    found = []
    for count, line in enumerate(lines(families)):
        found.append(line)
        if not count % LINES_AT_ONCE:
            time.sleep(
                0
            )  # the GIL goes to who waits for it: else the control thread would wait 5 ms each time
    return "".join(found)


def _counters(statistics: Mapping[str, int]) -> Iterator[Family]:
    requests = {}
    for name, value in statistics.items():
        if name.startswith("control."):
            continue
        if name.startswith(_REQUESTS) and name not in LEVELS:
            requests[name.removeprefix(_REQUESTS)] = value
        elif name in LEVELS:
            yield _single(name, "gauge", f"{name.replace('_', ' ')} now", value)
        else:
            yield _single(f"{name}_total", "counter", f"{name.replace('_', ' ')} so far", value)
    samples = [Sample({"api": name}, value) for name, value in requests.items()]
    text = "requests that the data plane answered itself, by API"
    yield Family("requests_total", "counter", text, samples)
    yield from _control(statistics)


def _control(statistics: Mapping[str, int]) -> Iterator[Family]:
    """What the control loop says of itself: in its waits is what threads that hog the GIL cost."""
    waits, waited = "control_waits_total", "control_wait_seconds_total"
    yield _single(
        waits,
        "counter",
        "requests the control thread took",
        _of(statistics, "control.requests.count"),
    )
    yield _single(
        waited,
        "counter",
        "how long they waited for the control thread, the GIL included",
        _of(statistics, "control.wait.ns.sum") / NS_PER_S,
    )
    yield _single(
        "control_wait_seconds_max",
        "gauge",
        "the longest of these waits since the start",
        _of(statistics, "control.wait.ns.max") / NS_PER_S,
    )
    text = "faults that the control plane survived"
    yield _single("control_faults_total", "counter", text, _of(statistics, "control.faults.count"))


def _of(statistics: Mapping[str, int], name: str) -> int:
    return statistics.get(name, 0)


def _single(name: str, kind: str, text: str, value: float) -> Family:
    return Family(name, "counter" if kind == "counter" else "gauge", text, [Sample({}, value)])


def _partitions(sources: Sources) -> tuple[list[Partition], int]:
    """Those that this node leads, and how many were not read: damaged ones, and those that just went."""
    topics = sources.image().topics.by_name
    led = [
        (topics[name].topic_id, name, index)
        for name in sorted(topics)
        for index, one in sorted(topics[name].partitions.items())
        if one.leader == sources.node_id
    ]
    sizes = ask_sizes(sources.ask, [(topic_id, index) for topic_id, _, index in led])
    found = []
    for topic_id, name, index in led:
        place = (topic_id, index)
        offsets = _offsets(sources.core, place) if place in sizes.found else _EMPTY
        if offsets is not None and place not in sizes.unknown:
            found.append(Partition(name, index, *offsets, sizes.found.get(place, 0)))
    return found, len(led) - len(found)


def _offsets(core: "Core", partition: tuple[bytes, int]) -> tuple[int, int, int] | None:
    try:
        found: LogOffsets = core.offsets(partition)
    except (KafkaError, LocalError):
        return None
    return found.log_start_offset, found.high_watermark, found.log_end_offset


def _of_partitions(partitions: Sequence[Partition], unread_count: int) -> Iterator[Family]:
    yield _single("partitions", "gauge", "partitions that this node leads", len(partitions))
    text = "partitions that it leads and could not read"
    yield _single("partitions_unread", "gauge", text, unread_count)
    labels: list[dict[str, str | int]] = [
        {"topic": one.topic, "partition": one.number} for one in partitions
    ]
    texts = {
        "log_start_offset": "first offset that is kept",
        "high_watermark": "end of what is committed, exclusive",
        "log_end_offset": "end of the log, exclusive",
        "size": "bytes of the log's segments",
    }
    for name, text in texts.items():
        pairs = zip(labels, partitions, strict=True)
        samples = [Sample(label, getattr(one, name)) for label, one in pairs]
        shown = "partition_size_bytes" if name == "size" else f"partition_{name}"
        yield Family(shown, "gauge", text, samples)


def _of_groups(
    groups: Sequence[GroupSummary], ends: Mapping[tuple[str, int], int]
) -> Iterator[Family]:
    states = Counter(one.state for one in groups)
    by_state = [Sample({"state": one.value}, states[one.value]) for one in ClassicGroupState]
    yield Family("groups", "gauge", "groups by state", by_state)
    members = [Sample({"group": one.group_id}, one.members_count) for one in groups]
    yield Family("group_members", "gauge", "members of a group", members)
    lags = [
        Sample(
            {"group": one.group_id, "topic": topic, "partition": partition},
            max(0, ends[topic, partition] - offset),
        )
        for one in groups
        for topic, partition, offset in one.offsets
        if (topic, partition) in ends
    ]
    yield Family("group_lag", "gauge", "offsets between committed and high watermark", lags)
