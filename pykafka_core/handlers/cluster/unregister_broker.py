"""UnregisterBroker (64): KIP-631; ``ReplicationControlManager.unregisterBroker`` in Kafka."""

from pykafka_core.errors import (
    BrokerIdNotRegisteredError,
    InvalidRequestError,
    KafkaError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work, check_record_limit
from pykafka_core.metadata.broker_changes import unregistered
from pykafka_core.metadata.image.image import Broker
from pykafka_core.protocol.messages import (
    Message,
    UnregisterBrokerRecord,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def handle(context: Context, request: UnregisterBrokerRequest) -> Work[Outcome]:
    """Remove the registration of a broker that never returns, and remove it from every ISR."""
    try:
        broker = _registered(context, request.broker_id)
        records: list[Message] = []
        for record in unregistered(context.image, context.settings, broker):
            yield
            if record is not None:
                records.append(record)
        records.append(UnregisterBrokerRecord(broker_id=broker.node_id, broker_epoch=broker.epoch))
        check_record_limit(len(records))
    except KafkaError as error:
        return _response(error)
    return MetadataWrite(records, lambda code: _response(error_of(code)() if code else None))


def _registered(context: Context, broker_id: int) -> Broker:
    broker = context.image.brokers.get(broker_id)
    if broker is None:
        raise BrokerIdNotRegisteredError(f"Broker ID {broker_id} is not currently registered")
    if broker_id == context.node.node_id:
        # Kafka does this; its broker then serves nothing until its next start.
        raise InvalidRequestError(f"Broker {broker_id} is the one that responds")
    return broker


def _response(error: KafkaError | None) -> UnregisterBrokerResponse:
    if error is None:
        return UnregisterBrokerResponse(error_message=None)
    return UnregisterBrokerResponse(error_code=error.code, error_message=str(error))
