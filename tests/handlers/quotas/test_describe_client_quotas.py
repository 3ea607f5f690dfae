"""DescribeClientQuotas: KIP-546."""

import pytest

from tests.handlers.quotas.quota_requests import (
    DEFAULT,
    EXACT,
    INVALID_REQUEST,
    SPECIFIED,
    UNSUPPORTED_VERSION,
    Component,
    Entity,
    alter,
    describe,
    described,
    entry,
)
from tests.support.simulated.broker import SimulatedBroker

ENTITIES: tuple[Entity, ...] = (
    {"user": "u"},
    {"user": None},
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"client-id": "c"},
)


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ((), False, (0, 1, 2, 3, 4)),
        ((), True, ()),
        ((("user", EXACT, "u"),), False, (0, 2, 3)),
        ((("user", EXACT, "u"),), True, (0,)),
        ((("user", DEFAULT, None),), False, (1,)),
        ((("user", SPECIFIED, None),), True, (0, 1)),
        ((("client-id", DEFAULT, None),), False, (3,)),
        ((("user", SPECIFIED, None), ("client-id", EXACT, "c")), True, (2,)),
        ((("ip", SPECIFIED, None),), False, ()),
    ],
)
def test_filter_selects_the_entities_that_it_names(
    broker: SimulatedBroker, components: tuple[Component, ...], strict: bool, found: tuple[int, ...]
) -> None:
    alter(broker, *(entry(entity, {"producer_byte_rate": 1.0}) for entity in ENTITIES))
    names = [entity for entity, _ in described(broker, *components, strict=strict)]
    assert names == [ENTITIES[place] for place in found]


@pytest.mark.parametrize(
    ("components", "code", "text"),
    [
        ((("", EXACT, "u"),), INVALID_REQUEST, "Invalid empty entity type."),
        ((("topic", EXACT, "u"),), UNSUPPORTED_VERSION, "Unsupported entity type topic"),
        (
            (("user", EXACT, "u"), ("user", DEFAULT, None)),
            INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            (("user", EXACT, None),),
            INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            (("user", DEFAULT, "u"),),
            INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            (("user", SPECIFIED, "u"),),
            INVALID_REQUEST,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ((("user", 7, None),), INVALID_REQUEST, "Unknown match type 7"),
        (
            (("user", EXACT, "u"), ("ip", DEFAULT, None)),
            INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with"
            " user or clientId filter component.",
        ),
    ],
)
def test_invalid_filter_is_rejected(
    broker: SimulatedBroker, components: tuple[Component, ...], code: int, text: str
) -> None:
    response = describe(broker, *components)
    assert (response.error_code, response.error_message, response.entries) == (code, text, None)
