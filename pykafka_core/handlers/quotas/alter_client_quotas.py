"""AlterClientQuotas (49): KIP-546; ``ClientQuotaControlManager`` in Kafka."""

from collections.abc import Mapping
from typing import NamedTuple

from pykafka_core.errors import InvalidRequestError, KafkaError, PolicyViolationError, error_of
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Work, collect, without_traceback
from pykafka_core.metadata.image.image import QuotaKey
from pykafka_core.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ClientQuotaRecord,
    Message,
)

QUOTAS_MAX = 10_000
"""The maximum of quotas in the metadata; each change sends all of them to the core."""

NAME_LENGTH_MAX = 1_024
"""The maximum length of the name of a user or a client id with its own quotas."""

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_BYTE_RATES = ("producer_byte_rate", "consumer_byte_rate")
_NOT_BUILT = ("request_percentage", "controller_mutation_rate")
_BYTE_RATE_MAX = float(2**63)

_Entity = dict[str, str | None]


class _Result(NamedTuple):
    entity: _Entity
    error: KafkaError | None
    records: list[Message]


def handle(context: Context, request: AlterClientQuotasRequest) -> Work[MetadataWrite]:
    """Plan each entity separately; an error of one does not affect the others."""
    responses: dict[frozenset[tuple[str, str | None]], _Result] = {}
    room = QUOTAS_MAX - len(context.image.client_quotas)
    for entry in request.entries:
        yield
        entity = {part.entity_type: part.entity_name for part in entry.entity}
        key = frozenset(entity.items())
        result = responses.get(key)
        if result is not None or len({op.key for op in entry.ops}) < len(entry.ops):
            error = InvalidRequestError(f"Ignoring duplicate entity {_text(entity)}")
            records = result.records if result is not None else []
            responses[key] = _Result(entity, without_traceback(error), records)
            continue
        try:
            records = _records(context.image.client_quotas, entity, entry.ops, room)
        except KafkaError as error:
            responses[key] = _Result(entity, without_traceback(error), [])
        else:
            responses[key] = _Result(entity, None, records)
            room -= len(records)

    def reply(code: int) -> Work[AlterClientQuotasResponse]:
        entries = yield from collect(_entry(result, code) for result in responses.values())
        return AlterClientQuotasResponse(entries=entries)

    proposed = [record for result in responses.values() for record in result.records]
    return MetadataWrite([] if request.validate_only else proposed, reply)


def _entry(result: _Result, code: int) -> AlterClientQuotasResponse.EntryData:
    error = result.error or (error_of(code)() if code else None)
    return AlterClientQuotasResponse.EntryData(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        entity=[
            AlterClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
            for kind, name in result.entity.items()
        ],
    )


def _records(
    quotas: Mapping[QuotaKey, float],
    entity: _Entity,
    ops: list[AlterClientQuotasRequest.OpData],
    room: int,
) -> list[Message]:
    """Return the records that change an entity's quotas; equal values need no record."""
    _check_entity(entity)
    parts = tuple(sorted(entity.items(), key=lambda part: part[0]))
    records: list[Message] = []
    for op in ops:
        held = quotas.get(QuotaKey(parts, op.key))
        if op.remove:
            changes = held is not None
        else:
            _check_limit(op.key, op.value, is_ip=_IP in entity)
            changes = held != op.value
            if held is None and len(records) >= room:
                raise PolicyViolationError(f"There are {QUOTAS_MAX} client quotas at most.")
        if changes:
            records.append(_record(entity, op))
    return records


def _record(entity: _Entity, op: AlterClientQuotasRequest.OpData) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=[
            ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        key=op.key,
        value=0.0 if op.remove else op.value,
        remove=op.remove,
    )


def _check_entity(entity: _Entity) -> None:
    if not entity:
        raise InvalidRequestError("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (_USER, _CLIENT_ID, _IP):
            raise InvalidRequestError(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequestError(f"Empty {kind} not supported")
        if name is not None and len(name) > NAME_LENGTH_MAX:
            text = f"A {kind} with a quota has {NAME_LENGTH_MAX} characters at most."
            raise PolicyViolationError(text)
    if _IP in entity and len(entity) > 1:
        # Kafka's text.
        text = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        raise InvalidRequestError(text)


def _check_limit(key: str, value: float, *, is_ip: bool) -> None:
    if key in (("connection_creation_rate",) if is_ip else _NOT_BUILT):
        raise InvalidRequestError(
            f"{key}: this limit is not built; {' and '.join(_BYTE_RATES)} are"
        )
    if is_ip or key not in _BYTE_RATES:
        raise InvalidRequestError(f"Invalid configuration key {key}")
    if not value > 0:
        raise InvalidRequestError(f"Quota {key} must be greater than 0")
    if value > _BYTE_RATE_MAX:
        raise InvalidRequestError(f"Proposed value for {key} is too large for a LONG.")
    if value % 1.0 > 1e-6:
        raise InvalidRequestError(f"{key} cannot be a fractional value.")


def _text(entity: _Entity) -> str:
    """Return the text of Kafka's ``ClientQuotaEntity``."""
    entries = (
        f"{kind}={'null' if name is None else name}" for kind, name in sorted(entity.items())
    )
    return f"ClientQuotaEntity(entries={{{', '.join(entries)}}})"
