"""A fetch by topic id returns no offset of another topic of the same name, even if that topic was
created after the request was judged.
"""

from hypothesis import given

from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.errors import UnknownTopicIdError
from pykafka_core.handlers.offsets import offset_fetch
from pykafka_core.handlers.outcome import ShardResult, run_to_end
from pykafka_core.protocol.messages import OffsetFetchRequest, OffsetFetchResponse
from tests.coordinator.offsets.test_judged_commits import TOPICS, change, changed_topics
from tests.handlers.offset_requests import broker_with_topic, commit, topic_id
from tests.support.simulated.broker import SimulatedBroker

OLD_OFFSET, NEW_OFFSET = 5, 9

Rows = dict[bytes, tuple[int, int]]
"""Offsets and error codes by topic id."""


def ids(broker: SimulatedBroker) -> dict[str, bytes]:
    return {name: topic_id(broker, name) for name in TOPICS if name in broker.image.topics.by_name}


def commit_all(broker: SimulatedBroker, offset: int) -> None:
    for name in ids(broker):
        assert commit(broker, {0: offset}, topic=name) == [0]


def fetched(broker: SimulatedBroker, request: OffsetFetchRequest, between: list[str]) -> Rows:
    """Judge the request, change topics and commit new offsets, then run its operation."""
    asked = LocalRequest(lambda _: request, offset_fetch.IDS_VERSION)
    context = broker.dispatcher._jobs._contexts.committed(asked)
    made = run_to_end(offset_fetch.handle(context, request))
    change(broker, between)
    commit_all(broker, NEW_OFFSET)
    results: list[ShardResult] = []
    (operation,) = made.operations
    broker.dispatcher._coordinators.run(operation, results.append)
    broker.run()
    response = run_to_end(made.reply(results))
    assert isinstance(response, OffsetFetchResponse)
    (group,) = response.groups
    assert group.error_code == 0
    return {
        topic.topic_id: (row.committed_offset, row.error_code)
        for topic in group.topics
        for row in topic.partitions
    }


def request_of(topics: list[bytes] | None) -> OffsetFetchRequest:
    of = OffsetFetchRequest
    rows = None
    if topics is not None:
        rows = [of.OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0]) for one in topics]
    return of(groups=[of.OffsetFetchRequestGroup(group_id="g", topics=rows)])


@given(changed_topics)
def test_fetch_by_id_returns_only_offsets_of_unchanged_topics(between: list[str]) -> None:
    broker = broker_with_topic()
    change(broker, TOPICS)
    commit_all(broker, OLD_OFFSET)
    before = ids(broker)
    rows = fetched(broker, request_of(list(before.values())), between)
    unchanged = set(ids(broker).values())
    unknown = (-1, UnknownTopicIdError.code)
    assert rows == {
        one: (NEW_OFFSET, 0) if one in unchanged else unknown for one in before.values()
    }


@given(changed_topics)
def test_fetch_of_all_topics_returns_the_ids_that_belong_to_the_offsets(
    between: list[str],
) -> None:
    broker = broker_with_topic()
    change(broker, TOPICS)
    commit_all(broker, OLD_OFFSET)
    rows = fetched(broker, request_of(None), between)
    assert rows == dict.fromkeys(ids(broker).values(), (NEW_OFFSET, 0))
