"""Arguments of a wrong type are rejected before anything starts, with advice on what to pass."""

from typing import Any

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ConfigurationError


@pytest.mark.parametrize(
    "given",
    [
        {"durability": "Os"},
        {"listeners": 5},
        {"on_failure": 5},
        {"memory_max": 0},
        {"memory_max": "1"},
        {"clock": "1"},
        {"config": {1: 2}},
        {"config": 5},
    ],
)
def test_error_of_a_broker_argument_gives_advice(given: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ConfigurationError), match="pass "):
        Broker(**given)


def test_error_of_a_topic_argument_gives_advice() -> None:
    with Broker() as broker:
        create: Any = broker.create_topic
        for arguments in (("t", "3"), ("t", True), (b"t",), (5,), (None,)):
            with pytest.raises(TypeError, match="pass "):
                create(*arguments)
        with pytest.raises(TypeError, match="pass "):
            create("t", config={1: 2})
        delete: Any = broker.delete_topic
        with pytest.raises(TypeError, match="pass "):
            delete(b"t")
        assert broker.topics() == {}
