"""How a node of a cluster of several comes up: a broker, and a controller if it is a voter of the metadata quorum.

Its replica of the metadata quorum begins with what its disk holds; the image is made of what the quorum says is
committed. So the start only puts the parts together: the control thread has the broker join, and it serves once the
controller has unfenced it.
"""

from pykafka_core._core import Core
from pykafka_core.broker.guarded_log import GuardedLogger
from pykafka_core.broker.runtime.foundation import found
from pykafka_core.broker.runtime.membership.controller_channel import ControllerChannel
from pykafka_core.broker.runtime.membership.controller_role import CONTROLLER_APIS, ControllerRole
from pykafka_core.broker.runtime.membership.forwarding import Forwarding
from pykafka_core.broker.runtime.membership.leader_passes import leader_passes
from pykafka_core.broker.runtime.membership.lifecycle import Joining, Lifecycle
from pykafka_core.broker.runtime.membership.membership import Membership
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.quorum.driver import ReplicaDriver
from pykafka_core.broker.runtime.quorum.exchange import Exchange
from pykafka_core.broker.runtime.timers import NS_PER_MS
from pykafka_core.broker.seam.core_types import CoreTypes
from pykafka_core.broker.seam.projection import Projection
from pykafka_core.broker.start.control_plane import assemble
from pykafka_core.broker.start.joining import Latch
from pykafka_core.broker.start.listeners import address_of, listen
from pykafka_core.broker.start.loading import report_kept
from pykafka_core.broker.start.member_checks import check_member
from pykafka_core.broker.start.plan import UNKNOWN_EPOCH, Plan, Started
from pykafka_core.broker.start.quorum_log import log_state, newest_snapshot
from pykafka_core.broker.storage.snapshot_parts import SnapshotParts
from pykafka_core.broker.storage.snapshots import Snapshots
from pykafka_core.broker.storage.voters import VoterNode
from pykafka_core.errors import ClusterError
from pykafka_core.handlers.inter_broker import listener_name
from pykafka_core.metadata.image.image import Endpoint as BrokerEndpoint
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.quorum import replica
from pykafka_core.quorum.envelope import Endpoint, Envelope
from pykafka_core.quorum.events import LogCleaned, SnapshotTaken
from pykafka_core.quorum.log_state import LogState
from pykafka_core.quorum.values import FETCH_WAIT_MS_MAX, QuorumConfig, ReplicaKey
from pykafka_core.types import ZERO_ID

FORWARD_MS = 30_000
"""How long a request to the controller is tried (``request.timeout.ms``)."""

_log = GuardedLogger(__name__)


def start_member(core: Core, types: CoreTypes, plan: Plan) -> Started:
    """Put a broker's parts together on a core that was just made; its control thread has it join.

    Raises:
        StorageError: The directory cannot be used.
        MetadataError: Its metadata log cannot be understood.
        ClusterError: It has no data directory, or none of this cluster.
    """
    return _MemberStart(core, types, plan).run()


