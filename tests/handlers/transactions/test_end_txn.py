"""EndTxn: the decision is stored, the response is sent, markers are written, and the transaction is
complete.
"""

from itertools import count
from typing import Any

import pytest

from pykafka_core._core import Appended
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.transaction.records import transaction_record
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import EXHAUSTED_EPOCH, TV2, Transaction
from pykafka_core.errors import KafkaStorageError
from pykafka_core.protocol.messages import (
    AddPartitionsToTxnRequest,
    DeleteTopicsRequest,
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorRequest,
)
from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC, PartitionId
from tests.handlers.group_requests import pass_ms
from tests.handlers.offset_requests import TOPIC, create_topic, fetch, topic_id
from tests.handlers.transaction_requests import (
    ID,
    Producer,
    add,
    add_offsets,
    commit_offsets,
    describe,
    end,
    init,
    producer_of,
    transactional_broker,
)
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore, ProducerState, encode_batch


def ending(producer: Producer) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], committed=True
    )


def beginning(name: str, producer: Producer) -> AddPartitionsToTxnRequest:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[1])
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[topic],
    )


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(6))
def test_a_transaction_is_complete_when_its_markers_are_written(version: int, commit: bool) -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0, 1)
    ends = [broker.core.logs[topic_id(broker), index].end for index in range(3)]
    code, renewed = end(broker, producer, commit=commit, version=version)
    assert code == 0
    assert renewed == ((producer[0], producer[1] + 1) if version >= 5 else (-1, -1))
    assert describe(broker).transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
    grown = [broker.core.logs[topic_id(broker), index].end for index in range(3)]
    assert grown == [ends[0] + 1, ends[1] + 1, ends[2]]


def test_reply_follows_the_decision_and_the_end_follows_the_last_marker() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0, 1)
    broker.core.hold_appends = True
    request = EndTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], committed=True
    )
    asked = broker.send(request, 4)
    broker.run()
    assert broker.response(asked) is None
    broker.core.complete_append()
    broker.run()
    assert broker.response(asked) == EndTxnResponse()
    assert describe(broker).transaction_state == "PrepareCommit"
    assert add(broker, producer, 0) == [51]
    broker.core.complete_append()
    broker.run()
    assert describe(broker).transaction_state == "PrepareCommit"
    broker.core.hold_appends = False
    broker.core.complete_append()
    broker.run()
    assert describe(broker).transaction_state == "CompleteCommit"


def test_failed_marker_is_written_again() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0)
    broker.core.hold_appends = True
    request = EndTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], committed=True
    )
    broker.send(request, 4)
    broker.run()
    broker.core.complete_append()
    broker.run()
    broker.core.complete_append(KafkaStorageError.code)
    broker.core.hold_appends = False
    broker.run()
    assert describe(broker).transaction_state == "PrepareCommit"
    pass_ms(broker, 100)
    assert describe(broker).transaction_state == "CompleteCommit"


