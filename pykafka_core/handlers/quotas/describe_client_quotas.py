"""DescribeClientQuotas (48): KIP-546; ``ClientQuotasImage.describe`` in Kafka."""

from collections.abc import Mapping
from enum import IntEnum

from pykafka_core.errors import InvalidRequestError, KafkaError, UnsupportedVersionError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work
from pykafka_core.protocol.messages import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_TYPES = ("user", "client-id", "ip")
_Entity = tuple[tuple[str, str | None], ...]
_Entry = DescribeClientQuotasResponse.EntryData


class _Match(IntEnum):
    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class _Filter:
    """The filter of a request.

    Raises:
        KafkaError: The filter is invalid.
    """

    def __init__(self, request: DescribeClientQuotasRequest) -> None:
        self._exact: dict[str, str | None] = {}
        self._any: set[str] = set()
        self._strict = request.strict
        for component in request.components:
            self._add(component)
        kinds = self._exact.keys() | self._any
        if "ip" in kinds and len(kinds) > 1:
            raise InvalidRequestError(
                "Invalid entity filter component combination. IP filter component should not be used with"
                " user or clientId filter component."
            )

    def _add(self, component: DescribeClientQuotasRequest.ComponentData) -> None:
        kind, match = component.entity_type, component.match
        if not kind:
            raise InvalidRequestError("Invalid empty entity type.")
        if kind in self._exact or kind in self._any:
            text = f"Entity type {kind} cannot appear more than once in the filter."
            raise InvalidRequestError(text)
        if kind not in _TYPES:
            raise UnsupportedVersionError(f"Unsupported entity type {kind}")
        if component.match_type not in list(_Match):
            raise InvalidRequestError(f"Unknown match type {component.match_type}")
        match_type = _Match(component.match_type)
        if match_type is _Match.EXACT and match is None:
            text = "Request specified MATCH_TYPE_EXACT, but set match string to null."
            raise InvalidRequestError(text)
        if match_type is not _Match.EXACT and match is not None:
            text = f"Request specified MATCH_TYPE_{match_type.name}, but also specified a match string."
            raise InvalidRequestError(text)
        if match_type is _Match.SPECIFIED:
            self._any.add(kind)
        else:
            self._exact[kind] = match

    def takes(self, entity: _Entity) -> bool:
        parts: Mapping[str, str | None] = dict(entity)
        if self._strict and len(parts) != len(self._exact) + len(self._any):
            return False
        exact = all(kind in parts and parts[kind] == name for kind, name in self._exact.items())
        return exact and self._any <= parts.keys()


def handle(
    context: Context, request: DescribeClientQuotasRequest
) -> Work[DescribeClientQuotasResponse]:
    """Describe the quotas of each entity that matches the filter."""
    try:
        wanted = _Filter(request)
    except KafkaError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=str(error), entries=None
        )
    found: dict[_Entity, _Entry | None] = {}
    for key, value in context.image.client_quotas.items():
        yield
        if key.entity not in found:
            found[key.entity] = _entry(key.entity) if wanted.takes(key.entity) else None
        entry = found[key.entity]
        if entry is not None:
            limit = DescribeClientQuotasResponse.ValueData(key=key.limit, value=value)
            entry.values.append(limit)
    entries = [entry for entry in found.values() if entry is not None]
    return DescribeClientQuotasResponse(error_message="", entries=entries)


def _entry(entity: _Entity) -> _Entry:
    return _Entry(
        entity=[
            DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
        values=[],
    )
