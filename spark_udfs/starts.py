"""Where Spark began to read, held against the ledger: what was passed over is an error, not a silence.

Spark goes on where its checkpoint says, and begins a new checkpoint where `startingOffsets` says, by default at the
end. It knows topics by name, and of the ledger nothing. So records can be passed over in two ways:

- A new checkpoint begins after the group's mark.
- The topic was deleted and made anew while no query ran. The old checkpoint's offset means nothing in the new log; if
  that is longer already, Spark goes on in its middle.

The rows cannot tell: filters before the ledger leave gaps too. What Spark planned can. The first commit therefore notes
each planned partition in the ledger, so that a topic id without any mark is one that the group never read.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pykafka_core.errors import ConsumerError, DataLossError
from pykafka_core.idempotent import PartitionKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Place: TypeAlias = tuple[str, int]
"""Topic and partition, as rows say it."""

QUERY_ID: Final = "sql.streaming.queryId"
_KAFKA_STREAM: Final = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"


@dataclass(frozen=True)
class Planned:
    """The first offsets of a micro-batch by partition; 0 for a partition that Spark has just found.

    Empty outside a streaming query, and for sources that are not Spark's Kafka connector.
    """

    starts: Mapping[Place, int] = field(default_factory=dict)

    @property
    def topics(self) -> set[str]:
        """Their names."""
        return {topic for topic, _ in self.starts}


def planned(df: "DataFrame") -> Planned:
    """What Spark planned for the micro-batch ``df``."""
    session: Any = df.sparkSession
    query_id = session.sparkContext.getLocalProperty(QUERY_ID)
    if query_id is None:
        return Planned()
    running = session._jsparkSession.sharedState().activeStreamingQueries()
    execution = running.get(session._jvm.java.util.UUID.fromString(query_id))
    begins, ends = execution.getStartOffsetsOfLatestBatch(), execution.availableOffsets()
    sources = execution.sources()
    starts: dict[Place, int] = {}
    for source in (sources.apply(at) for at in range(sources.size())):
        end = ends.get(source)
        if source.getClass().getName() != _KAFKA_STREAM or end.isEmpty():
            continue
        begin = begins.get(source)
        begun = _offsets((source.initialOffset() if begin.isEmpty() else begin.get()).json())
        for place in _offsets(end.get().json()):  # a topic that is gone is not there
            offset = begun.get(place, 0)
            starts[place] = min(starts.get(place, offset), offset)
    return Planned(starts)


def _offsets(text: str) -> dict[Place, int]:
    return {
        (topic, int(partition)): offset
        for topic, partitions in json.loads(text).items()
        for partition, offset in partitions.items()
    }


@dataclass(frozen=True, kw_only=True)
class Read:
    """What the group has read.

    Attributes:
        marks: All of the group's, of earlier lives of the topics too.
        ids: The topics' present ids.
        log_starts: Asks for the first offsets that partitions have.
    """

    marks: Mapping[PartitionKey, int]
    ids: Mapping[str, bytes]
    log_starts: Callable[[Collection[Place]], Mapping[Place, int]]

    def key(self, place: Place) -> PartitionKey:
        """The partition's name in the ledger."""
        return PartitionKey(self.ids[place[0]], *place)

    def unnoted(self, plan: Planned) -> dict[PartitionKey, int]:
        """The marks of planned partitions that have none."""
        keys = {self.key(place): start for place, start in plan.starts.items()}
        return {key: start for key, start in keys.items() if key not in self.marks}

    def check_lives(self, plan: Planned) -> None:
        """For a checkpoint that was used before: its topics are those that the group read.

        Raises:
            ConsumerError: One was made anew, and Spark would not begin at its beginning.
        """
        read = {key.topic for key in self.marks}
        present = {key.topic for key in self.marks if self.ids.get(key.topic) == key.topic_id}
        begun = {topic for (topic, _), start in plan.starts.items() if start > 0}
        anew = sorted((read - present) & begun)
        if anew:
            raise ConsumerError(
                f"{', '.join(anew)}: deleted and made anew since the checkpoint was written, whose offsets are the old "
                "topic's; start with a new checkpoint and startingOffsets=earliest"
            )

    def check_gaps(self, plan: Planned) -> None:
        """For a new checkpoint: it begins at the marks or before.

        Partitions without a mark, of topics that the group knows, begin at their first record.

        Raises:
            DataLossError: It begins later.
        """
        read = {key.topic for key in self.marks}
        begun = [place for place, start in plan.starts.items() if place[0] in read and start > 0]
        unread = [place for place in begun if self.key(place) not in self.marks]
        firsts = self.log_starts(unread) if unread else {}
        for place in begun:
            mark = firsts[place] if place in firsts else self.marks[self.key(place)]
            if plan.starts[place] > mark:
                raise DataLossError(
                    f"{place[0]}-{place[1]}: the new checkpoint begins at offset {plan.starts[place]}, the group has "
                    f"processed what is before {mark}: start with another new checkpoint and startingOffsets=earliest, "
                    "which costs time and counts nothing twice; fail_on_data_loss=False goes on without what is between"
                )
