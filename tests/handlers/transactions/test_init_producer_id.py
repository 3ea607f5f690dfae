"""InitProducerId without a coordinator: ids from blocks of 1000."""

import pytest

from pykafka_core.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from tests.handlers.transaction_requests import init as init_transactional
from tests.handlers.transaction_requests import producer_of, transactional_broker
from tests.support.simulated.broker import SimulatedBroker


def init(
    broker: SimulatedBroker, version: int = 5, transactional_id: str | None = None
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60000)
    response = broker.ask(request, version)
    assert isinstance(response, InitProducerIdResponse)
    return response


@pytest.mark.parametrize("version", range(6))
def test_every_version_gets_a_fresh_id_of_epoch_0(broker: SimulatedBroker, version: int) -> None:
    responses = [init(broker, version) for _ in range(3)]
    assert [(a.error_code, a.producer_id, a.producer_epoch) for a in responses] == [
        (0, 0, 0),
        (0, 1, 0),
        (0, 2, 0),
    ]


def test_one_record_allocates_a_thousand_ids(broker: SimulatedBroker) -> None:
    ids = [init(broker).producer_id for _ in range(1000)]
    assert ids == list(range(1000))
    assert broker.image.next_producer_id == 1000
    assert init(broker).producer_id == 1000
    assert broker.image.next_producer_id == 2000


def ids_of(broker: SimulatedBroker, requests: list[int]) -> list[int]:
    responses = [broker.response(request_id) for request_id in requests]
    return [a.producer_id for a in responses if isinstance(a, InitProducerIdResponse)]


@pytest.mark.parametrize("count", [5, 1000, 1001, 2500])
def test_requests_of_one_batch_share_blocks(broker: SimulatedBroker, count: int) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    requests = [broker.send(request) for _ in range(count)]
    for event in broker.core.wait(0, count):
        broker.dispatcher.take(event)
    broker.run()
    assert ids_of(broker, requests) == list(range(count))
    assert init(broker).producer_id == count
    assert broker.image.next_producer_id == (count // 1000 + 1) * 1000


def test_a_rejected_block_is_lost_to_the_whole_batch() -> None:
    broker = SimulatedBroker()
    broker.core.hold_appends = True
    request = InitProducerIdRequest(transactional_id=None)
    requests = [broker.send(request) for _ in range(3)]
    broker.run()
    broker.core.complete_append(error_code=56)
    broker.run()
    assert ids_of(broker, requests) == [-1, -1, -1]
    requests = [broker.send(request) for _ in range(3)]
    broker.run()
    broker.core.complete_append()
    broker.run()
    assert ids_of(broker, requests) == [0, 1, 2]


def test_uncommitted_block_gives_no_id() -> None:
    broker = SimulatedBroker()
    broker.core.hold_appends = True
    request_id = broker.send(InitProducerIdRequest(transactional_id=None))
    broker.run()
    assert broker.response(request_id) is None
    broker.core.complete_append(error_code=56)
    broker.run()
    response = broker.response(request_id)
    assert isinstance(response, InitProducerIdResponse)
    assert (response.error_code, response.producer_id) == (15, -1)


@pytest.mark.parametrize(("transactional_id", "code"), [("tx", 15), ("", 42)])
def test_transactional_ids_need_a_coordinator(
    broker: SimulatedBroker, transactional_id: str, code: int
) -> None:
    response = init(broker, transactional_id=transactional_id)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (code, -1, -1)


@pytest.mark.parametrize(("timeout_ms", "code"), [(0, 50), (-1, 50), (900_001, 50), (900_000, 15)])
def test_timeout_out_of_bounds_is_the_first_error(
    broker: SimulatedBroker, timeout_ms: int, code: int
) -> None:
    response = broker.ask(
        InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=timeout_ms), 4
    )
    assert isinstance(response, InitProducerIdResponse)
    assert response.error_code == code


def test_transactional_id_keeps_its_producer_id_and_each_init_fences_the_previous_one() -> None:
    broker = transactional_broker()
    code, (producer_id, epoch) = init_transactional(broker)
    assert (code, epoch) == (0, 0)
    assert init_transactional(broker) == (0, (producer_id, 1))
    assert init_transactional(broker, producer=(producer_id, 1)) == (0, (producer_id, 2))
    assert init_transactional(broker, producer=(producer_id, 0)) == (90, (-1, -1))
    assert init_transactional(broker, "another")[1][0] != producer_id


def test_before_version_4_a_fenced_producer_has_an_invalid_epoch() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    producer_of(broker)
    producer_of(broker)
    assert init_transactional(broker, producer=producer, version=4)[0] == 90
    assert init_transactional(broker, producer=producer, version=3)[0] == 47


@pytest.mark.parametrize("producer", [(5, -1), (-1, 5)])
@pytest.mark.parametrize("transactional_id", [None, "tx"])
def test_producer_id_without_epoch_or_the_reverse_is_rejected(
    producer: tuple[int, int], transactional_id: str | None
) -> None:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=1000,
        producer_id=producer[0],
        producer_epoch=producer[1],
    )
    response = transactional_broker().ask(request, 5)
    assert isinstance(response, InitProducerIdResponse)
    assert response.error_code == 42


@pytest.mark.parametrize("taken", range(997, 1002))
def test_transactional_ids_use_the_same_blocks(taken: int) -> None:
    broker = transactional_broker()
    given = {init(broker).producer_id for _ in range(taken)}
    for number in range(5):
        given.add(producer_of(broker, f"t{number}")[0])
    assert len(given) == taken + 5
