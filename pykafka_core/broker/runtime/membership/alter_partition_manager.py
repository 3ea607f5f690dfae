"""Sends changes of the ISR to the active controller, as Kafka's ``AlterPartitionManager`` does.

The core reports the state of followers, repeatedly while the ISR should change. It checks each
proposal under the partition's lock and keeps it as pending (contract/replication.md#29). Only one
request is open at a time; proposals made during it are sent with the next one.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from pykafka_core.broker.runtime.membership.controller_channel import (
    ControllerApi,
    ControllerChannel,
)
from pykafka_core.broker.runtime.services import Services
from pykafka_core.errors import (
    FencedLeaderEpochError,
    IneligibleReplicaError,
    InvalidRequestError,
    InvalidUpdateVersionError,
    NewLeaderElectedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.metadata.image.image import MetadataImage, Partition
from pykafka_core.protocol.messages import AlterPartitionRequest, AlterPartitionResponse, Message
from pykafka_core.types import PartitionId

if TYPE_CHECKING:
    from pykafka_core import _core

ALTER_PARTITION = ControllerApi(56, (2, 3))
PURPOSE = "alter partition"
TIMEOUT_MS = 3_000
"""Timeout of one request: a hanging controller must not delay a decision by its successor."""
RETRY_NS = 50_000_000
OUTDATED = frozenset(
    {
        FencedLeaderEpochError.code,
        InvalidUpdateVersionError.code,
        NewLeaderElectedError.code,
        UnknownTopicIdError.code,
        UnknownTopicOrPartitionError.code,
    }
)
"""The controller has a later state, which the metadata will bring (contract/replication.md#32)."""

REFUSED = frozenset({IneligibleReplicaError.code, InvalidRequestError.code})
"""Errors with which the committed state stays."""


class _Wish(NamedTuple):
    """A proposal that is pending in the core."""

    proposal: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """Broker ids with the epochs of their registrations."""


class IsrChanges:
    """Sends the proposals of the partitions that this broker leads. Belongs to the control thread.

    Args:
        services: Has the core and the timers.
        channel: Sends to the active controller.
        broker: Returns the id and the epoch of this broker.
        image: Returns the committed image.
    """

    def __init__(
        self,
        services: Services,
        *,
        channel: ControllerChannel,
        broker: Callable[[], tuple[int, int]],
        image: Callable[[], MetadataImage],
    ) -> None:
        self._core = services.core
        self._timers = services.timers
        self._channel = channel
        self._broker = broker
        self._image = image
        self._wishes: dict[PartitionId, _Wish] = {}
        self._is_asking = False

    def note(self, replica: "_core.Replica") -> None:
        """Propose the change that the state of a follower needs, if any."""
        place = replica.topic_id, replica.partition
        partition = _partition(self._image(), place)
        if partition is None or partition.leader_epoch != replica.leader_epoch:
            return
        is_in = replica.follower in partition.isr
        isr = set(partition.isr)
        if replica.state == "caught_up" and not is_in:
            isr.add(replica.follower)
        elif replica.state == "lagging" and is_in:
            isr.discard(replica.follower)
        else:
            return
        self._propose(place, partition, [node for node in partition.replicas if node in isr])

    def _propose(self, place: PartitionId, partition: Partition, isr: list[int]) -> None:
        own_id, own_epoch = self._broker()
        brokers = self._image().brokers
        epochs = {node: brokers[node].epoch for node in isr if node in brokers} | {
            own_id: own_epoch
        }
        wanted = tuple((node, epochs.get(node, -1)) for node in isr)
        epoch, partition_epoch = partition.leader_epoch, partition.partition_epoch
        proposal = self._core.propose_isr(place, epoch, partition_epoch, wanted)
        if proposal is not None:
            self._wishes[place] = _Wish(proposal, epoch, partition_epoch, wanted)
            self._ask()

    def _ask(self) -> None:
        if self._is_asking or not self._wishes:
            return
        self._is_asking = True
        proposed, self._wishes = self._wishes, {}
        broker_id, broker_epoch = self._broker()
        request = _request(broker_id, broker_epoch, proposed)

        def on_response(response: Message | None) -> None:
            self._on_response(proposed, cast("AlterPartitionResponse | None", response))

        self._channel.ask(ALTER_PARTITION, request, TIMEOUT_MS, on_response, PURPOSE)

    def _on_response(
        self, proposed: Mapping[PartitionId, _Wish], response: AlterPartitionResponse | None
    ) -> None:
        self._is_asking = False
        if response is None or response.error_code:
            self._ask_again(proposed)
            return
        found = {
            (topic.topic_id, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }
        again = {}
        for place, wish in proposed.items():
            row = found.get(place)
            if row is None or row.error_code in REFUSED:
                self._core.settle_isr(wish.proposal, "rejected")
            elif row.error_code in OUTDATED:
                self._core.settle_isr(wish.proposal, "unknown")
            elif row.error_code:
                again[place] = wish
            elif row.leader_epoch != wish.leader_epoch:
                self._core.settle_isr(wish.proposal, "unknown")
            else:
                self._core.settle_isr(wish.proposal, "committed", row.isr, row.partition_epoch)
        if again:
            self._ask_again(again)
        else:
            self._ask()

    def _ask_again(self, proposed: Mapping[PartitionId, _Wish]) -> None:
        """Send the proposals again.

        The first request may have committed them; the partition epoch prevents a second change.
        """
        self._wishes = {**proposed, **self._wishes}
        due_ns = self._core.now_ns() + RETRY_NS
        self._timers.once("a change of an ISR", due_ns, self._ask)


def _partition(image: MetadataImage, place: PartitionId) -> Partition | None:
    topic = image.topics.by_id.get(place[0])
    return None if topic is None else topic.partitions.get(place[1])


def _request(
    broker_id: int, broker_epoch: int, proposed: Mapping[PartitionId, _Wish]
) -> AlterPartitionRequest:
    of = AlterPartitionRequest
    by_topic: dict[bytes, list[AlterPartitionRequest.PartitionData]] = {}
    for (topic_id, index), wish in proposed.items():
        by_topic.setdefault(topic_id, []).append(
            of.PartitionData(
                partition_index=index,
                leader_epoch=wish.leader_epoch,
                new_isr_with_epochs=[
                    of.BrokerState(broker_id=node, broker_epoch=epoch) for node, epoch in wish.isr
                ],
                partition_epoch=wish.partition_epoch,
            )
        )
    return of(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        topics=[
            of.TopicData(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in by_topic.items()
        ],
    )
