"""Statistics of a sink: committed rows, speed and lag."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from spark_udfs.sink.topic_partition import TopicPartition, name

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Totals of one sink's batches.

    ``records`` = redelivered + duplicates + quarantined + processed.

    Attributes:
        seconds: Time within ``foreach_batch``, including reading.
        lag: By partition ("orders-0"), the offsets between the group's mark and the log end that
            Spark last saw. Empty until a listener (`IdempotentSink.listener`) has received a batch.
    """

    batches: int = 0
    records: int = 0
    redelivered: int = 0
    duplicates: int = 0
    quarantined: int = 0
    processed: int = 0
    seconds: float = field(default=0.0, compare=False)
    lag: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def records_per_second(self) -> float:
        """Return the mean over all batches."""
        return self.records / self.seconds if self.seconds else 0.0

    def with_batch(
        self, *, records: int, fresh: int, processed: int, quarantined: int, seconds: float
    ) -> "Statistics":
        """Return the totals including one more batch."""
        return replace(
            self,
            batches=self.batches + 1,
            records=self.records + records,
            redelivered=self.redelivered + records - fresh,
            duplicates=self.duplicates + fresh - processed - quarantined,
            quarantined=self.quarantined + quarantined,
            processed=self.processed + processed,
            seconds=self.seconds + seconds,
        )


def lag_of(progress: Any, marks: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Return the number of offsets at or after each partition's mark.

    Args:
        progress: A StreamingQueryProgress.
        marks: The next offset to process; partitions without a mark are left out.
    """
    ends: dict[TopicPartition, int] = {}
    for source in progress.sources:
        for topic, partitions in _offsets(source.latestOffset).items():
            ends |= {(topic, int(number)): end for number, end in partitions.items()}
    return {
        name(place): max(0, end - marks[place])
        for place, end in sorted(ends.items())
        if place in marks
    }


def _offsets(text: str | None) -> dict[str, dict[str, int]]:
    """Parse the offsets of a Kafka source; empty for other sources."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    good = isinstance(found, dict) and all(isinstance(one, dict) for one in found.values())
    return found if good else {}


def listener_of(
    query_is: Callable[[str], bool], note: Callable[[Any], None]
) -> "StreamingQueryListener":
    """Return a listener that passes on the progress of one query."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class SinkListener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None:
            if query_is(str(event.progress.id)):
                note(event.progress)

        def onQueryIdle(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None: ...

    return SinkListener()
