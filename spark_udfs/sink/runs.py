"""What a sink knows of a query's run, from one start of the query to its end, and forgets with it."""

from dataclasses import dataclass, field

from pykafka_core.errors import UsageError
from spark_udfs.sink.places import Place


@dataclass
class Run:
    """One run. Rows that are given by hand are a run for each call.

    Attributes:
        run_id: Spark's; None outside of a query.
        topic_ids: Of the topics that were read, as they were first.
        committed: The last batch that was committed.
        marks: Of the partitions of committed batches.
    """

    run_id: str | None = None
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    committed: int | None = None
    marks: dict[Place, int] = field(default_factory=dict)

    def goes_on(self, run_id: str | None, batch_id: int) -> bool:
        """Whether the batch is one more of this run; it begins another one else.

        Raises:
            UsageError: The run has committed this batch. Its marks are behind all of it, so that other rows of it
                would be taken for redelivered. After a call that failed, and in another run, it is a repetition.
        """
        if run_id is None or run_id != self.run_id:
            return False
        if self.committed == batch_id:
            raise UsageError(
                f"batch {batch_id} was committed already in this run of the query, with all offsets of it: rows that "
                "the first call did not have now count as processed. Give the sink the whole DataFrame of a batch, "
                "once; for two effects, use two sinks with a group each. A new group with a new checkpoint and "
                "startingOffsets=earliest processes what was left out"
            )
        return True
