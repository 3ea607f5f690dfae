"""The steps of a broker's start, before its control thread runs.

1. The identity is read from meta.properties, or created; the core locks the directory.
2. The reserve for a full disk is filled; if space is short, deleted partitions are removed first.
3. The core opens only the metadata log; snapshot and log are replayed into an image. If there are
   partitions on the disk, the image must contain one of them.
4. A new identity is written; then a new epoch, which is stored in quorum-state before any record is
   written in it.
5. Listeners are bound; the epoch's first records are committed: LeaderChange, the bootstrap records
   of a new directory, this broker's registration, and the elections of its partitions.
6. The core applies the whole image, and serves.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from pykafka_core._core import Appended, Core, DiskState, PartitionState
from pykafka_core.broker.core_bridge.core_types import CoreTypes
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.core_bridge.projection import Projection, metadata_log
from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.metadata.quorum_driver import QuorumDriver
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.broker.start.control_plane import assemble
from pykafka_core.broker.start.listeners import listen
from pykafka_core.broker.start.loading import (
    Loaded,
    formatted_records,
    load,
    report_kept,
    whole_log,
)
from pykafka_core.broker.start.lost_metadata import find_lost
from pykafka_core.broker.start.registration import follow_cordoned, registration
from pykafka_core.broker.start.startup_config import Started, StartupConfig, among_several
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.reserve import Need
from pykafka_core.broker.storage.snapshots import Snapshots
from pykafka_core.errors import ClusterError, KafkaError, MetadataError, StorageError, error_of
from pykafka_core.metadata.elections import elections
from pykafka_core.metadata.image.image import Endpoint
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.partition_rules import MIN_ISR
from pykafka_core.metadata.records.bootstrap import bootstrap_records, with_min_isr
from pykafka_core.metadata.records.codec import encode
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.protocol.messages import (
    AbortTransactionRecord,
    Message,
)
from pykafka_core.quorum.quorum import BATCH_BYTES_SOFT_MAX, Committed, Proposal, Rejected
from pykafka_core.quorum.single_voter import SingleVoter
from pykafka_core.quorum.values import ElectionState, OffsetAndEpoch

if TYPE_CHECKING:
    from pykafka_core._core import Event

APPEND_WAIT_NS = 30 * 10**9
"""If a batch takes longer at the start, the disk counts as failed."""


def start(core: Core, types: CoreTypes, plan: StartupConfig) -> Started:
    """Start a broker on a new core.

    Raises:
        MetadataError: The metadata is damaged, or has records that this version does not know.
        StorageError: The disk is full and the reserve used up, or the disk has failed.
    """
    try:
        return _Startup(core, types, plan).run()
    except KafkaError as error:
        raise StorageError(_unusable(core, plan, error)) from error


def _unusable(core: Core, plan: StartupConfig, error: KafkaError) -> str:
    """Return the partition's reason why the metadata log cannot be used, and advice."""
    why = next((reason for event in core.wait(0) for reason in _reasons(event)), error.name)
    place = plan.directory.path if plan.directory else "memory"
    return (
        f"the metadata log of {place} cannot be used: {why}; free some space on its disk, or look for "
        f"damage with `pykafka-core repair {place}` and restore the files of __cluster_metadata-0"
    )


def _reasons(event: "Event") -> Iterable[str]:
    match event:
        case PartitionState():
            return event.faults.values()
        case DiskState(state="full" | "failed"):
            return [event.reason]
        case _:
            return []


