"""Transactional producers of both protocols: they write, commit, abort, disappear and return."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from pykafka_core.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    RequestTimedOutError,
    UnknownServerError,
)
from pykafka_core.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    Message,
    TxnOffsetCommitRequest,
)
from tests.faults.history import Outcome
from tests.simulation.clients.script import Ask, Put, Script, Wait
from tests.simulation.core import Produce
from tests.simulation.prepared import PARTITIONS, TOPIC
from tests.simulation.world import World

RETRIED = {
    None,
    ConcurrentTransactionsError.code,
    CoordinatorLoadInProgressError.code,
    CoordinatorNotAvailableError.code,
    NotCoordinatorError.code,
    RequestTimedOutError.code,
    UnknownServerError.code,
}
TRIES = 8
TRIES_CALM = 200
TIMEOUTS_MS = (2_000, 10_000, 60_000)

Step = Generator[Ask | Put | Wait, Any, Any]


class Fenced(Exception):
    """The producer cannot continue with its epoch."""


@dataclass(slots=True)
class Producer:
    """The state of one producer."""

    world: World
    name: str
    transactional_id: str
    is_tv2: bool
    identity: tuple[int, int] = (-1, -1)
    sequences: dict[int, int] = field(default_factory=dict)
    added: set[int] = field(default_factory=set)
    has_group: bool = False

    def script(self) -> Script:
        """Run some transactions, then end."""
        random = self.world.random
        yield Wait(random.choice((0, 0, 50, 1_000)))
        for _ in range(random.choice((2, 3, 5))):
            if self.world.is_calm and self.world.chance(0.7):
                return
            try:
                yield from self._transaction()
            except Fenced:
                self.identity = (-1, -1)
                if self.world.chance(0.3):
                    return

    # One transaction.

    def _transaction(self) -> Step:
        world, random = self.world, self.world.random
        if self.identity == (-1, -1):
            yield from self._init()
        name = f"{self.name}/{next(world.names)}"
        world.invariants.recorder.aborts(name)
        self.added, self.has_group = set(), False
        is_good = True
        for _ in range(random.randrange(1, 5)):
            if self.chance_to_rest():
                yield Wait(random.choice((10, 500, 3_000, 15_000)))
            step = self._send_offsets if world.chance(0.25) else self._send
            is_good = yield from step(name)
            if not is_good:
                break
        if world.chance(0.05):
            self.identity = (-1, -1)  # abandon the transaction
            return
        yield from self._end(name, commit=is_good and world.chance(0.8), is_good=is_good)

    def chance_to_rest(self) -> bool:
        """Return whether the producer pauses."""
        return self.world.chance(0.1)

    def _init(self) -> Step:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.world.random.choice(TIMEOUTS_MS),
            producer_id=self.identity[0],
            producer_epoch=self.identity[1],
        )
        response = yield from self._ask(request, 5 if self.is_tv2 else 4)
        if response is None or response.error_code:
            raise Fenced
        self._renew((response.producer_id, response.producer_epoch))

    def _renew(self, identity: tuple[int, int]) -> None:
        if identity != self.identity:
            self.sequences = {}
        self.identity = identity

    def _send(self, transaction: str) -> Step:
        world = self.world
        index = world.random.randrange(PARTITIONS)
        if not self.is_tv2 and index not in self.added and not (yield from self._add(index)):
            return False
        record = Produce(
            world.partition(index),
            self.transactional_id,
            self.identity,
            self.sequences.get(index, 0),
            f"{transaction}:{next(world.names)}".encode(),
            self.is_tv2,
        )
        world.invariants.recorder.writes(transaction, index, record)
        self.added.add(index)
        code = yield from self._retry(Put(record))
        if code == 0:
            self.sequences[index] = record.sequence + 1
        return code == 0

    def _add(self, index: int) -> Step:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[index])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.identity[0],
            v3_and_below_producer_epoch=self.identity[1],
            v3_and_below_topics=[topic],
        )
        response = yield from self._ask(request, 3)
        return response is not None and code_of(response) == 0

    def _send_offsets(self, transaction: str) -> Step:
        world, group = self.world, f"x-{self.transactional_id}"
        index, offset = world.random.randrange(PARTITIONS), next(world.names)
        if not self.is_tv2 and not self.has_group:
            request: Message = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.identity[0],
                producer_epoch=self.identity[1],
                group_id=group,
            )
            response = yield from self._ask(request, 3)
            if response is None or response.error_code:
                return False
        self.has_group = True
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=f"m{offset}"
        )
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=TOPIC, partitions=[partition]
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.identity[0],
            producer_epoch=self.identity[1],
            topics=[topic],
        )
        world.invariants.recorder.offset_in(transaction, group, index, offset)
        response = yield from self._ask(request, 5 if self.is_tv2 else 4)
        return response is not None and code_of(response) == 0

    def _end(self, name: str, *, commit: bool, is_good: bool) -> Step:
        recorder = self.world.invariants.recorder
        if not self.added and not self.has_group:
            return
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.identity[0],
            producer_epoch=self.identity[1],
            committed=commit,
        )
        if commit:
            recorder.may_commit(name)
        response = yield from self._ask(request, 5 if self.is_tv2 else 4)
        if response is None or response.error_code:
            raise Fenced
        if commit:
            recorder.ended(name, Outcome.COMMITTED)
        if self.is_tv2:
            self._renew((response.producer_id, response.producer_epoch))
        elif not is_good:
            # The last record may still be in flight: it needs a new epoch (KIP-360).
            yield from self._init()

    # Asking.

    def _ask(self, request: Message, version: int) -> Step:
        """Return the response; None after some failed attempts."""
        return (yield from self._retry(Ask(request, version)))

    def _retry(self, what: Ask | Put) -> Step:
        tries = 0
        while tries < (TRIES_CALM if self.world.is_calm else TRIES):
            tries += 1
            response = yield what
            if code_of(response) not in RETRIED:
                return response
            if self.world.chance(0.15):
                break
            yield Wait(self.world.random.choice((1, 20, 100)))
        return None


def code_of(response: Any) -> int | None:
    """Return the first error in a response, 0 if it has no error, None if it was lost."""
    if response is None or isinstance(response, int):
        return response
    codes = [getattr(response, "error_code", 0)]
    for topic in getattr(response, "topics", None) or ():
        codes += [row.error_code for row in topic.partitions]
    for topic in getattr(response, "results_by_topic_v3_and_below", None) or ():
        codes += [row.partition_error_code for row in topic.results_by_partition]
    return next((code for code in codes if code), 0)


def producers(world: World) -> dict[str, Script]:
    """Return producers of one to three ids; some ids are shared by two producers."""
    scripts: dict[str, Script] = {}
    for number in range(world.random.choice((1, 2, 2, 3))):
        twins = 2 if world.chance(0.4) else 1
        for twin in range(twins):
            name = f"p{number}{'ab'[twin]}"
            is_tv2 = world.chance(0.5)
            scripts[name] = Producer(world, name, f"t{number}", is_tv2).script()
    return scripts
