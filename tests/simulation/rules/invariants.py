"""Rules for each step of a simulation, for each response, and for the end."""

from typing import TYPE_CHECKING, Any, NamedTuple

from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.protocol.messages import (
    AddPartitionsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    EndTxnRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    Message,
    OffsetCommitRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC, PartitionId
from tests.faults.history import check
from tests.simulation.rules.committed import Committed
from tests.simulation.rules.ledger import DataView, Tail
from tests.simulation.rules.memory import differences, other_offsets, unloaded, waiting_offsets
from tests.simulation.rules.recorder import Recorder
from tests.simulation.rules.sessions import Sessions
from tests.support.simulated.fake_core import Marker

if TYPE_CHECKING:
    from tests.simulation.core import Produce
    from tests.simulation.world import World


COMPARED = 0.02
"""Probability of a comparison of memory with the logs, per step."""


class Violation(Exception):
    """A rule was broken."""


class Arrival(NamedTuple):
    """State at the arrival of a request."""

    is_stale: bool
    """The generation in the request has ended."""
    is_excused: bool
    at: float
    clock_ns: int


class Invariants:
    """Checks one world."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.found: list[tuple[str, object]] = []
        self.committed = Committed(self.report)
        self.recorder = Recorder(world.now)
        self._sessions = Sessions(self.report, self.committed)
        self.views: dict[PartitionId, DataView] = {}
        self._tails: dict[PartitionId, Tail] = {}
        by_name = world.broker.image.topics.by_name
        self._groups_id = by_name[GROUP_TOPIC].topic_id
        self._transactions_id = by_name[TRANSACTION_TOPIC].topic_id
        self.coordinators_ids = (self._groups_id, self._transactions_id)
        self._read_to: dict[PartitionId, int] = {}

    def report(self, kind: str, detail: object) -> None:
        """Store a violation; it is raised after the step, outside the broker's error handling."""
        self.found.append((kind, detail))

    # Steps.

    def after_step(self) -> None:
        """Check the step, and raise the violations found."""
        self._read_logs()
        if self.world.random.random() < COMPARED:
            self._compare()
        if self.world.broker.control.faults.count:
            self.report("the broker caught a fault", self.world.broker.control.faults.count)
        if self.found:
            raise Violation(*self.found[0])

    def _compare(self) -> None:
        for detail in differences(self.world.broker):
            self.report("memory is not what the log says", detail)
        for detail in other_offsets(self.world.broker, self.committed.offsets):
            self.report("offsets are not what the log says", detail)

    def _read_logs(self) -> None:
        for partition, log in self.world.core.logs.items():
            if self._read_to.get(partition) == log.high_watermark:
                continue
            self._read_to[partition] = log.high_watermark
            topic_id = partition[0]
            if topic_id == self.world.topic_id:
                self.views.setdefault(partition, DataView()).advance(log)
            elif topic_id in self.coordinators_ids:
                for batch in self._tails.setdefault(partition, Tail()).advance(log):
                    if topic_id == self._groups_id:
                        self.committed.group_batch(partition[1], batch)
                    else:
                        self.committed.transaction_batch(batch)

    # Answers.

    def before(self, request: Message) -> Arrival:
        """Return the committed state when a request arrives."""
        self.recorder.asked(request)
        self._sessions.asked(request)
        self._read_logs()
        generation = getattr(request, "generation_id", None)
        if isinstance(request, OffsetCommitRequest):
            generation = request.generation_id_or_member_epoch
        group = getattr(request, "group_id", None)
        known = self.committed.generations.get(group or "", -1)
        is_stale = isinstance(generation, int) and 0 <= generation < known
        # A heartbeat while the group is loading succeeds, as in Kafka.
        is_excused = isinstance(request, HeartbeatRequest) and self._were_loaded_since(0)
        return Arrival(is_stale, is_excused, self.world.now(), self.world.core.clock_ns)

    def _were_loaded_since(self, began_ns: int) -> bool:
        """Return whether groups are loading or started to since then; 0: only whether they load."""
        hosts = self.world.broker.dispatcher._coordinators._groups._hosts.values()
        return any(
            host.is_loading or (began_ns and host._load_began_ns >= began_ns) for host in hosts
        )

    def produced(self, record: "Produce") -> None:
        """Check that an acknowledged record is committed."""
        self._read_logs()
        fates = self.views[record.partition].fates.values()
        if not any(value == record.value.decode() for value, _ in fates):
            self.report("a record was acknowledged that is not committed", record)
        self.recorder.produced(record)

    def replied(self, request: Message, response: Any, arrival: Arrival) -> None:
        """Check a response."""
        self._read_logs()
        self.recorder.replied(request, response, arrival.at)
        is_heartbeat = isinstance(request, HeartbeatRequest)
        is_excused = arrival.is_excused or (
            is_heartbeat and self._were_loaded_since(arrival.clock_ns)
        )
        if not is_excused:
            self._sessions.replied(request, response, arrival.clock_ns)
        if arrival.is_stale and not is_excused and _is_fine(response):
            self.report("a stale generation was accepted", (request, response))
        if _is_fine(response) and not self._is_kept(request, response):
            self.report("a response was not committed", (request, response))

    # The core's door.

    def begins(self, partition: PartitionId, producer: tuple[int, int]) -> None:
        """Check a transaction's first write to a partition: the coordinator must have added it."""
        self._read_logs()
        topics = self.world.broker.image.topics.by_id
        place = topics[partition[0]].name, partition[1]
        for known in self.committed.transactions.values():
            if known.producer_id == producer[0] and place in known.partitions:
                return
        self.report("a transaction began that its coordinator does not know", (place, producer))

    def marks(self, marker: Marker) -> None:
        """Check that a written marker was decided."""
        self._read_logs()
        producer_id, is_commit = marker[2], marker[5]
        decided = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        for known in self.committed.transactions.values():
            if known.producer_id == producer_id and known.state is decided:
                return
        self.report("a marker was written that was not decided", marker)

    def _is_kept(self, request: Any, response: Any) -> bool:
        committed = self.committed
        match request:
            case InitProducerIdRequest() if request.transactional_id:
                got = request.transactional_id, response.producer_id, response.producer_epoch
                return got in committed.identities
            case EndTxnRequest():
                known = committed.transactions.get(request.transactional_id)
                has_moved = known is not None and known.producer_epoch > request.producer_epoch
                return known is not None and (
                    has_moved or known.state is not TransactionState.ONGOING
                )
            case AddPartitionsToTxnRequest():
                return self._are_added(request)
            case OffsetCommitRequest() | TxnOffsetCommitRequest():
                rows = [row for topic in request.topics for row in topic.partitions]
                return all((row.committed_metadata or "") in committed.texts for row in rows)
            case SyncGroupRequest():
                known_generation = committed.generations.get(request.group_id, -1)
                return known_generation >= request.generation_id
            case ConsumerGroupHeartbeatRequest() if response.member_epoch > 0:
                told = (request.group_id, response.member_id, response.member_epoch)
                return told in committed.epochs_seen
        return True

    def _are_added(self, request: AddPartitionsToTxnRequest) -> bool:
        known = self.committed.transactions.get(request.v3_and_below_transactional_id)
        if known is None:
            return False
        wanted = {(t.name, index) for t in request.v3_and_below_topics for index in t.partitions}
        has_moved = known.producer_epoch > request.v3_and_below_producer_epoch
        return (
            has_moved or known.state is not TransactionState.ONGOING or wanted <= known.partitions
        )

    # The end.

    def at_end(self) -> None:
        """Check the state after all activity has ended."""
        self.after_step()
        self._nothing_is_left()
        for partition, log in self.world.core.logs.items():
            if log.last_stable_offset != log.high_watermark:
                self.report("the last stable offset does not move", partition)
        for detail in waiting_offsets(self.world.broker):
            self.report("an offset waits for a marker for ever", detail)
        for place in unloaded(self.world.broker):
            self.report("a shard is not there", place)
        self._compare()
        for (_, index), view in self.views.items():
            log = self.world.core.logs[self.world.partition(index)]
            if view.last_stable_offset != log.high_watermark:
                self.report("a transaction stays open in a partition", index)
            self.recorder.final(index, view)
        for history in self.recorder.histories():
            for anomaly in check(history):
                self.report(*anomaly)
        self.after_step()

    def _nothing_is_left(self) -> None:
        dispatcher = self.world.broker.dispatcher
        left = {
            "requests": len(dispatcher._requests),
            "completions": len(dispatcher._completions),
            "markers": len(dispatcher._coordinators._markers),
            "verifications": len(self.world.core._asked),
            "produced": len(self.world.core._produced),
        }
        if any(left.values()):
            self.report("something is left behind", left)


def _is_fine(response: Any) -> bool:
    """Return whether no part of the response is an error."""
    if getattr(response, "error_code", 0):
        return False
    topics = getattr(response, "topics", None) or ()
    rows = [row for topic in topics for row in topic.partitions if hasattr(topic, "partitions")]
    rows += [
        row
        for topic in getattr(response, "results_by_topic_v3_and_below", None) or ()
        for row in topic.results_by_partition
    ]
    codes = [getattr(row, "error_code", getattr(row, "partition_error_code", 0)) for row in rows]
    return not any(codes)
