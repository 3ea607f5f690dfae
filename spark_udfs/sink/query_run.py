"""State of a sink for one run of a query, from its start to its end."""

from dataclasses import dataclass, field

from pykafka_core.errors import UsageError
from spark_udfs.sink.topic_partition import TopicPartition


@dataclass
class QueryRun:
    """One run. Each call with rows outside of a query is a separate run.

    Attributes:
        run_id: Spark's run id; None outside of a query.
        topic_ids: First known ids of the topics.
        committed: Number of the last committed batch.
        marks: Marks of the partitions of committed batches.
    """

    run_id: str | None = None
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    committed: int | None = None
    marks: dict[TopicPartition, int] = field(default_factory=dict)

    def goes_on(self, run_id: str | None, batch_id: int) -> bool:
        """Return whether the batch belongs to this run; if not, it starts another run.

        Raises:
            UsageError: The run has committed this batch. Its marks are at the end of the batch, so
                other rows of it would be dropped as redelivered. After a failed call, or in another
                run, the same number is a valid repetition.
        """
        if run_id is None or run_id != self.run_id:
            return False
        if self.committed == batch_id:
            raise UsageError(
                f"batch {batch_id} was committed already in this run of the query, with all offsets of it: rows that "
                "the first call did not have now count as processed. Give the sink the whole DataFrame of a batch, "
                "once; for two effects, use two sinks with a group each. A new group with a new checkpoint and "
                "startingOffsets=earliest processes the rows that were left out"
            )
        return True
