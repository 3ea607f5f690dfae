"""Collects a broker's metrics: counters, partitions and groups, each read once.

Nothing here runs on the path of records. Counters are one snapshot. Sizes and groups come from the
control thread, a thousand at a time between clients' requests. Offsets are read on the caller's
thread, from partitions that have a log. The first read after a start opens that log, in about a
millisecond and without keeping a descriptor.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.member import ConsumerGroupState
from pykafka_core.coordinator.group.summary import GroupSummary
from pykafka_core.errors import KafkaError, LocalError
from pykafka_core.metadata.health import MEASURES, Health
from pykafka_core.metadata.image.image import MetadataImage

from .exposition import Family, Sample, lines
from .questions import Ask, ask_sizes, ask_summaries

if TYPE_CHECKING:
    from pykafka_core._core import Core, LogOffsets

T = TypeVar("T")

NS_PER_S = 10**9
SERIES_MAX = 50_000
"""Maximum series of one metric of partitions or groups: about 4 MB. Clients determine the number of
groups."""
LEVELS = frozenset(
    {
        "responses_held_bytes",
        "connections_muted",
        "connections_open",
        "events_waiting",
        "input_held_bytes",
        "requests_parked",
        "requests_parked_bytes",
    }
)
"""Counters of the core that can also decrease."""
LINES_AT_ONCE = 100
_REQUESTS = "requests_"
_EMPTY = (0, 0, 0)


class Sources(NamedTuple):
    """Sources of the values."""

    core: "Core"
    node_id: int
    image: Callable[[], MetadataImage]
    statistics: Callable[[], Mapping[str, int]]
    ask: Ask
    health: Callable[[], Health]


class _Limited:
    """Creates metrics of at most `SERIES_MAX` series, and counts the series that it omits."""

    def __init__(self) -> None:
        self._omitted: dict[str, int] = {}

    def family(
        self,
        name: str,
        text: str,
        rows: Iterable[T],
        sample: Callable[[T], Sample],
        omitted: int = 0,
    ) -> Family:
        """Create a metric of the first rows; an omitted row creates no sample.

        ``omitted`` is the number of series without a row.
        """
        rest = iter(rows)
        samples = [sample(row) for row in islice(rest, SERIES_MAX)]
        self._omitted[name] = omitted + sum(1 for _ in rest)
        return Family(name, "gauge", text, samples)

    def omitted(self) -> Family:
        """Return the number of omitted series of each metric."""
        samples = [Sample({"metric": name}, count) for name, count in self._omitted.items()]
        return Family("series_omitted", "gauge", "series that a metric lacks", samples)


class Partition(NamedTuple):
    """A partition that this node leads. ``high_watermark`` and ``log_end_offset`` are exclusive."""

    topic: str
    number: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    size: int


def collect(sources: Sources) -> str:
    """Return all metrics in Prometheus' text format.

    Raises:
        ClosedError: The broker stopped.
    """
    partitions, unread_count = _partitions(sources)
    groups, shards_unread = ask_summaries(sources.ask, sources.node_id)
    limited = _Limited()
    families = [
        *_counters(sources.statistics()),
        *_of_health(sources.health()),
        *_of_partitions(limited, partitions, unread_count),
        _single(
            "group_shards_unread",
            "gauge",
            "partitions of groups that it leads and could not read: those that it loads or cannot load",
            shards_unread,
        ),
        *_of_groups(
            limited, groups, {(one.topic, one.number): one.high_watermark for one in partitions}
        ),
        limited.omitted(),
    ]
    found = []
    for count, line in enumerate(lines(families)):
        found.append(line)
        if not count % LINES_AT_ONCE:
            time.sleep(
                0
            )  # releases the GIL; else the control thread would wait 5 ms for it each time
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
    """Metrics of the control loop; its waits show the cost of threads that hold the GIL for
    long.
    """
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
    """Return the partitions that this node leads, and how many were not read: damaged or just
    deleted ones.
    """
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


def _of_partitions(
    limited: _Limited, partitions: Sequence[Partition], unread_count: int
) -> Iterator[Family]:
    yield _single("partitions", "gauge", "partitions that this node leads", len(partitions))
    text = "partitions that it leads and could not read"
    yield _single("partitions_unread", "gauge", text, unread_count)
    texts = {
        "log_start_offset": "first offset that is kept",
        "high_watermark": "end of what is committed, exclusive",
        "log_end_offset": "end of the log, exclusive",
        "size": "bytes of the log's segments",
    }
    for name, text in texts.items():
        shown = "partition_size_bytes" if name == "size" else f"partition_{name}"
        yield limited.family(shown, text, partitions, partial(_of_partition, name))


def _of_partition(name: str, one: Partition) -> Sample:
    return Sample({"topic": one.topic, "partition": one.number}, getattr(one, name))


def _of_health(health: Health) -> Iterator[Family]:
    for state, names in health.items():
        measure = MEASURES[state]
        yield _single(measure.metric, "gauge", measure.text, len(names))


def _of_groups(
    limited: _Limited, groups: Sequence[GroupSummary], ends: Mapping[tuple[str, int], int]
) -> Iterator[Family]:
    states = Counter(one.state for one in groups)
    names = dict.fromkeys(one.value for one in (*ClassicGroupState, *ConsumerGroupState))
    by_state = [Sample({"state": name}, states[name]) for name in names]
    yield Family("groups", "gauge", "groups by state", by_state)
    yield limited.family(
        "group_members",
        "members of a group",
        groups,
        lambda one: Sample({"group": one.group_id}, one.members_count),
    )
    lags = (
        (one.group_id, topic, partition, max(0, ends[topic, partition] - offset))
        for one in groups
        for topic, partition, offset in one.offsets
        if (topic, partition) in ends
    )
    yield limited.family(
        "group_lag",
        "offsets between committed and high watermark",
        lags,
        _lag_sample,
        omitted=sum(one.offsets_omitted for one in groups),
    )


def _lag_sample(row: tuple[str, str, int, int]) -> Sample:
    group_id, topic, partition, lag = row
    return Sample({"group": group_id, "topic": topic, "partition": partition}, lag)
