"""Offsets of a deleted topic never apply to a new topic of the same name, whatever happens in
between.
"""

from pykafka_core.protocol.messages import DeleteTopicsRequest
from tests.handlers.group_requests import pass_ms
from tests.handlers.offset_requests import TOPIC, broker_with_topic, commit, create_topic, fetch
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

NONE_COMMITTED = -1


def delete_topic(broker: SimulatedBroker) -> None:
    named = DeleteTopicsRequest.DeleteTopicState(name=TOPIC)
    broker.ask(DeleteTopicsRequest(topics=[named], timeout_ms=1000), 6)


def offset_of_new_topic(broker: SimulatedBroker) -> int:
    create_topic(broker)
    pass_ms(broker, 1_000)
    return fetch(broker, [0])[0][0]


def test_a_topic_deleted_right_before_a_crash_leaves_no_offsets_to_its_successor() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 7})
    delete_topic(broker)
    # The broker ends before the removal of the offsets was due.
    again = SimulatedBroker(core=FakeCore(logs=broker.core.logs), ids=broker.ids)
    again.run()
    assert offset_of_new_topic(again) == NONE_COMMITTED


def test_a_topic_deleted_while_the_coordinator_loads_leaves_no_offsets_to_its_successor() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 7})
    again = SimulatedBroker(core=FakeCore(logs=broker.core.logs), ids=broker.ids)
    # No event was handled so far: the shards are loading.
    delete_topic(again)
    again.run()
    assert offset_of_new_topic(again) == NONE_COMMITTED


def test_a_topic_deleted_while_the_coordinator_is_used_leaves_no_offsets_to_its_successor() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 7})
    delete_topic(broker)
    assert offset_of_new_topic(broker) == NONE_COMMITTED


def test_offsets_reloaded_after_a_failed_append_are_removed_with_their_topic() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 7})
    broker.core.hold_appends = True
    request = broker.send(
        DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=TOPIC)], timeout_ms=1000
        ),
        6,
    )
    broker.run()
    broker.core.complete_append()
    broker.run()
    assert broker.response(request) is not None
    pass_ms(broker, 10)  # the tombstones are being written
    broker.core.complete_append(56)
    broker.core.hold_appends = False
    broker.run()
    assert offset_of_new_topic(broker) == NONE_COMMITTED
