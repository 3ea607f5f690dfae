"""Requests about client quotas, and their results."""

from collections.abc import Mapping

from pykafka_core.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tests.support.simulated.broker import SimulatedBroker

INVALID_REQUEST, UNSUPPORTED_VERSION, POLICY_VIOLATION = 42, 35, 44
EXACT, DEFAULT, SPECIFIED = 0, 1, 2

Entity = Mapping[str, str | None]
Entry = AlterClientQuotasRequest.EntryData
Component = tuple[str, int, str | None]
CLIENT: Entity = {"client-id": "a"}


def entry(entity: Entity, limits: Mapping[str, float | None]) -> Entry:
    """Return an entry of a request; a limit of None is removed."""
    request = AlterClientQuotasRequest
    return Entry(
        entity=[request.EntityData(entity_type=k, entity_name=name) for k, name in entity.items()],
        ops=[
            request.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in limits.items()
        ],
    )


def alter(
    broker: SimulatedBroker, *entries: Entry, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    response = broker.ask(
        AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    )
    assert isinstance(response, AlterClientQuotasResponse)
    return [(entry.error_code, entry.error_message) for entry in response.entries]


def limit(
    broker: SimulatedBroker, entity: Entity, limits: Mapping[str, float | None]
) -> tuple[int, str | None]:
    [on_response] = alter(broker, entry(entity, limits))
    return on_response


def describe(
    broker: SimulatedBroker, *components: Component, strict: bool = False
) -> DescribeClientQuotasResponse:
    response = broker.ask(
        DescribeClientQuotasRequest(
            components=[
                DescribeClientQuotasRequest.ComponentData(
                    entity_type=kind, match_type=match_type, match=match
                )
                for kind, match_type, match in components
            ],
            strict=strict,
        )
    )
    assert isinstance(response, DescribeClientQuotasResponse)
    return response


def described(
    broker: SimulatedBroker, *components: Component, strict: bool = False
) -> list[tuple[Entity, Mapping[str, float]]]:
    response = describe(broker, *components, strict=strict)
    assert (response.error_code, response.error_message) == (0, "")
    assert response.entries is not None
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries
    ]
