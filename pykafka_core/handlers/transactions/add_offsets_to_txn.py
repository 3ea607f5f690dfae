"""AddOffsetsToTxn (25): a transaction will commit offsets of a group."""

from functools import partial

from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.transaction.add_partitions import add_partitions
from pykafka_core.coordinator.transaction.transaction import TV1
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.shards import coordinate_transaction
from pykafka_core.handlers.outcome import ShardCalls, ShardResult
from pykafka_core.handlers.transactions.fencing import known_to
from pykafka_core.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from pykafka_core.types import GROUP_TOPIC

FENCED_VERSION = 2


def handle(
    context: Context, request: AddOffsetsToTxnRequest
) -> ShardCalls | AddOffsetsToTxnResponse:
    """Add the partition that coordinates the group.

    A client may send FindCoordinator for the group, which creates the topic, only after this
    request. Then the partition is computed from the future number of partitions.
    """
    topic = context.image.topics.by_name.get(GROUP_TOPIC)
    count = len(topic.partitions) if topic else context.settings.int("offsets.topic.num.partitions")
    shard = coordinator_partition(request.group_id, count)

    def reply(result: ShardResult) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(
            error_code=known_to(context, result.error_code, FENCED_VERSION)
        )

    run = partial(
        add_partitions,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [(GROUP_TOPIC, shard)],
        TV1,
    )
    return coordinate_transaction(context, request.transactional_id, run, reply)
