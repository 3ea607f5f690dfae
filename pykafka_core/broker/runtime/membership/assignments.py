"""Reports the directories of this broker's replicas, as Kafka's ``AssignmentsManager`` does.

`Resignation` decides. This module passes it the findings of the core, and sends its changes to the
controller.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.membership.controller_channel import (
    ControllerApi,
    ControllerChannel,
)
from pykafka_core.broker.runtime.membership.lifecycle import Lifecycle
from pykafka_core.broker.runtime.membership.resignation import (
    Change,
    Probe,
    Resignation,
)
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.services import Services
from pykafka_core.broker.runtime.time_slice import TIME_SLICE_NS, advanced
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.handlers.outcome import Work
from pykafka_core.metadata.directories import LOST
from pykafka_core.metadata.image.features import DIRECTORY_ASSIGNMENT_LEVEL, METADATA_VERSION
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    Message,
)
from pykafka_core.types import NS_PER_MS, PartitionId

if TYPE_CHECKING:
    from pykafka_core import _core

ASSIGNMENT: Final = ControllerApi(73, (0, 0))
PURPOSE: Final = "directories"
CHANGES_MAX: Final = 2000
"""In one request: Kafka's brokers ask for at most 2,250."""
PAUSE_NS: Final = 250 * NS_PER_MS
"""Between two looks at the image, each of which goes through all partitions."""
SHARE_MAX: Final = 0.1
"""Part of the control thread that such looks may take."""
QUICK_PART: Final = 8
"""Part of the bound of stalls within which a disk is quick."""

REVIEW_MS: Final = 10_000
"""Interval of looks at the image without a hint: a request without a response may be carried out
after any time."""

_log = GuardedLogger(__name__)


