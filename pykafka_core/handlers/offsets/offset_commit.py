"""OffsetCommit (8): a group commits offsets."""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.group.offsets.commit import Commit, commit_offsets
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.offsets.judged_offsets import JudgedOffsets, TopicLookup
from pykafka_core.handlers.outcome import ShardCalls, ShardResult, Work
from pykafka_core.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

IDS_VERSION = 10
"""From this version on a request identifies topics by their ids."""

_TopicRow = OffsetCommitResponse.OffsetCommitResponseTopic
_Row = OffsetCommitResponse.OffsetCommitResponsePartition


def handle(
    context: Context, request: OffsetCommitRequest
) -> Work[ShardCalls | OffsetCommitResponse]:
    """Commit all valid offsets or none; each partition has a result."""
    lookup = TopicLookup(context.image.topics, context.caller.api_version >= IDS_VERSION)
    judged = JudgedOffsets(request.group_id, request.retention_time_ms, context.now_ms, lookup)
    topics = yield from judged.judge(context, request.topics, _TopicRow, _Row)
    if not judged.asked:
        return OffsetCommitResponse(topics=topics)

    def reply(results: Sequence[ShardResult]) -> Work[OffsetCommitResponse]:
        yield from judged.settle(results[0])
        return OffsetCommitResponse(topics=topics)

    commit = Commit(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        offsets=judged.offsets,
        api_version=context.caller.api_version,
    )
    run = partial(commit_offsets, commit)
    return (yield from coordinate_each(context, [(request.group_id, run)], reply))
