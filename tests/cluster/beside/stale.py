"""Raw producers that know only one node, and continue to send to it when another one leads.

They have a separate topic: their records may be lost, and those of the workloads may not.
"""

from types import TracebackType

from pykafka_core._core import build_batch
from pykafka_core.protocol import messages as m
from tests.support.wire import Connection

STALE = "stale"
PRODUCE, VERSION = 0, 12
REQUESTS, RECORDS = 20, 5
LEADER_ALONE, ALL_IN_SYNC = 1, -1
RESPONSE_S = 60.0


class StaleWriter:
    """Sends requests whether or not the node reads them, as long as they fit into socket buffers.

    Attributes:
        acknowledged: Values that the node has accepted.
        refused: Error codes of the others.
    """

    def __init__(self, address: str, name: str, acks: int) -> None:
        self._connection = Connection(address, RESPONSE_S)
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
        """Send `REQUESTS` requests, each with `RECORDS` records, without waiting."""
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
        """Wait for the responses to all requests; they arrive in order."""
        for values in self._sent:
            response = self._connection.receive()
            row = response.responses[0].partition_responses[0]
            if row.error_code:
                self.refused.append(row.error_code)
            else:
                self.acknowledged += values
        self._sent.clear()
