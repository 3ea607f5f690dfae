"""Producers of raw requests that know one node alone, and go on sending to it when another one leads.

They have a topic of their own: the numbers of workloads' records say what was lost, and these may be.
"""

from types import TracebackType

from pykafka_core._core import build_batch
from pykafka_core.protocol import messages as m
from tests.support.wire import Connection

STALE = "stale"
PRODUCE, VERSION = 0, 12
REQUESTS, RECORDS = 20, 5
LEADER_ALONE, ALL_IN_SYNC = 1, -1
ANSWER_S = 60.0


class StaleWriter:
    """Requests go out whether or not the node reads them, as long as they fit into the buffers of its socket.

    Attributes:
        acknowledged: Values that the node has taken.
        refused: Error codes of those that it has not.
    """

    def __init__(self, address: str, name: str, acks: int) -> None:
        self._connection = Connection(address, ANSWER_S)
        self._name, self._acks = name, acks
        self._sent: list[list[str]] = []
        self.acknowledged: list[str] = []
        self.refused: list[int] = []

    def __enter__(self) -> "StaleWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def send(self) -> None:
        """`REQUESTS` of them, each with `RECORDS` records; wait for nothing."""
        for _ in range(REQUESTS):
            first = len(self._sent) * RECORDS
            values = [f"{self._name}:{number}" for number in range(first, first + RECORDS)]
            self._connection.send(PRODUCE, VERSION, self._request(values))
            self._sent.append(values)

    def _request(self, values: list[str]) -> m.ProduceRequest:
        batch = build_batch([(None, value.encode()) for value in values])
        partition = m.ProduceRequest.PartitionProduceData(index=0, records=batch)
        topic = m.ProduceRequest.TopicProduceData(name=STALE, partition_data=[partition])
        return m.ProduceRequest(
            transactional_id=None, acks=self._acks, timeout_ms=30_000, topic_data=[topic]
        )

    def answers(self) -> None:
        """Wait for the answers to all that was sent; they come in its order."""
        for values in self._sent:
            answer = self._connection.answer(PRODUCE, VERSION)
            row = answer.responses[0].partition_responses[0]
            if row.error_code:
                self.refused.append(row.error_code)
            else:
                self.acknowledged += values
        self._sent.clear()
