"""A commit that was judged before the deletion of its topic commits no offset of that topic, even
if there is a new topic of that name when it runs.
"""

from collections.abc import Sequence
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.errors import (
    OffsetMetadataTooLargeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.offsets import offset_commit, txn_offset_commit
from pykafka_core.handlers.outcome import ShardCalls, ShardResult, run_to_end
from pykafka_core.protocol.messages import (
    DeleteTopicsRequest,
    Message,
    OffsetCommitRequest,
    OffsetCommitResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from tests.handlers.group_requests import pass_ms
from tests.handlers.offset_requests import create_topic, fetch, topic_id
from tests.handlers.transaction_requests import (
    ID,
    add_offsets,
    end,
    producer_of,
    transactional_broker,
)
from tests.support.simulated.broker import SimulatedBroker

TOPICS = "xy"
OFFSET = 7
ABSENT_PARTITION = 5
DAY_MS = 86_400_000

changed_topics = st.lists(st.sampled_from(TOPICS), max_size=3)
commit_versions, txn_versions = st.integers(2, 10), st.integers(0, 6)


def change(broker: SimulatedBroker, names: Sequence[str]) -> None:
    """Delete each topic, or create it if it does not exist."""
    for name in names:
        if name in broker.image.topics.by_name:
            state = DeleteTopicsRequest.DeleteTopicState(name=name)
            broker.ask(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6)
        else:
            create_topic(broker, 1, name)


def topics_of(broker: SimulatedBroker, topic: Any, partition: Any) -> list[Any]:
    """Return both topics of a request: a valid partition, an absent one, and long metadata."""
    rows = [(0, "m"), (ABSENT_PARTITION, "m"), (0, "m" * 4097)]
    partitions = [
        partition(partition_index=index, committed_offset=OFFSET, committed_metadata=metadata)
        for index, metadata in rows
    ]
    return [
        topic(name=name, topic_id=topic_id(broker, name), partitions=partitions) for name in TOPICS
    ]


def commit_request(broker: SimulatedBroker, version: int) -> OffsetCommitRequest:
    of = OffsetCommitRequest
    return of(
        group_id="g",
        generation_id_or_member_epoch=-1,
        # A record with an expiry time has no topic id.
        retention_time_ms=DAY_MS if version < 5 else -1,
        topics=topics_of(broker, of.OffsetCommitRequestTopic, of.OffsetCommitRequestPartition),
    )


def txn_commit_request(
    broker: SimulatedBroker, producer: tuple[int, int]
) -> TxnOffsetCommitRequest:
    of = TxnOffsetCommitRequest
    return of(
        transactional_id=ID,
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=topics_of(
            broker, of.TxnOffsetCommitRequestTopic, of.TxnOffsetCommitRequestPartition
        ),
    )


class Handled:
    """A request that was judged; its operations run later, one at a time."""

    def __init__(
        self, broker: SimulatedBroker, handler: Any, request: Message, version: int
    ) -> None:
        self._broker = broker
        self._ids = self._topic_ids()
        by_id = version >= handler.IDS_VERSION
        self._unknown = (UnknownTopicIdError if by_id else UnknownTopicOrPartitionError).code
        asked = LocalRequest(lambda _: request, version)
        context = broker.dispatcher._jobs._contexts.committed(asked)
        self.made: object = run_to_end(handler.handle(context, request))
        self.expected: set[str] = set()
        """The topics that existed all the time."""

    def _topic_ids(self) -> dict[str, bytes]:
        by_name = self._broker.image.topics.by_name
        return {name: by_name[name].topic_id for name in TOPICS if name in by_name}

    def step(self) -> None:
        """Run the next operation."""
        made = cast("ShardCalls", self.made)
        results: list[ShardResult] = []
        (operation,) = made.operations
        self._broker.dispatcher._coordinators.run(operation, results.append)
        self._broker.run()
        now = self._topic_ids()
        self.expected = {name for name in TOPICS if self._ids.get(name, 0) == now.get(name)}
        self.made = run_to_end(made.reply(results))

    def check(self) -> None:
        """Check each row's error, and that only the offsets of unchanged topics are stored."""
        response, broker = self.made, self._broker
        assert isinstance(response, OffsetCommitResponse | TxnOffsetCommitResponse)
        topics: Sequence[Any] = response.topics
        for name, topic in zip(TOPICS, topics, strict=True):
            codes = [row.error_code for row in topic.partitions]
            absent = UnknownTopicOrPartitionError.code
            if name in self.expected:
                assert codes == [0, absent, OffsetMetadataTooLargeError.code]
            elif name in self._ids:
                assert codes == [self._unknown, absent, self._unknown]
            else:
                assert codes == [self._unknown] * 3
        change(broker, [name for name in TOPICS if name not in broker.image.topics.by_name])
        for _ in range(3):
            pass_ms(broker, 1_000)
        for name in TOPICS:
            stored = OFFSET if name in self.expected else -1
            assert fetch(broker, [0], topic=name)[0][0] == stored
        hosts = broker.dispatcher._coordinators._groups._hosts.values()
        machines = [host.machine for host in hosts if host.machine is not None]
        assert {name for one in machines for name in one.offsets.topics("g")} == self.expected


@given(commit_versions, changed_topics, changed_topics)
def test_commit_stores_only_offsets_of_unchanged_topics(
    version: int, before: list[str], between: list[str]
) -> None:
    broker = transactional_broker()
    change(broker, TOPICS)
    change(broker, before)
    request = commit_request(broker, version)
    handled = Handled(broker, offset_commit, request, version)
    if isinstance(handled.made, ShardCalls):
        change(broker, between)
        handled.step()
    handled.check()


@given(txn_versions, changed_topics, st.lists(changed_topics, min_size=4, max_size=4))
def test_transactional_commit_stores_only_offsets_of_unchanged_topics(
    version: int, before: list[str], between: list[list[str]]
) -> None:
    broker = transactional_broker()
    change(broker, TOPICS)
    change(broker, before)
    producer = producer_of(broker)
    if version < txn_offset_commit.ADDS_VERSION:
        add_offsets(broker, producer)
    request = txn_commit_request(broker, producer)
    handled = Handled(broker, txn_offset_commit, request, version)
    while isinstance(handled.made, ShardCalls):
        change(broker, between.pop())
        handled.step()
    end(broker, producer, commit=True)
    handled.check()
