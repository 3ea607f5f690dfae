"""The start of a cluster node: a broker, a controller of the metadata quorum, or both.

Its replica of the metadata quorum starts with the state on disk; the image is built from the
batches that the quorum commits. So the start only assembles the parts: the control thread joins the
cluster, and the broker serves once the controller has unfenced it. A node that is only a controller
has joined once its metadata has caught up with the leader.
"""

from functools import partial

from pykafka_core._core import Core
from pykafka_core.broker.core_bridge.core_types import CoreTypes
from pykafka_core.broker.core_bridge.projection import Projection, metadata_log
from pykafka_core.broker.runtime.membership.alter_partition_manager import IsrChanges
from pykafka_core.broker.runtime.membership.assignments import Assignments
from pykafka_core.broker.runtime.membership.controller_channel import ControllerChannel
from pykafka_core.broker.runtime.membership.controller_registration import (
    ControllerRegistration,
    Registering,
)
from pykafka_core.broker.runtime.membership.controller_requests import (
    Prerequisites,
    ProducerIdBlocks,
)
from pykafka_core.broker.runtime.membership.controller_role import (
    CONTROLLER_APIS,
    ControllerRole,
    Deciders,
)
from pykafka_core.broker.runtime.membership.forwarding import Forwarding
from pykafka_core.broker.runtime.membership.lifecycle import Joining, Lifecycle
from pykafka_core.broker.runtime.membership.membership import Membership
from pykafka_core.broker.runtime.membership.periodic_elections import leader_passes
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.quorum.driver import ReplicaDriver
from pykafka_core.broker.runtime.quorum.raft_transport import Exchange
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.broker.start.control_plane import MemberParts, assemble
from pykafka_core.broker.start.joining import Latch
from pykafka_core.broker.start.listeners import address_of, listen
from pykafka_core.broker.start.loading import formatted_records, report_kept, whole_log
from pykafka_core.broker.start.lost_metadata import find_lost
from pykafka_core.broker.start.member_checks import check_broker_only, check_member
from pykafka_core.broker.start.quorum_log import log_state, newest_snapshot
from pykafka_core.broker.start.quorum_place import QuorumPlace, quorum_place
from pykafka_core.broker.start.startup_config import UNKNOWN_EPOCH, Started, StartupConfig
from pykafka_core.broker.storage.reserve import Need
from pykafka_core.broker.storage.snapshot_parts import SnapshotParts
from pykafka_core.broker.storage.snapshots import Snapshots
from pykafka_core.broker.storage.voters import voter_set_of
from pykafka_core.errors import ClusterError
from pykafka_core.handlers.cluster.broker_records import cordoned_directories
from pykafka_core.handlers.context import ProducerIds
from pykafka_core.handlers.inter_broker import listener_name
from pykafka_core.metadata.feature_levels import unsupported
from pykafka_core.metadata.image.image import Endpoint as BrokerEndpoint
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.records.bootstrap import bootstrap_records
from pykafka_core.quorum import replica
from pykafka_core.quorum.events import LogCleaned, SnapshotTaken
from pykafka_core.quorum.log.state import NO_VOTERS, LogState
from pykafka_core.quorum.values import FETCH_WAIT_MS_MAX, QuorumConfig, ReplicaKey
from pykafka_core.quorum.wire.envelope import Endpoint, Envelope
from pykafka_core.types import NS_PER_MS

_log = GuardedLogger(__name__)


def start_member(core: Core, types: CoreTypes, plan: StartupConfig) -> Started:
    """Assemble a broker on a new core; its control thread joins the cluster.

    Raises:
        StorageError: The directory cannot be used.
        MetadataError: Its metadata log cannot be read.
        ClusterError: It has no data directory, or one without a cluster id.
    """
    return _MemberStart(core, types, plan).run()


