"""FindCoordinator: a declared exception until there is a coordinator."""

import pytest

from pykafka_core.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from pykafka_core.testing.simulated_broker import SimulatedBroker


@pytest.mark.parametrize("version", range(4))
def test_one_key_is_answered_with_coordinator_not_available(
    broker: SimulatedBroker, version: int
) -> None:
    answer = broker.ask(FindCoordinatorRequest(key="group"), version)
    assert isinstance(answer, FindCoordinatorResponse)
    assert (answer.error_code, answer.node_id, answer.port) == (15, -1, -1)


@pytest.mark.parametrize("version", range(4, 7))
def test_every_key_of_a_batch_is_answered(broker: SimulatedBroker, version: int) -> None:
    answer = broker.ask(FindCoordinatorRequest(coordinator_keys=["a", "b"]), version)
    assert isinstance(answer, FindCoordinatorResponse)
    assert [(c.key, c.error_code, c.node_id) for c in answer.coordinators] == [
        ("a", 15, -1),
        ("b", 15, -1),
    ]


def test_an_unknown_kind_of_key_is_invalid(broker: SimulatedBroker) -> None:
    answer = broker.ask(FindCoordinatorRequest(key="group", key_type=9), 3)
    assert isinstance(answer, FindCoordinatorResponse)
    assert answer.error_code == 42


GOOD = "g:AAAAAAAAAAAAAAAAAAAAAg:0"


@pytest.mark.parametrize(
    ("version", "key", "code"),
    [
        (3, GOOD, 42),
        (4, GOOD, 42),
        (5, GOOD, 42),
        (6, GOOD, 15),
        (6, "bad", 42),
        (6, "g:x:0", 42),
        (6, GOOD.removeprefix("g"), 42),
        (6, GOOD.removesuffix("0"), 42),
        (6, GOOD.removesuffix("0") + "z", 42),
        (6, GOOD.removesuffix("0") + "2147483648", 42),
    ],
)
def test_a_share_groups_key_is_checked_as_kafka_checks_it(
    broker: SimulatedBroker, version: int, key: str, code: int
) -> None:
    keys = {"key": key} if version < 4 else {"coordinator_keys": [key]}
    answer = broker.ask(FindCoordinatorRequest(key_type=2, **keys), version)
    assert isinstance(answer, FindCoordinatorResponse)
    codes = [answer.error_code] if version < 4 else [c.error_code for c in answer.coordinators]
    assert codes == [code]
