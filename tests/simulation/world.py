"""One seeded history: clients, a broker on a faulty core, and a clock; the next actor is random."""

import hashlib
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from pykafka_core.types import PartitionId
from tests.simulation.clients.script import (
    Ask,
    Client,
    Put,
    Script,
    Sent,
    Wait,
    harms_next_transaction,
)
from tests.simulation.core import Door, SimulatedCore
from tests.simulation.faults import FAILURES, NO_FAULTS, Faults
from tests.simulation.leadership import Leadership
from tests.simulation.prepared import SETTINGS, TOPIC, exhaust, prepared_logs
from tests.simulation.rules.invariants import Invariants, Violation
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import Marker

NS_PER_MS = 1_000_000
JUMPS_MS = (1, 5, 100, 700, 3_000, 12_000, 61_000)
SETTLING_MS = 200_000
"""Longer than every timeout of every client."""
STEPS_MAX = 20_000


class World(Door):
    """Runs one seed.

    Args:
        seed: Determines everything.
        scripts: Factory of the clients.
    """

    def __init__(self, seed: int, scripts: Callable[["World"], dict[str, Script]]) -> None:
        self.random = Random(seed)
        self.ticks = count(1)
        self.digest = hashlib.blake2b(digest_size=16)
        self.faults = NO_FAULTS
        self.is_calm = False
        self.names = count(1)
        logs, first_id = prepared_logs()
        if self.chance(0.25):
            exhaust(logs, "t0", self.random.randrange(5))
        self.core = SimulatedCore(self, logs)
        self.broker = SimulatedBroker(SETTINGS, self.core, count(first_id))
        self._sent: dict[int, tuple[Sent, Any]] = {}
        self._outgoing: list[Sent] = []
        self._late: list[tuple[int, Sent]] = []
        """Requests that arrive after their clients' timeouts, with their arrival times."""
        self._incoming: list[tuple[Sent, Any]] = []
        self.broker.run()
        self.topic_id = self.broker.image.topics.by_name[TOPIC].topic_id
        self.invariants = Invariants(self)
        self.leadership = Leadership(self)
        self.clients = [Client(name, script) for name, script in scripts(self).items()]
        self.faults = Faults.drawn(self.random)

    # The clients' view.

    def now(self) -> float:
        """Return a time after that of the previous call, for the order of events."""
        return float(next(self.ticks))

    def partition(self, index: int) -> PartitionId:
        """Return a partition of the clients' topic."""
        return self.topic_id, index

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < probability

    # The run.

    def run(self) -> str:
        """Run with faults, then without; return the digest of all events."""
        steps = self.random.choice((100, 200, 400, 600))
        for _ in range(steps):
            if all(client.is_over for client in self.clients):
                break
            self.step()
        self.faults, self.is_calm = NO_FAULTS, True
        self.leadership.regain_all()
        for _ in range(STEPS_MAX):
            if all(client.is_over for client in self.clients):
                break
            self.step()
        else:
            raise Violation(
                "clients never end", [one.name for one in self.clients if not one.is_over]
            )
        self._settle()
        self.invariants.at_end()
        return self.digest.hexdigest()

    def step(self) -> None:
        """Execute one random action."""
        timers = self.broker.control.timers
        is_due = self.core.has_events or timers.next_due_ns() <= self.core.clock_ns
        actions: list[Callable[[], None]] = [self._turn] * (3 if is_due else 0)
        if self._outgoing:
            actions += [self._deliver] * 3
        if self._incoming:
            actions += [self._hand_over] * 3
        if self._held():
            actions += [self._complete] * 4
        if not actions:
            actions = [self._to_next]
        elif self.chance(0.1):
            actions += [self._tick] * 2
        if self.chance(self.faults.restart):
            actions = [self._restart]
        elif self.chance(self.faults.move):
            actions = [self._move]
        elif self.chance(self.faults.jump):
            actions = [self._jump]
        action = self.random.choice(actions)
        self._note(action.__name__)
        action()
        self._wake()
        self.invariants.after_step()

    def _settle(self) -> None:
        """Execute everything that is due."""
        until_ns = self.core.clock_ns + SETTLING_MS * NS_PER_MS
        while True:
            self._work_off()
            due_ns = self.broker.control.timers.next_due_ns()
            if due_ns > until_ns:
                return
            self._pass_to(max(due_ns, self.core.clock_ns))

    def _work_off(self) -> None:
        self._outgoing += [sent for _, sent in self._late]
        self._late.clear()
        self._run_broker(256)
        while self._outgoing or self.core.waiting or self.core.has_events:
            if self._outgoing:
                self._deliver()
            for partition in self._held():
                self.core.complete(partition)
            self._run_broker(256)
            self.invariants.after_step()

    def _note(self, *what: object) -> None:
        self.digest.update(repr(what).encode())

    def _held(self) -> list[PartitionId]:
        return sorted(self.core.waiting)

    # The broker.

    def _turn(self) -> None:
        self._run_broker(self.random.choice((1, 3, 256)))

    def _run_broker(self, events_max: int) -> None:
        dispatcher, core = self.broker.dispatcher, self.core
        for event in core.wait(core.clock_ns, events_max):
            dispatcher.take(event)
        while dispatcher.advance():
            pass
        if self.broker.control.timers.run(core.horizon_ns()):
            while dispatcher.advance():
                pass

    def _complete(self) -> None:
        partition = self.random.choice(self._held())
        code = self.random.choice(FAILURES) if self.chance(self.faults.fail) else 0
        self._note(partition, code)
        self.core.complete(partition, code)

    def _restart(self) -> None:
        self.core.crash(lambda held: self.random.randrange(held + 1))
        old, lost = self.core, self._sent
        self.core = SimulatedCore(self, old.logs)
        self.core.clock_ns, self.core.clock_ms = old.clock_ns, old.clock_ms
        self.broker = SimulatedBroker(SETTINGS, self.core, self.broker.ids)
        self._sent = {}
        for sent, _ in lost.values():
            self._lose(sent)

    def _move(self) -> None:
        self.leadership.change()

    # Time.

    def _to_next(self) -> None:
        """Advance the clock to the next event."""
        wakes = [client.wake_ns for client in self.clients if client.wake_ns is not None]
        wakes += [due_ns for due_ns, _ in self._late]
        wakes.append(self.broker.control.timers.next_due_ns())
        soonest, now_ns = min(wakes), self.core.clock_ns
        self._pass_to(max(min(soonest, now_ns + JUMPS_MS[-1] * NS_PER_MS), now_ns))

    def _tick(self) -> None:
        self._pass(self.random.choice(JUMPS_MS[:4]))

    def _jump(self) -> None:
        self._pass(self.random.choice(JUMPS_MS))

    def _pass(self, duration_ms: int) -> None:
        self._pass_to(self.core.clock_ns + duration_ms * NS_PER_MS)

    def _pass_to(self, now_ns: int) -> None:
        self.core.clock_ms += (now_ns - self.core.clock_ns) // NS_PER_MS
        self.core.clock_ns = now_ns

    # Clients.

    def _wake(self) -> None:
        now_ns = self.core.clock_ns
        if self._late:
            self._outgoing += [sent for due_ns, sent in self._late if due_ns <= now_ns]
            self._late = [(due_ns, sent) for due_ns, sent in self._late if due_ns > now_ns]
        for client in self.clients:
            if client.wake_ns is not None and client.wake_ns <= self.core.clock_ns:
                self._resume(client, None)

    def _resume(self, client: Client, result: Any) -> None:
        client.call += 1
        client.wake_ns = None
        try:
            what = client.script.send(result)
        except StopIteration:
            client.is_over = True
            return
        if isinstance(what, Wait):
            client.wake_ns = self.core.clock_ns + what.duration_ms * NS_PER_MS
        else:
            client.wake_ns = self.core.clock_ns + 30_000 * NS_PER_MS
            sent = Sent(client, client.call, what)
            if self.chance(self.faults.lost):
                self._lose(sent)
                if self.chance(0.5):
                    delay_ms = self.random.choice(JUMPS_MS)
                    self._late.append((self.core.clock_ns + delay_ms * NS_PER_MS, sent))
            else:
                self._outgoing.append(sent)

    def _lose(self, sent: Sent) -> None:
        """Lose a request; its client soon sees a broken connection."""
        if not sent.is_given_up:
            sent.client.wake_ns = self.core.clock_ns + self.random.choice(JUMPS_MS[:4]) * NS_PER_MS

    def _deliver(self) -> None:
        sent = self._outgoing.pop(self.random.randrange(len(self._outgoing)))
        what = sent.what
        if sent.is_given_up and harms_next_transaction(what):
            return
        if isinstance(what, Put):
            self._note(sent.client.name, what.record)
            self.core.produce(what.record, lambda code: self._on_produced(sent, code))
        else:
            self._note(sent.client.name, type(what.request).__name__)
            request = self.broker.send(what.request, what.version)
            self._sent[request] = (sent, self.invariants.before(what.request))

    def _on_produced(self, sent: Sent, code: int) -> None:
        assert isinstance(sent.what, Put)
        if code == 0:
            self.invariants.produced(sent.what.record)
        self._queue_response(sent, code)

    def begins(self, partition: PartitionId, producer: tuple[int, int]) -> None:
        self.invariants.begins(partition, producer)

    def marks(self, marker: Marker) -> None:
        self.invariants.marks(marker)

    def replied(self, request: int, body: bytes) -> None:
        if request not in self._sent:
            return
        sent, before = self._sent.pop(request)
        assert isinstance(sent.what, Ask)
        self.digest.update(body)
        response = self.broker.response(request)
        assert response is not None
        self.invariants.replied(sent.what.request, response, before)
        self._queue_response(sent, response)

    def _queue_response(self, sent: Sent, response: Any) -> None:
        if self.chance(self.faults.lost):
            self._lose(sent)
        else:
            self._incoming.append((sent, response))

    def _hand_over(self) -> None:
        sent, response = self._incoming.pop(self.random.randrange(len(self._incoming)))
        if not sent.is_given_up:
            self._resume(sent.client, response)
