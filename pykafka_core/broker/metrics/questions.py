"""Queries of this process to the control thread, about shards and logs.

They take turns with clients' requests.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.coordinator.group.explain import GroupView, view_group
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.group.summary import GroupSummary, Page, summarize
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import RequestTimedOutError, error_of
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import (
    DescribeLogs,
    GroupOperation,
    LogCommands,
    LogResult,
    Outcome,
    ShardCalls,
    ShardResult,
)
from pykafka_core.handlers.registry import Owner
from pykafka_core.protocol.messages import HeartbeatResponse, Message
from pykafka_core.types import GROUP_TOPIC, PartitionId

if TYPE_CHECKING:
    from pykafka_core._core import LogDirs

T = TypeVar("T")
Ask = Callable[[LocalRequest], Message]
"""Submits a request and waits for its response."""

PAGE_WEIGHT = 1_000
"""Groups and offsets that one operation reads: under a millisecond of the control thread."""
COMMAND_PARTITIONS_MAX = 1_000
"""Maximum number of partitions in one command to the core."""
SIZES_TIMEOUT_MS = 5_000
PATIENCE_S = 10.0

_Run = Callable[[GroupShard, Waiter, CoordinatorResult], None]
_DONE = HeartbeatResponse()
"""The response to every query; the results are returned in another way."""


class Question(LocalRequest):
    """A request of this process that only reads."""

    name = "a question of this process"
    owner = Owner.LOCAL

    def wait(self) -> Message:
        """Block until the response, for a limited time: a stalled disk must not block all threads
        that query.

        Raises:
            KafkaError: See `LocalRequest.wait`; REQUEST_TIMED_OUT after `PATIENCE_S`.
        """
        if not self._done.wait(PATIENCE_S):
            raise RequestTimedOutError(f"the broker did not answer within {PATIENCE_S:g} s")
        return super().wait()


def ask_group(ask: Ask, group_id: str) -> GroupView | None:
    """Return a group from its shard; None if there is no such group.

    Raises:
        KafkaError: This node does not coordinate it, or its shard is not loaded yet.
    """
    found: list[ShardResult] = []

    def run(shard: GroupShard, waiter: Waiter, result: CoordinatorResult) -> None:
        result.respond(waiter, view_group(shard, group_id, result.now_ns, result.now_ms))

    def decide(context: Context) -> Outcome:
        topic = context.image.topics.by_name.get(GROUP_TOPIC)
        if topic is None or not topic.partitions:
            return _DONE
        index = coordinator_partition(group_id, len(topic.partitions))
        return ShardCalls([GroupOperation(index, run)], lambda results: _keep(found, results))

    ask(Question(decide))
    if not found:  # the internal topic does not exist yet
        return None
    if found[0].error_code:
        raise error_of(found[0].error_code)()
    return cast("GroupView | None", found[0].value)


class Summaries(NamedTuple):
    """Summaries of all groups of this node's shards, and the number of shards that could not be
    read, for example while they load.
    """

    groups: Sequence[GroupSummary]
    unread_count: int


def ask_summaries(ask: Ask, node_id: int) -> Summaries:
    """Return the groups that this node coordinates."""
    starts: dict[int, int] | None = None
    groups: list[GroupSummary] = []
    unread_count = 0
    while starts is None or starts:
        starts, pages, unread = _ask_pages(ask, node_id, starts)
        groups += (group for page in pages for group in page.groups)
        unread_count += unread
    return Summaries(groups, unread_count)


def _ask_pages(
    ask: Ask, node_id: int, starts: dict[int, int] | None
) -> tuple[dict[int, int], list[Page], int]:
    """Return the starts of the following pages, the pages, and the number of shards without a
    result.

    Without ``starts``, the first page of each shard is read.
    """
    found: list[ShardResult] = []
    indexes: list[int] = []

    def decide(context: Context) -> Outcome:
        topic = context.image.topics.by_name.get(GROUP_TOPIC)
        led = {} if topic is None else topic.partitions
        here = [index for index, one in led.items() if one.leader == node_id]
        indexes.extend(here if starts is None else [one for one in here if one in starts])
        operations = [GroupOperation(one, _page((starts or {}).get(one, 0))) for one in indexes]
        return ShardCalls(operations, lambda results: _keep(found, results))

    ask(Question(decide))
    pages: list[Page] = []
    following: dict[int, int] = {}
    for index, result in zip(indexes, found, strict=True):
        if not result.error_code:
            page = cast("Page", result.value)
            pages.append(page)
            if page.next_start is not None:
                following[index] = page.next_start
    return following, pages, len(indexes) - len(pages)


def _page(start: int) -> _Run:
    def run(shard: GroupShard, waiter: Waiter, result: CoordinatorResult) -> None:
        result.respond(waiter, summarize(shard, start, PAGE_WEIGHT))

    return run


class Sizes(NamedTuple):
    """Bytes of each existing log, and the partitions that could not be queried in time."""

    found: Mapping[PartitionId, int]
    unknown: AbstractSet[PartitionId]


def ask_sizes(ask: Ask, partitions: Sequence[PartitionId]) -> Sizes:
    """Return the sizes of logs."""
    if not partitions:
        return Sizes({}, frozenset())
    found: list[LogResult] = []
    steps = range(0, len(partitions), COMMAND_PARTITIONS_MAX)
    commands = [DescribeLogs(partitions[at : at + COMMAND_PARTITIONS_MAX]) for at in steps]
    outcome = LogCommands(commands, SIZES_TIMEOUT_MS, lambda results: _keep(found, results))
    ask(Question(lambda _: outcome))
    sizes: dict[PartitionId, int] = {}
    unknown: set[PartitionId] = set()
    for command, result in zip(commands, found, strict=True):
        if result.error_code:
            unknown.update(command.partitions)
        else:
            logs = cast("LogDirs", result.value).sizes
            sizes.update(((topic_id, index), size) for topic_id, index, size in logs)
    return Sizes(sizes, unknown)


def _keep(found: list[T], results: Sequence[T]) -> Message:
    found.extend(results)
    return _DONE
