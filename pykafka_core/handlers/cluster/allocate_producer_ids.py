"""AllocateProducerIds (67): KIP-730.

``ProducerIdControlManager.generateNextProducerId`` in Kafka.
"""

from pykafka_core.errors import KafkaError, UnknownServerError
from pykafka_core.handlers.cluster.broker_records import registered_broker
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome
from pykafka_core.metadata.producer_ids import BLOCK_SIZE, next_block
from pykafka_core.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle(context: Context, request: AllocateProducerIdsRequest) -> Outcome:
    """Allocate the next block of producer ids to a broker."""
    try:
        registered_broker(context, request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return _failed(error.code)
    record = next_block(context.image, request.broker_id, request.broker_epoch)
    if record is None:
        return _failed(UnknownServerError.code)
    first = context.image.next_producer_id

    def reply(code: int) -> AllocateProducerIdsResponse:
        if code:
            return _failed(code)
        return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)

    return MetadataWrite([record], reply)


def _failed(code: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=code, producer_id_start=-1, producer_id_len=0)