class _MemberStart:
    def __init__(self, core: Core, types: CoreTypes, plan: StartupConfig) -> None:
        is_new = plan.directory is not None and plan.directory.identity() is None
        if plan.directory is None or (is_new and not plan.settings.start.is_controller):
            place = plan.directory.path if plan.directory else "a broker in memory"
            raise ClusterError(
                f"{place} has no cluster id: format a data directory with that of the cluster"
            )
        self._core = core
        self._plan = plan
        self._directory = plan.directory
        self._identity = plan.identity
        self._types = types
        self._services = create_services(core)
        self._joined = Latch()
        self._parts = SnapshotParts(plan.directory)
        check_member(plan)

    def run(self) -> Started:
        core, start = self._core, self._plan.settings.start
        self._directory.make_room()
        self._directory.claim(self._identity)
        self._directory.prepare_metadata()
        own_id, settings = self._identity.node_id, self._plan.settings
        core.apply(metadata_log(self._types, own_id, settings, 0, on_disk=True))
        self._directory.remove_unfinished_snapshots()
        # The snapshot is validated first: `log_state` empties a log that the snapshot replaces.
        loaded, end = newest_snapshot(self._directory)
        first = voter_set_of(loaded.quorum, end) or NO_VOTERS
        log = log_state(core, self._directory.snapshots(), first)
        check_broker_only(self._plan, log.voter_set)
        place = self._place(log)
        exchange = self._exchange(place)
        driver = self._driver(exchange, place, end)
        publisher = Publisher(
            core=core,
            projection=Projection(
                self._types, own_id, settings, lambda: driver.quorum.kraft_version
            ),
            node_id=self._identity.node_id,
            replay=loaded.replay,
            faults=self._services.faults,
            snapshots=(snapshots := self._snapshots(driver)),
        )
        bound, endpoints = listen(core, start)
        channel = ControllerChannel(
            self._services,
            lambda: exchange.endpoint(driver.quorum.leader_id),
            self._plan.settings.int("controller.socket.timeout.ms"),
        )
        control = assemble(
            self._services,
            node=self._plan.node,
            quorum=driver,
            publisher=publisher,
            reserve=self._directory.reserve,
            member=self._member(driver, publisher, channel, place, endpoints),
        )
        return Started(
            control=control,
            bound=bound,
            endpoints=endpoints,
            snapshots=snapshots,
            reserve=self._directory.reserve,
            joined=self._joined,
            controllers=_controllers(place),
        )

    def _member(
        self,
        driver: ReplicaDriver,
        publisher: Publisher,
        channel: ControllerChannel,
        place: QuorumPlace,
        endpoints: tuple[BrokerEndpoint, ...],
    ) -> MemberParts:
        services, start = self._services, self._plan.settings.start
        lifecycle = self._lifecycle(channel, publisher, endpoints) if start.is_broker else None
        broker = partial(_broker, self._identity.node_id, lifecycle)
        forwarding = Forwarding(
            channel, services.requests, start.controller_names if start.is_controller else ()
        )
        registration = self._registration(channel, place)

        def join(deciders: Deciders) -> Membership:
            assignments = None
            if lifecycle is not None:
                assignments = Assignments(
                    services,
                    channel=channel,
                    lifecycle=lifecycle,
                    publisher=publisher,
                    compare_disks=deciders.controller.write_no_op,
                )
            return Membership(
                driver=driver,
                publisher=publisher,
                lifecycle=lifecycle,
                forwarding=forwarding,
                isr=IsrChanges(
                    services, channel=channel, broker=broker, image=lambda: publisher.image
                ),
                assignments=assignments,
                role=self._role(driver, publisher, deciders),
                registration=registration,
                check=self._check_image,
                serve=self._serve,
            )

        blocks = ProducerIdBlocks(channel, broker)
        producer_ids = ProducerIds(blocks.request)
        prerequisites = Prerequisites(
            services,
            channel=channel,
            blocks=blocks,
            producer_ids=producer_ids,
            has_topic=lambda name: name in publisher.image.topics.by_name,
        )
        return MemberParts(producer_ids, prerequisites.take, forwarding.pass_on, join)

    def _snapshots(self, driver: ReplicaDriver) -> Snapshots:
        """Return the snapshots, as for a single broker; the replica also gets their events."""
        return Snapshots(
            core=self._core,
            directory=self._directory,
            settings=self._plan.settings,
            id_at=driver.snapshot_id,
            new_token=lambda: self._services.completions.open(report_kept),
            bytes_before=0,
            quorum=driver.quorum_records,
            taken=lambda snapshot_id: driver.tell(SnapshotTaken(snapshot_id)),
            cleaned=lambda snapshot_id: driver.tell(LogCleaned(snapshot_id)),
            and_finish=driver.finish,
        )

    @property
    def _key(self) -> ReplicaKey:
        return ReplicaKey(self._identity.node_id, self._identity.directory_id)

    def _place(self, log: LogState) -> QuorumPlace:
        """Bind the controller listeners and return their addresses; requests wait for the control
        thread.
        """
        start = self._plan.settings.start
        bound = [
            (
                listener,
                self._core.listen(
                    listener.name, address_of(listener), CONTROLLER_APIS, audience="nodes"
                ),
            )
            for listener in sorted(
                start.controller_listeners, key=lambda one: start.controller_names.index(one.name)
            )
        ]
        election, remembered = self._directory.election(), self._directory.static_voters()
        return quorum_place(start, self._key, log, election, bound, remembered)

    def _exchange(self, place: QuorumPlace) -> Exchange:
        own = place.own.endpoints if place.own is not None else ()
        return Exchange(
            self._services,
            envelope=Envelope(
                self._identity.cluster_id,
                self._key,
                {at.listener: Endpoint(at.host, at.port) for at in own},
                self._plan.settings.start.controller_names,
            ),
            voters=place.endpoints,
            parts=self._parts,
            refused=_refuse,
        )

    def _role(
        self, driver: ReplicaDriver, publisher: Publisher, deciders: Deciders
    ) -> ControllerRole | None:
        settings = self._plan.settings
        if not settings.start.is_controller:
            return None
        is_watching = settings.boolean("internal.gone.broker.fencing.enable")
        listener = listener_name(settings)
        # Kept until this node is the active controller; an unreadable directory is rejected now.
        formatted = formatted_records(self._directory)
        return ControllerRole(
            self._services,
            deciders=deciders,
            first_records=formatted or bootstrap_records(),
            driver=driver,
            publisher=publisher,
            session_ms=settings.int("broker.session.timeout.ms"),
            listeners=settings.start.controller_names,
            passes=leader_passes(
                settings.int("leader.imbalance.check.interval.seconds"),
                settings.int("unclean.leader.election.interval.ms"),
            ),
            watched_listener=listener if is_watching else None,
        )

    def _registration(
        self, channel: ControllerChannel, place: QuorumPlace
    ) -> ControllerRegistration | None:
        if place.own is None:
            return None
        registering = Registering(self._identity.node_id, self._plan.new_id(), _controllers(place))
        return ControllerRegistration(self._services, channel=channel, registering=registering)

    def _driver(self, exchange: Exchange, place: QuorumPlace, next_offset: int) -> ReplicaDriver:
        settings, core = self._plan.settings, self._core
        begun = replica.begin(
            self._key,
            (),
            self._directory.election(),
            place.log,
            now_ms=core.now_ns() // NS_PER_MS,
            seed=int.from_bytes(self._plan.new_id()[:8], "big"),
            config=QuorumConfig(
                election_timeout_ms=settings.int("controller.quorum.election.timeout.ms"),
                election_backoff_ms_max=settings.int("controller.quorum.election.backoff.max.ms"),
                fetch_timeout_ms=(
                    fetch_timeout_ms := settings.int("controller.quorum.fetch.timeout.ms")
                ),
                # A leader without new records must not be mistaken for a failed one.
                fetch_wait_ms_max=min(FETCH_WAIT_MS_MAX, fetch_timeout_ms // 2),
                request_timeout_ms=settings.int("controller.quorum.request.timeout.ms"),
                retry_backoff_ms=settings.int("controller.quorum.retry.backoff.ms"),
                fetch_bytes_max=settings.int("controller.quorum.fetch.max.bytes"),
                snapshot_bytes_max=settings.int("controller.quorum.fetch.snapshot.max.bytes"),
                joins=settings.boolean("controller.quorum.auto.join.enable"),
            ),
            bootstrap=place.bootstrap,
            own=place.own,
        )
        return ReplicaDriver(
            self._services,
            exchange=exchange,
            initial=begun,
            persist=self._directory.write_election,
            parts=self._parts,
            make_way=partial(self._directory.reserve.make_way, Need.START),
            next_offset=next_offset,
        )

    def _lifecycle(
        self,
        channel: ControllerChannel,
        publisher: Publisher,
        endpoints: tuple[BrokerEndpoint, ...],
    ) -> Lifecycle:
        settings = self._plan.settings
        clean_epoch = self._plan.clean_epoch
        joining = Joining(
            identity=self._identity,
            incarnation_id=self._plan.new_id(),
            listeners=endpoints,
            rack=settings.start.rack,
            previous_epoch=UNKNOWN_EPOCH if clean_epoch is None else clean_epoch,
            heartbeat_ms=settings.int("broker.heartbeat.interval.ms"),
            session_ms=settings.int("broker.session.timeout.ms"),
        )
        return Lifecycle(
            self._services,
            channel=channel,
            joining=joining,
            metadata_offset=lambda: publisher.image.offset,
            cordoned=lambda: cordoned_directories(
                publisher.image, publisher.settings, self._identity.directory_id
            ),
            refused=_refuse,
        )

    def _check_image(self, image: MetadataImage) -> None:
        foreign = unsupported(image.features)
        if foreign is not None:
            _refuse(f"{foreign.text}; {foreign.advice}")
        lost = find_lost(self._directory, image, whole_log(self._core))
        if lost is not None:
            _refuse(f"{lost.text}: {lost.advice}")

    def _serve(self) -> None:
        self._core.serve()
        self._joined.set()


def _broker(node_id: int, lifecycle: Lifecycle | None) -> tuple[int, int]:
    """Return the id of this node and the epoch of its broker, -1 while it is not registered."""
    return node_id, UNKNOWN_EPOCH if lifecycle is None else lifecycle.epoch


def _controllers(place: QuorumPlace) -> tuple[BrokerEndpoint, ...]:
    """Return the addresses of this node as a controller."""
    own = () if place.own is None else place.own.endpoints
    return tuple(BrokerEndpoint(at.listener, at.host, at.port) for at in own)


def _refuse(reason: str) -> None:
    raise ClusterError(reason)