class Assignments:
    """One broker's requests. Belongs to the control thread.

    Args:
        services: Has the core, whose disk it is.
        channel: To the active controller.
        lifecycle: This broker's membership.
        publisher: Has the committed image and the settings.
        compare_disks: Called while a client waits for the disk. The active controller on this node
            then finds out in time whether other nodes have faster disks.
    """

    def __init__(
        self,
        services: Services,
        *,
        channel: ControllerChannel,
        lifecycle: Lifecycle,
        publisher: Publisher,
        compare_disks: Callable[[], object],
    ) -> None:
        self._core = services.core
        self._completions = services.completions
        self._timers = services.timers
        self._channel = channel
        self._lifecycle = lifecycle
        self._publisher = publisher
        joining = lifecycle.joining
        self._session_ms = joining.session_ms
        self._stall_ms_max = max(joining.session_ms - 2 * joining.heartbeat_ms, 1)
        self._quick_ms = max(self._stall_ms_max // QUICK_PART, 1)
        self._replicas = services.replicas
        self._resignation = Resignation(
            lifecycle.node_id,
            joining.identity.directory_id,
            joining.heartbeat_ms * NS_PER_MS,
            services.replicas,
        )
        self._is_watching = True
        """Whether there may be changes; an earlier process may have reported lost replicas."""
        self._is_due = self._is_wanted = self._is_asking = False
        """Whether a look is due or running, another one follows it, and a request is open."""
        self._free_ns = 0
        """When the next look at the image may be."""
        self._probed_ns: int | None = None
        """Begin of the running probe."""
        self._compare_disks = compare_disks
        self._compared_ms = self._quick_ms
        """Wait of a client after which disks are compared."""
        now_ns = self._core.now_ns()
        look_ms = max(joining.heartbeat_ms // 2, 1)
        self._timers.every("a look at the disk", look_ms, now_ns, self._look)
        self._timers.every("a look at lost replicas", REVIEW_MS, now_ns, self._later)

    def note_partition(self, event: "_core.PartitionState") -> None:
        """Check the image if `Replicas` has a state of the partition."""
        if self._replicas.state_of((event.topic_id, event.partition)) is not None:
            self._later()

    def note_disk(self, event: "_core.DiskState") -> None:
        """Note a full disk. An error concerns one partition, and probes find space."""
        if event.state == "full":
            self._resignation.note_full()
            self._probe()

    def follow(self) -> None:
        """Check the new image."""
        if self._is_watching:
            self._later()

    # The disk.

    def _look(self) -> None:
        """Find stalls and probe, twice in a heartbeat interval."""
        now_ns = self._core.now_ns()
        stalls = self._core.stalled(self._stall_ms_max * NS_PER_MS)
        self._resignation.note_stalls(now_ns, frozenset(stalls))
        if self._probed_ns is not None:
            if now_ns - self._probed_ns > self._stall_ms_max * NS_PER_MS:
                self._note_probe(Probe.FAILED, "a probe hangs")
        elif self._resignation.wants_probe:
            self._probe()
        self._compare()
        if self._is_watching or not self._resignation.is_idle:
            self._later()

    def _compare(self) -> None:
        """Compare disks once a client waits, and again once one waits twice as long.

        On slow disks each comparison costs the controller a write.
        """
        if self._core.stalled(self._compared_ms * NS_PER_MS):
            if self._may_ask(self._publisher.image):
                self._compared_ms *= 2
                self._compare_disks()
        elif not self._core.stalled(self._quick_ms * NS_PER_MS):
            self._compared_ms = self._quick_ms

    def _probe(self) -> None:
        if self._probed_ns is None:
            self._probed_ns = self._core.now_ns()
            token = self._completions.open(self._on_probed)
            self._core.probe_disk(token, needs_space=self._resignation.needs_space)

    def _on_probed(self, completed: Completed) -> None:
        self._probed_ns = None
        if completed.error_code:
            self._note_probe(Probe.FAILED, "a probe failed")
            return
        reason = f"a probe took {completed.offset} ms"
        if completed.offset > self._stall_ms_max // 2:
            self._note_probe(Probe.FAILED, reason)
        elif completed.offset > self._quick_ms:
            self._note_probe(Probe.MEDIOCRE, reason)
        else:
            self._note_probe(Probe.QUICK, reason)

    def _note_probe(self, probe: Probe, reason: str) -> None:
        if not self._resignation.note_probe(self._core.now_ns(), probe):
            return
        if self._resignation.trusts_disk:
            _log.info("the disk works again (%s): this broker follows its leaders", reason)
        else:
            _log.error("the disk fails (%s): other replicas in sync are to lead", reason)
        self._later()

    # Requests.

    def _later(self) -> None:
        """Start a look after this call."""
        self._is_wanted = True
        if not self._is_due:
            self._is_due = True
            due_ns = max(self._core.now_ns(), self._free_ns)
            self._timers.once("directories", due_ns, self._on_due)

    def _on_due(self) -> None:
        self._is_wanted = False
        self._advance(self._review(), 0)

    def _advance(self, review: Work[None], spent_ns: int) -> None:
        """Continue a look for one turn; the thread handles other events between turns."""
        begun_ns, is_over = self._core.now_ns(), True
        try:
            is_over = advanced(review, self._core, begun_ns + TIME_SLICE_NS)
        finally:
            now_ns = self._core.now_ns()
            spent_ns += now_ns - begun_ns
            if is_over:
                self._free_ns = now_ns + max(PAUSE_NS, int(spent_ns / SHARE_MAX))
                self._is_due = False
        if not is_over:
            self._timers.once("directories", now_ns, partial(self._advance, review, spent_ns))
        elif self._is_wanted:
            self._later()

    def _review(self) -> Work[None]:
        """Ask for the changes that are due."""
        self._is_watching = True
        if self._is_asking or not self._may_ask(self._publisher.image):
            return
        now_ns = self._core.now_ns()
        found = yield from self._resignation.changes(now_ns, *self._judged_by())
        image, rules = self._judged_by()  # The image may be newer than the one that was looked at.
        if not self._may_ask(image):
            return
        changes = self._resignation.still_due(now_ns, image, rules, found[:CHANGES_MAX])
        if changes:
            self._ask(changes)
        else:
            self._is_watching = not self._resignation.is_idle

    def _judged_by(self) -> tuple[MetadataImage, PartitionRules]:
        image = self._publisher.image
        return image, PartitionRules(image, self._publisher.settings)

    def _may_ask(self, image: MetadataImage) -> bool:
        own = image.brokers.get(self._lifecycle.node_id)
        level = image.features.get(METADATA_VERSION, 0)
        is_current = own is not None and own.epoch == self._lifecycle.epoch and own.is_active
        return is_current and level >= DIRECTORY_ASSIGNMENT_LEVEL

    def _ask(self, changes: Sequence[Change]) -> None:
        self._is_asking = True
        request = _request(self._lifecycle, changes)

        def on_response(response: Message | None) -> None:
            self._is_asking = False
            self._on_response(changes, cast("AssignReplicasToDirsResponse | None", response))
            self._later()

        self._channel.ask(ASSIGNMENT, request, self._session_ms, on_response, PURPOSE)

    def _on_response(
        self, changes: Sequence[Change], response: AssignReplicasToDirsResponse | None
    ) -> None:
        accepted = _accepted(response)
        now_ns = self._core.now_ns()
        done = [change for change in changes if (change.directory, change.place) in accepted]
        for change in changes:
            is_refused = (change.directory, change.place) not in accepted
            self._resignation.note_response(now_ns, change, is_refused=is_refused)
        back = [change for change in done if change.directory != LOST]
        _log.info(
            "%d replicas are lost until they can be written, %d follow again; %d changes refused",
            len(done) - len(back),
            len(back),
            len(changes) - len(done),
        )


def _request(lifecycle: Lifecycle, changes: Sequence[Change]) -> AssignReplicasToDirsRequest:
    of = AssignReplicasToDirsRequest
    by_directory: dict[bytes, dict[bytes, list[AssignReplicasToDirsRequest.PartitionData]]] = {}
    for change in changes:
        topics = by_directory.setdefault(change.directory, {})
        partitions = topics.setdefault(change.topic_id, [])
        partitions.append(of.PartitionData(partition_index=change.partition))
    return of(
        broker_id=lifecycle.node_id,
        broker_epoch=lifecycle.epoch,
        directories=[
            of.DirectoryData(
                id=directory,
                topics=[
                    of.TopicData(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in topics.items()
                ],
            )
            for directory, topics in by_directory.items()
        ],
    )


def _accepted(
    response: AssignReplicasToDirsResponse | None,
) -> frozenset[tuple[bytes, PartitionId]]:
    """Changes that the controller made; empty without a response."""
    if response is None or response.error_code:
        return frozenset()
    return frozenset(
        (directory.id, (topic.topic_id, partition.partition_index))
        for directory in response.directories
        for topic in directory.topics
        for partition in topic.partitions
        if partition.error_code == 0
    )
