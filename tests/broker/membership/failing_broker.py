"""Broker 1 of three, whose disk and files fail on demand, with real handlers of a controller."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import pytest

from pykafka_core._core import DiskState, Maintained, PartitionState
from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.membership.assignments import PAUSE_NS, Assignments
from pykafka_core.broker.runtime.membership.lifecycle import Joining, Lifecycle
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.config import BrokerConfigs
from pykafka_core.errors import KafkaStorageError
from pykafka_core.metadata.directories import lost_by
from pykafka_core.metadata.image.features import METADATA_VERSION
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import FeatureLevelRecord, Message
from tests.broker.membership.asked_channel import AskedChannel
from tests.handlers.cluster_world import CLUSTER_ID, TOPIC_ID, ClusterWorld, directory
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core, LogFault, PartitionId
    from pykafka_core.broker.runtime.membership.controller_channel import ControllerChannel
    from pykafka_core.broker.runtime.metadata.publisher import Publisher

OWN, SECOND, THIRD = 1, 2, 3
HEARTBEAT_MS, SESSION_MS = 2000, 9000
HEARTBEAT_NS = HEARTBEAT_MS * 1_000_000
NO_SPACE = (KafkaStorageError.code, -1)
QUICK = (0, 1)


class _Core(FakeCore):
    """A disk with a result for probes (None while it hangs) and a wait for each partition.

    Attributes:
        tick_ns: How far the clock advances whenever it is read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.probe: tuple[int, int] | None = QUICK
        self.waits_ms: dict[int, int] = {}
        self._probe_token = 0
        self.needed_space = False
        self.tick_ns = 0

    def now_ns(self) -> int:
        self.clock_ns += self.tick_ns
        return self.clock_ns

    def stalled(self, wait_ns_min: int) -> "Sequence[PartitionId]":
        waits = self.waits_ms.items()
        return [(TOPIC_ID, index) for index, ms in waits if ms * 1_000_000 > wait_ns_min]

    def probe_disk(self, token: int, *, needs_space: bool) -> None:
        self._probe_token = token
        self.needed_space = needs_space

    def end_probe(self) -> None:
        """Complete the running probe, unless the disk hangs."""
        if self._probe_token and self.probe is not None:
            self.push(Maintained(self._probe_token, *self.probe))
            self._probe_token = 0


class _Publisher(NamedTuple):
    """What `Assignments` needs of a `Publisher`."""

    of: Callable[[], MetadataImage]
    settings: BrokerConfigs

    @property
    def image(self) -> MetadataImage:
        return self.of()


class FailingBroker(AskedChannel):
    """Control plane of the broker. `settle` has the controller decide its requests.

    Attributes:
        decides: Decides a request; the world, unless a test sets another.
        comparisons_count: How often the active controller on this node had to compare disks.
    """

    def __init__(self, *assignments: Sequence[int], min_isr: int = 1, level: int = 29) -> None:
        super().__init__()
        self.world = ClusterWorld((OWN, SECOND, THIRD), min_isr=min_isr)
        self.world.commit(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))
        self.world.make_topic(*assignments)
        self.decides: Callable[[Message], Message | None] = self.world.ask
        self.requests: list[Message] = []
        self.comparisons_count = 0
        self.core = _Core()
        self._services = create_services(cast("Core", self.core))
        self.begin()

    def begin(self) -> None:
        """A process of the broker serves."""
        self._services = create_services(cast("Core", self.core))
        lifecycle = Lifecycle(
            self._services,
            channel=cast("ControllerChannel", self),
            joining=Joining(
                identity=Identity(CLUSTER_ID, OWN, directory(OWN)),
                incarnation_id=bytes(16),
                listeners=(),
                rack=None,
                previous_epoch=-1,
                heartbeat_ms=HEARTBEAT_MS,
                session_ms=SESSION_MS,
            ),
            metadata_offset=lambda: self.world.end_offset - 1,
            cordoned=lambda: None,
            refused=pytest.fail,
        )
        lifecycle.epoch = self.world.processes[OWN].epoch
        publisher = _Publisher(lambda: self.world.image, BrokerConfigs({}))
        self.assignments = Assignments(
            self._services,
            channel=cast("ControllerChannel", self),
            lifecycle=lifecycle,
            publisher=cast("Publisher", publisher),
            compare_disks=self._compare_disks,
        )
        self.settle()

    def _compare_disks(self) -> None:
        self.comparisons_count += 1

    def settle(self) -> None:
        """Have requests decided until there is none."""
        self.assignments.follow()
        self._pass(PAUSE_NS)
        while self.asked:
            request, _ = self.asked[0]
            self.requests.append(request)
            self.respond(self.decides(request))
            self._pass(PAUSE_NS)

    def pass_heartbeats(self, count: int = 1) -> None:
        """Advance the clock by so many intervals."""
        self.pass_looks(2 * count)

    def pass_looks(self, count: int) -> None:
        """Advance the clock by so many halves of an interval."""
        for _ in range(count):
            self._pass(HEARTBEAT_NS // 2)
            self.settle()

    def turn(self) -> None:
        """The control thread takes one turn."""
        self.core.clock_ns += PAUSE_NS
        self._services.timers.run(self.core.now_ns())

    def fill_disk(self) -> None:
        """No write finds space from now on."""
        self.core.probe = NO_SPACE
        self.note_disk("full")

    def free_disk(self) -> None:
        """There is space, and the disk is quick."""
        self.core.probe = QUICK

    def note_disk(self, state: Literal["ok", "full", "failed"]) -> None:
        """The core reports the disk."""
        self.assignments.note_disk(DiskState(state, "a reason"))
        self.settle()

    def note_partition(self, *faults: "LogFault") -> None:
        """The core reports the first partition."""
        self.note_partition_only(0, *faults)
        self.settle()

    def note_partition_only(self, index: int, *faults: "LogFault") -> None:
        """Report a partition without a turn of the control thread."""
        event = PartitionState(TOPIC_ID, index, dict.fromkeys(faults, "a reason"))
        self._services.replicas.note((TOPIC_ID, index), event.faults)
        self.assignments.note_partition(event)

    def has_lost(self, index: int = 0) -> bool:
        """Whether the controller takes this broker's replica for lost."""
        return OWN in lost_by(self.world.partition(index))

    def leader(self, index: int = 0) -> int:
        """Committed leader of a partition."""
        return self.world.partition(index).leader

    def _pass(self, duration_ns: int) -> None:
        self.core.clock_ns += duration_ns
        self._run()
        self.core.end_probe()
        self._run()

    def _run(self) -> None:
        for event in self.core.wait(0):
            assert isinstance(event, Maintained)
            completed = Completed(event.error_code, event.offset)
            self._services.completions.complete(event.token, completed)
        self._services.timers.run(self.core.now_ns())
