"""Assembles a control plane from its parts."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pykafka_core.broker.runtime.contexts import Contexts
from pykafka_core.broker.runtime.coordinators.coordinators import Coordinators
from pykafka_core.broker.runtime.dispatcher import Dispatcher
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.metadata.controller import Controller
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.metadata.quorum_port import QuorumPort
from pykafka_core.broker.runtime.requests.calls import new_producer_id
from pykafka_core.broker.runtime.requests.jobs import Jobs, Propose
from pykafka_core.broker.runtime.requests.maintenance import Maintenance
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.runtime.requests.unread import Unread
from pykafka_core.broker.runtime.services import Services
from pykafka_core.broker.runtime.state_logging import Levels
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.broker.storage.reserve import Reserve
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.group.member_memory import MemberMemory
from pykafka_core.coordinator.group.settings import ConsumerGroupSettings, GroupSettings
from pykafka_core.coordinator.transaction.settings import TransactionSettings
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from pykafka_core.handlers.context import Node, ProducerIds
from pykafka_core.metadata.health import Replicas
from pykafka_core.types import RESOURCE_GROUP

if TYPE_CHECKING:
    from pykafka_core.broker.runtime.membership.controller_role import Deciders
    from pykafka_core.broker.runtime.membership.membership import Membership


class MemberParts(NamedTuple):
    """The parts of a control plane that only the node of a cluster has.

    Attributes:
        producer_ids: The producer ids that this broker may assign.
        propose: Sends proposals of requests to the active controller.
        pass_on: Forwards requests that this node's controller no longer decides.
        join: Creates the membership, whose controller role uses the given components.
    """

    producer_ids: ProducerIds
    propose: Propose
    pass_on: Callable[[PendingRequest], bool]
    join: "Callable[[Deciders], Membership]"


class ControlPlane(NamedTuple):
    """The parts that the control loop drives, and that its timers call."""

    dispatcher: Dispatcher
    publisher: Publisher
    maintenance: Maintenance
    timers: Timers
    faults: Faults
    replicas: Replicas


def assemble(
    services: Services,
    *,
    node: Node,
    quorum: QuorumPort,
    publisher: Publisher,
    reserve: Reserve | None,
    member: MemberParts | None = None,
) -> ControlPlane:
    """Create the components that handle requests.

    Args:
        services: The services that they share.
        node: The node, for handlers.
        quorum: Commits the records of requests.
        publisher: Has the committed image.
        reserve: Space for a batch when the disk is full; None without a reserve.
        member: Further parts; None for a broker that is its own cluster.
    """
    core, faults, completions, timers, replies, requests, replicas = services
    producer_ids = (
        member.producer_ids
        if member is not None
        else ProducerIds(lambda _: dispatcher.ask(new_producer_id()))
    )
    contexts = Contexts(core, node, quorum, publisher, producer_ids, replicas)
    maintenance = Maintenance(
        core=core, completions=completions, requests=requests, timers=timers, faults=faults
    )
    unread = Unread(lambda: publisher.image.topics.by_name)
    coordinators = _coordinators(services, node, publisher, unread, producer_ids)
    jobs = Jobs(
        core=core,
        contexts=contexts,
        requests=requests,
        maintenance=maintenance,
        coordinate=coordinators.begin,
        propose=None if member is None else member.propose,
        unread=unread,
    )
    controller = Controller(
        core=core,
        quorum=quorum,
        publisher=publisher,
        contexts=contexts,
        requests=requests,
        jobs=jobs,
        faults=faults,
        reserve=reserve,
        pass_on=_stays if member is None else member.pass_on,
        must_append=member is not None,
    )
    membership = None if member is None else _joined(member, controller, jobs, contexts)
    dispatcher = Dispatcher(
        core=core,
        requests=requests,
        replies=replies,
        completions=completions,
        publisher=publisher,
        controller=controller,
        jobs=jobs,
        coordinators=coordinators,
        levels=Levels(core, publisher, node.log_dir, replicas),
        faults=faults,
        membership=membership,
    )
    return ControlPlane(dispatcher, publisher, maintenance, timers, faults, replicas)


def _stays(_: PendingRequest) -> bool:
    """Return that there is no other controller."""
    return False


def _joined(
    member: MemberParts, controller: Controller, jobs: Jobs, contexts: Contexts
) -> "Membership":
    from pykafka_core.broker.runtime.membership.controller_role import Deciders

    return member.join(Deciders(controller, jobs, contexts))


def _coordinators(
    services: Services,
    node: Node,
    publisher: Publisher,
    unread: Unread,
    producer_ids: ProducerIds,
) -> Coordinators:
    return Coordinators(
        core=services.core,
        node_id=node.node_id,
        completions=services.completions,
        requests=services.requests,
        timers=services.timers,
        unread=unread,
        faults=services.faults,
        publisher=publisher,
        make_group_shard=_group_shards(node, publisher),
        make_transaction_shard=partial(
            TransactionShard, TransactionSettings.of(publisher.settings), producer_ids.take_or_ask
        ),
        replicas=services.replicas,
    )


def _group_shards(node: Node, publisher: Publisher) -> "partial[GroupShard]":
    """Return a function that creates shards, whose members share one bound on memory."""
    return partial(
        GroupShard,
        GroupSettings.of(publisher.settings),
        partial(_new_uuid, node),
        partial(_topic_id, publisher),
        partial(_consumer_settings, publisher),
        MemberMemory(),
    )


def _topic_id(publisher: Publisher, name: str) -> bytes | None:
    """Return the id of a topic in the committed image."""
    topic = publisher.image.topics.by_name.get(name)
    return None if topic is None else topic.topic_id


def _consumer_settings(publisher: Publisher, group_id: str) -> ConsumerGroupSettings:
    """Return the settings of a consumer group in the committed image."""
    own = publisher.image.configs.of(RESOURCE_GROUP, group_id)
    return ConsumerGroupSettings.of(publisher.settings, own)


def _new_uuid(node: Node) -> str:
    """Return the text of a UUID of random bytes."""
    text = node.new_id().hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