class _MemberStart:
    def __init__(self, core: Core, types: CoreTypes, plan: Plan) -> None:
        if plan.directory is None or plan.directory.identity() is None:
            place = plan.directory.path if plan.directory else "a broker in memory"
            raise ClusterError(
                f"{place} has no cluster id: format a data directory with that of the cluster"
            )
        self._core = core
        self._plan = plan
        self._directory = plan.directory
        self._identity = plan.identity
        self._projection = Projection(types, plan.identity.node_id, plan.settings)
        self._foundation = found(core)
        self._joined = Latch()
        self._parts = SnapshotParts(plan.directory)
        self._voters = plan.voters or tuple(
            VoterNode(ReplicaKey(voter.node_id, ZERO_ID), voter.host, voter.port)
            for voter in plan.settings.start.voters
        )
        check_member(plan, self._voters)

    def run(self) -> Started:
        core, start = self._core, self._plan.settings.start
        self._directory.make_room()
        core.apply(self._projection.metadata_log(0, on_disk=True))
        self._directory.remove_unfinished_snapshots()
        # First: a log gives way to a snapshot of which nothing but the name was seen.
        loaded, end = newest_snapshot(self._directory)
        log = log_state(core, self._directory.snapshots())
        exchange = self._exchange()
        driver = self._driver(exchange, log, loaded.quorum, end)
        publisher = Publisher(
            core=core,
            projection=self._projection,
            node_id=self._identity.node_id,
            replay=loaded.replay,
            faults=self._foundation.faults,
            snapshots=(snapshots := self._snapshots(driver)),
        )
        bound, endpoints = listen(core, start)
        self._listen_for_controllers()
        channel = ControllerChannel(
            self._foundation, lambda: exchange.endpoint(driver.quorum.leader_id)
        )
        control = assemble(
            self._foundation,
            node=self._plan.node,
            quorum=driver,
            publisher=publisher,
            reserve=self._directory.reserve,
            membership=Membership(
                self._foundation,
                driver=driver,
                publisher=publisher,
                lifecycle=self._lifecycle(channel, publisher, endpoints),
                forwarding=Forwarding(channel, self._foundation.requests, FORWARD_MS),
                channel=channel,
                role=self._role(driver, publisher),
                serve=self._serve,
            ),
        )
        return Started(
            control=control,
            bound=bound,
            endpoints=endpoints,
            snapshots=snapshots,
            reserve=self._directory.reserve,
            joined=self._joined,
        )

    def _snapshots(self, driver: ReplicaDriver) -> Snapshots:
        """As those of a broker that is alone; the replica is told, too."""
        return Snapshots(
            core=self._core,
            directory=self._directory,
            settings=self._plan.settings,
            id_at=driver.snapshot_id,
            new_token=lambda: self._foundation.completions.open(report_kept),
            bytes_before=0,
            quorum=lambda: driver.committed.quorum,
            taken=lambda snapshot_id: driver.tell(SnapshotTaken(snapshot_id)),
            cleaned=lambda snapshot_id: driver.tell(LogCleaned(snapshot_id)),
            and_finish=driver.finish,
        )

    def _listen_for_controllers(self) -> None:
        for listener in self._plan.settings.start.controller_listeners:
            self._core.listen(listener.name, address_of(listener), CONTROLLER_APIS)

    def _exchange(self) -> Exchange:
        start = self._plan.settings.start
        own = ReplicaKey(self._identity.node_id, self._identity.directory_id)
        told = {voter.key: Endpoint(voter.host, voter.port) for voter in self._voters}
        return Exchange(
            self._foundation,
            envelope=Envelope(
                self._identity.cluster_id,
                own,
                {name: told[own] for name in start.controller_names if own in told},
            ),
            voters={key.node_id: at for key, at in told.items()},
            parts=self._parts,
        )

    def _role(self, driver: ReplicaDriver, publisher: Publisher) -> ControllerRole | None:
        settings = self._plan.settings
        if not settings.start.is_controller:
            return None
        is_watching = settings.boolean("internal.gone.broker.fencing.enable")
        listener = listener_name(settings)
        return ControllerRole(
            self._foundation,
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

    def _driver(
        self, exchange: Exchange, log: LogState, quorum: QuorumRecords, next_offset: int
    ) -> ReplicaDriver:
        settings, core = self._plan.settings, self._core
        begun = replica.begin(
            ReplicaKey(self._identity.node_id, self._identity.directory_id),
            tuple(voter.key for voter in self._voters),
            self._directory.election(),
            log,
            now_ms=core.now_ns() // NS_PER_MS,
            seed=int.from_bytes(self._plan.new_id()[:8], "big"),
            config=QuorumConfig(
                election_timeout_ms=settings.int("controller.quorum.election.timeout.ms"),
                election_backoff_ms_max=settings.int("controller.quorum.election.backoff.max.ms"),
                fetch_timeout_ms=(
                    fetch_timeout_ms := settings.int("controller.quorum.fetch.timeout.ms")
                ),
                # A leader that has nothing to answer is not to be taken for one that is gone.
                fetch_wait_ms_max=min(FETCH_WAIT_MS_MAX, fetch_timeout_ms // 2),
                request_timeout_ms=settings.int("controller.quorum.request.timeout.ms"),
                retry_backoff_ms=settings.int("controller.quorum.retry.backoff.ms"),
            ),
        )
        return ReplicaDriver(
            self._foundation,
            exchange=exchange,
            begun=begun,
            persist=self._directory.write_election,
            parts=self._parts,
            next_offset=next_offset,
            quorum=quorum,
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
            self._foundation,
            channel=channel,
            joining=joining,
            metadata_offset=lambda: publisher.image.offset,
            refused=_refuse,
        )

    def _serve(self) -> None:
        self._core.serve()
        self._joined.set()


def _refuse(reason: str) -> None:
    raise ClusterError(reason)