def test_failed_append_of_the_end_is_retried_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shard was loaded again at once and requested its markers again, thousands of times a
    second.
    """
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0)
    decided = broker.image.topics.by_name[TRANSACTION_TOPIC].topic_id
    real_append, appends = FakeCore.append, count()

    def append(
        core: FakeCore, token: int, partition: PartitionId, *rest: Any, **named: Any
    ) -> None:
        # The first append is the decision. Without a limit the test would not end if the retries
        # had no delay.
        if partition[0] == decided and 0 < next(appends) < 100:
            core.push(Appended(token, KafkaStorageError.code, -1))
        else:
            real_append(core, token, partition, *rest, **named)

    monkeypatch.setattr(FakeCore, "append", append)
    assert end(broker, producer, commit=True)[0] == 0
    for _ in range(100):
        pass_ms(broker, 100)
    assert 5 < next(appends) < 20
    assert broker.core.logs[topic_id(broker), 0].end < 20
    monkeypatch.undo()
    pass_ms(broker, 2_000)
    assert describe(broker).transaction_state == "CompleteCommit"


def test_a_decided_transaction_ends_after_a_restart() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0)
    broker.core.hold_appends = True
    request = EndTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], committed=True
    )
    broker.send(request, 4)
    broker.run()
    broker.core.complete_append()
    broker.run()
    broker.core.complete_append(KafkaStorageError.code)
    broker.core.hold_appends = False
    again = SimulatedBroker(core=broker.core, ids=broker.ids)
    again.run()
    assert describe(again).transaction_state == "CompleteCommit"


def test_reloaded_shard_contains_the_end_after_all_markers() -> None:
    """The first markers completed the transaction before the second ones were written, which could
    then end the producer's next transaction.
    """
    broker = SimulatedBroker({"transaction.state.log.num.partitions": "1"})
    broker.ask(FindCoordinatorRequest(key=ID, key_type=1), 3)
    create_topic(broker)
    producer, other = producer_of(broker), producer_of(broker, "other")
    add(broker, producer, 0)
    broker.core.hold_appends = True
    broker.send(ending(producer), 4)
    broker.run()
    broker.send(beginning("other", other), 3)
    broker.run()
    broker.core.complete_append()  # the decision
    broker.run()
    broker.core.complete_append(KafkaStorageError.code)  # the start of another transaction
    broker.core.complete_append()  # the marker, while the shard is being loaded
    broker.run()
    assert describe(broker).transaction_state == "PrepareCommit"
    broker.core.hold_appends = False
    broker.core.complete_append()
    broker.run()
    assert describe(broker).transaction_state == "CompleteCommit"


def test_transaction_at_the_last_epoch_of_a_producer_ends_after_a_restart() -> None:
    """The broker has no producer ids after a restart, and the request for more was rejected."""
    broker = transactional_broker()
    producer = (7, EXHAUSTED_EPOCH)
    last = Transaction(
        transactional_id=ID,
        state=TransactionState.ONGOING,
        producer_id=producer[0],
        producer_epoch=producer[1],
        last_producer_epoch=-1,
        previous_producer_id=-1,
        next_producer_id=-1,
        timeout_ms=60_000,
        partitions=frozenset({(TOPIC, 0)}),
        start_ms=broker.core.clock_ms,
        last_update_ms=broker.core.clock_ms,
        client_version=TV2,
    )
    transactions = broker.image.topics.by_name[TRANSACTION_TOPIC]
    index = coordinator_partition(ID, len(transactions.partitions))
    broker.core.append(0, (transactions.topic_id, index), 0, [transaction_record(last)])
    again = SimulatedBroker(core=FakeCore(logs=broker.core.logs), ids=broker.ids)
    again.run()
    assert end(again, producer, commit=True, version=5)[0] == 14
    assert end(again, producer, commit=True, version=5) == (0, (1, 0))
    assert describe(again).transaction_state == "CompleteCommit"


def test_failed_load_of_a_group_shard_is_retried_one_at_a_time() -> None:
    """Each attempt failed at once, and was followed by two more."""
    broker = transactional_broker()
    producer = producer_of(broker)
    add_offsets(broker, producer)
    broker.core.hold_appends = True
    request = EndTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], committed=True
    )
    broker.send(request, 4)
    broker.run()
    broker.core.complete_append()
    broker.core.hold_appends = False
    groups = broker.image.topics.by_name[GROUP_TOPIC]
    damaged = encode_batch(0, 0, 0, [(None, b"a record without a key")], False)
    for index in groups.partitions:
        log = broker.core.logs[groups.topic_id, index]
        log.batches, log.end, log.high_watermark = [(0, 1, damaged)], 1, 1
    again = SimulatedBroker(core=FakeCore(logs=broker.core.logs), ids=broker.ids)
    again.run()
    timers = len(again.control.timers)
    assert describe(again).transaction_state == "PrepareCommit"
    for _ in range(100):
        pass_ms(again, 100)
    assert len(again.control.timers) == timers


@pytest.mark.parametrize(("version", "code"), [(0, 47), (1, 47), (2, 90), (5, 90)])
def test_an_older_producer_is_fenced(version: int, code: int) -> None:
    broker = transactional_broker()
    old = producer_of(broker)
    producer_of(broker)
    assert end(broker, old, commit=True, version=version)[0] == code


def test_partition_with_a_later_epoch_does_not_block_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One such partition stopped the writing of markers: the transaction stayed prepared, and no
    new producer could start.

    It happens if the coordinator's last records were lost, but not those of the partition.
    """
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0, 1, 2)
    later = ProducerState(producer_id=producer[0], producer_epoch=producer[1] + 5)
    broker.core.logs[topic_id(broker), 1].producers[producer[0]] = later
    ends = [broker.core.logs[topic_id(broker), index].end for index in range(3)]
    assert end(broker, producer, commit=True)[0] == 0
    assert describe(broker).transaction_state == "CompleteCommit"
    grown = [broker.core.logs[topic_id(broker), index].end for index in range(3)]
    assert grown == [ends[0] + 1, ends[1], ends[2] + 1]
    assert init(broker)[0] == 0
    assert "the transaction of 'transfers' does not end in orders-1" in caplog.text


def test_partition_with_a_later_coordinator_epoch_leaves_the_end_to_that_coordinator() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0)
    known = ProducerState(
        producer_id=producer[0], producer_epoch=producer[1], coordinator_epoch=1_000
    )
    broker.core.logs[topic_id(broker), 0].producers[producer[0]] = known
    assert end(broker, producer, commit=True)[0] == 0
    assert describe(broker).transaction_state == "PrepareCommit"


def test_an_empty_transaction_cannot_be_committed() -> None:
    broker = transactional_broker()
    assert end(broker, producer_of(broker), commit=True)[0] == 48


def test_deleted_topic_does_not_block_the_end_of_a_transaction() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0)
    gone = DeleteTopicsRequest.DeleteTopicState(name=TOPIC)
    broker.ask(DeleteTopicsRequest(topics=[gone]))
    assert end(broker, producer, commit=True)[0] == 0
    assert describe(broker).transaction_state == "CompleteCommit"


def test_offsets_are_visible_after_the_commit() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    add_offsets(broker, producer)
    assert commit_offsets(broker, producer, {0: 5}) == [0]
    assert fetch(broker, [0], require_stable=True)[0][3] == 88
    assert fetch(broker, [0])[0][0] == -1
    assert end(broker, producer, commit=True)[0] == 0
    assert fetch(broker, [0], require_stable=True)[0] == (5, -1, "m", 0)


def test_timed_out_transaction_is_aborted_and_its_producer_fenced() -> None:
    broker = transactional_broker()
    code, producer = init(broker, timeout_ms=1000)
    assert code == 0
    add(broker, producer, 0)
    pass_ms(broker, 999)
    assert describe(broker).transaction_state == "Ongoing"
    pass_ms(broker, 11_000)
    assert describe(broker).transaction_state == "CompleteAbort"
    assert end(broker, producer, commit=True)[0] == 90