class _Startup:
    def __init__(self, core: Core, types: CoreTypes, plan: StartupConfig) -> None:
        self._core = core
        self._plan = plan
        self._identity = plan.identity
        self._types = types
        self._services = create_services(core)
        self._completions = self._services.completions
        self._reserve = plan.directory.reserve if plan.directory else None

    def run(self) -> Started:
        directory = self._plan.directory
        if directory is not None:
            directory.make_room()
            directory.prepare_metadata()
        epoch = 1 if directory is None else directory.last_epoch() + 1
        on_disk = directory is not None
        own_id, settings = self._identity.node_id, self._plan.settings
        self._core.apply(metadata_log(self._types, own_id, settings, epoch, on_disk=on_disk))
        loaded = load(self._core, directory)
        if directory is not None:
            self._check_alone(directory, loaded)
            self._check_not_lost(directory, loaded)
            directory.claim(self._identity)
            directory.write_election(ElectionState(epoch, self._identity.node_id))
        end = self._core.offsets(METADATA_PARTITION).log_end_offset
        voter = SingleVoter(
            self._identity.node_id,
            epoch,
            end,
            directory_id=self._identity.directory_id,
            kraft_version=_kraft_version(loaded),
        )
        quorum = QuorumDriver(self._core, self._completions, voter)
        bound, endpoints = listen(self._core, self._plan.settings.start)
        self._first_records(quorum, loaded.replay, endpoints)
        publisher = Publisher(
            core=self._core,
            projection=Projection(
                self._types, own_id, settings, lambda: quorum.quorum.kraft_version
            ),
            node_id=self._identity.node_id,
            replay=loaded.replay,
            faults=self._services.faults,
            snapshots=(snapshots := self._snapshots(directory, epoch, loaded, quorum)),
        )
        publisher.publish_whole()
        return self._serve(quorum, publisher, bound, endpoints, snapshots)

    def _snapshots(
        self, directory: DataDirectory | None, epoch: int, loaded: Loaded, quorum: QuorumDriver
    ) -> Snapshots | None:
        if directory is None:
            return None
        return Snapshots(
            core=self._core,
            directory=directory,
            settings=self._plan.settings,
            id_at=lambda end: OffsetAndEpoch(end, epoch),
            new_token=lambda: self._completions.open(report_kept),
            bytes_before=loaded.log_bytes,
            quorum=partial(_quorum_records, loaded, quorum),
        )

    def _serve(
        self,
        quorum: QuorumDriver,
        publisher: Publisher,
        bound: tuple[Endpoint, ...],
        endpoints: tuple[Endpoint, ...],
        snapshots: Snapshots | None,
    ) -> Started:
        control = assemble(
            self._services,
            node=self._plan.node,
            quorum=quorum,
            publisher=publisher,
            reserve=self._reserve,
        )
        self._core.serve()
        follow_cordoned(self._plan.node, publisher, control.dispatcher.ask)
        return Started(
            control=control,
            bound=bound,
            endpoints=endpoints,
            snapshots=snapshots,
            reserve=self._reserve,
        )

    def _check_alone(self, directory: DataDirectory, loaded: Loaded) -> None:
        """Refuse to lead alone if there were other voters, by the log after its newest snapshot, or
        by quorum-state.
        """
        own = self._identity.node_id
        if loaded.quorum.voters is None:
            followed = directory.election().leader_id
            is_one_of_several = followed not in (-1, own) or bool(directory.static_voters() - {own})
        else:
            from pykafka_core.broker.storage.voters import has_others  # rarely needed

            is_one_of_several = has_others(loaded.quorum, own)
        if is_one_of_several:
            raise ClusterError(among_several(directory))

    def _check_not_lost(self, directory: DataDirectory, loaded: Loaded) -> None:
        lost = find_lost(directory, loaded.replay.image(), whole_log(self._core))
        if lost is not None:
            raise MetadataError(f"{lost.text}: {lost.advice}")

    def _first_records(
        self, quorum: QuorumDriver, replay: Replay, endpoints: tuple[Endpoint, ...]
    ) -> None:
        clean = self._plan.clean_epoch is not None
        records: list[Message] = [AbortTransactionRecord()] if replay.in_transaction else []
        records += self._bootstrap_records() if not replay.image().features else []
        _apply(replay, self._commit(quorum, quorum.begin_epoch))
        end = quorum.quorum.log_end_offset
        records.append(self._registration(end + len(records), endpoints))
        records += elections(replay.image(), self._identity.node_id, clean=clean)
        for batch in _batches(records):
            values = [encode(record) for record in batch]
            proposal = Proposal(batch, values)
            _apply(replay, self._commit(quorum, partial(quorum.propose, proposal)))

    def _bootstrap_records(self) -> list[Message]:
        """Return the records of the formatted directory, or those of this version."""
        directory = self._plan.directory
        formatted = formatted_records(directory) if directory else None
        records = bootstrap_records() if formatted is None else formatted
        return with_min_isr(records, self._plan.settings.int(MIN_ISR))

    def _registration(self, offset: int, endpoints: tuple[Endpoint, ...]) -> Message:
        return registration(
            identity=self._identity,
            incarnation_id=self._plan.new_id(),
            broker_epoch=offset,
            endpoints=endpoints,
            rack=self._plan.settings.start.rack,
        )

    def _commit(self, quorum: QuorumDriver, begin: Callable[[], object]) -> Committed:
        """Start the commit of one batch and wait until it is committed."""
        while isinstance(ended := self._wait_end(quorum, begin), int):
            if self._reserve is None or not self._reserve.make_way(Need.START):
                name = error_of(ended).name
                raise StorageError(
                    f"the metadata log refused its first records with {name}: free some space on "
                    "the disk, or look for damage with pykafka-core repair"
                )
        return ended

    def _wait_end(self, quorum: QuorumDriver, begin: Callable[[], object]) -> Committed | int:
        """Return the batch, or the error code of its rejection."""
        begin()
        deadline = self._core.now_ns() + APPEND_WAIT_NS
        while self._core.now_ns() < deadline:
            if (notice := quorum.take_notice()) is not None:
                return notice.error_code if isinstance(notice, Rejected) else notice
            for done in self._core.wait(deadline):
                if isinstance(done, Appended):
                    completed = Completed(done.error_code, done.offset)
                    self._completions.complete(done.token, completed)
        raise StorageError("the metadata log did not take its first records in time")


def _kraft_version(loaded: Loaded) -> int:
    """Return the kraft.version in the log, else 0."""
    if loaded.quorum.kraft_version is None:
        return 0
    from pykafka_core.broker.storage.voters import kraft_version_of  # rarely needed

    return kraft_version_of(loaded.quorum)


def _quorum_records(loaded: Loaded, driver: QuorumDriver, end: int) -> QuorumRecords:
    """Return the quorum's own records before ``end``: the loaded ones, or those of this process."""
    raised = driver.quorum.raised
    if raised is None or end < raised.end:
        return loaded.quorum
    return QuorumRecords(*raised.values)


def _apply(replay: Replay, batch: Committed) -> None:
    replay.apply_batch(batch.first_offset, batch.last_offset, batch.records)


def _batches(records: list[Message]) -> list[list[Message]]:
    """Split the records so that each batch stays far below the limit; an election takes some 50
    bytes.
    """
    step = BATCH_BYTES_SOFT_MAX // 128
    return [records[i : i + step] for i in range(0, len(records), step)]
