"""Requests about groups by confluent-kafka's admin client, for commands and for failed tests.

librdkafka 2.16 ends the process with a segmentation fault when the OffsetFetch of an admin client
is answered with an error. So `described` comes before `committed`: it waits for the coordinator,
and raises the same errors as exceptions.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pykafka_core.cli.errors import CliError
from pykafka_core.types import GROUP_TOPIC

from .clients import TIMEOUT_S, result

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata, MemberDescription, OffsetSpec

T = TypeVar("T")

DEAD = "Dead"
_NAMED_MAX = 5
_RETRY_S = 0.1
_STATES = {
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
}
"""The states whose names differ between confluent-kafka and Kafka."""


class Partition(NamedTuple):
    """A topic's name and a partition's number."""

    topic: str
    partition: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A member of a group, and its assigned partitions."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: Sequence[Partition]

    def __str__(self) -> str:
        return f"{self.instance_id or self.client_id} at {self.host.lstrip('/')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A group as its coordinator describes it; one that does not exist has the state dead."""

    group: str
    state: str
    type: str
    assignor: str
    coordinator: int | None
    members: Sequence[Member]

    @property
    def exists(self) -> bool:
        """Return whether the coordinator has the group."""
        return self.state != DEAD

    def owners(self) -> dict[Partition, Member]:
        """Return the owner of each assigned partition."""
        return {one: member for member in self.members for one in member.assignment}


class Lag(NamedTuple):
    """The lag of a group in one partition; unknown values are None.

    Attributes:
        current_offset: The committed offset: the next record that the group reads.
        high_watermark: None if the partition does not exist any more.
    """

    partition: Partition
    current_offset: int | None
    high_watermark: int | None
    owner: Member | None

    @property
    def lag(self) -> int | None:
        """Return the number of offsets that the group lags behind; None if it is unknown."""
        if self.current_offset is None or self.high_watermark is None:
            return None
        return max(0, self.high_watermark - self.current_offset)


def listed(client: "AdminClient") -> list[dict[str, str]]:
    """Return id, state and type of every group, by id.

    Raises:
        KafkaException: A broker did not answer for its groups.
    """

    def ask() -> list[dict[str, str]]:
        found = result(client.list_consumer_groups(request_timeout=TIMEOUT_S))
        for error in found.errors or ():
            raise error
        return [
            {
                "group": one.group_id,
                "state": _state(one.state.name),
                "type": one.type.name.capitalize(),
            }
            for one in sorted(found.valid or (), key=lambda one: one.group_id)
        ]

    return settled(ask)


def described(client: "AdminClient", cluster: "ClusterMetadata", group: str) -> Group:
    """Describe a group, and wait until its coordinator is available.

    Without the topic ``__consumer_offsets`` there are no groups. The coordinator is not looked up
    then, because the broker would create that topic.

    Raises:
        KafkaException: The coordinator refused, or was not available in time.
    """
    from confluent_kafka import KafkaError, KafkaException

    absent = Group(group=group, state=DEAD, type="", assignor="", coordinator=None, members=())
    if GROUP_TOPIC not in cluster.topics:
        return absent

    def ask() -> Group:
        asked = client.describe_consumer_groups([group], request_timeout=TIMEOUT_S)
        found = result(asked[group])
        return Group(
            group=group,
            state=_state(found.state.name),
            type=found.type.name.capitalize(),
            assignor=found.partition_assignor,
            coordinator=None if found.coordinator is None else found.coordinator.id,
            members=[_member(one) for one in found.members],
        )

    try:
        return settled(ask)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise
    return absent


def committed(client: "AdminClient", group: Group) -> dict[Partition, int]:
    """Return the committed offsets of a group that was described, by partition.

    Raises:
        KafkaException: The coordinator returned an error for one of them.
    """
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

    if not group.exists:
        return {}
    asked = [ConsumerGroupTopicPartitions(group.group)]
    futures = client.list_consumer_group_offsets(asked, request_timeout=TIMEOUT_S)
    found = result(futures[group.group]).topic_partitions
    for one in found:
        if one.error is not None:
            raise KafkaException(one.error)
    return {Partition(one.topic, one.partition): one.offset for one in found if one.offset >= 0}


def offsets(
    client: "AdminClient", partitions: Iterable[Partition], spec: "OffsetSpec"
) -> dict[Partition, int]:
    """Return the offset of ``spec`` in each partition; -1 if no record is that recent.

    Raises:
        KafkaException: A leader returned an error for one of them.
    """
    from confluent_kafka import TopicPartition

    asked = {TopicPartition(*one): spec for one in sorted(partitions)}
    if not asked:  # the client rejects an empty request
        return {}
    futures = client.list_offsets(asked, request_timeout=TIMEOUT_S)
    return {
        Partition(one.topic, one.partition): result(future).offset
        for one, future in futures.items()
    }


def lags(client: "AdminClient", cluster: "ClusterMetadata", group: Group) -> list[Lag]:
    """Return the lag in all partitions that have a committed offset or an owner."""
    from confluent_kafka.admin import OffsetSpec

    current = committed(client, group)
    owners = group.owners()
    partitions = sorted(current.keys() | owners.keys())
    there = [one for one in partitions if exists(cluster, one)]
    ends = offsets(client, there, OffsetSpec.latest())
    return [Lag(one, current.get(one), ends.get(one), owners.get(one)) for one in partitions]


def exists(cluster: "ClusterMetadata", partition: Partition) -> bool:
    """Return whether the cluster has the partition: offsets of a topic may outlive the topic."""
    topic = cluster.topics.get(partition.topic)
    return topic is not None and partition.partition in topic.partitions


def commit(client: "AdminClient", group: str, targets: Mapping[Partition, int]) -> None:
    """Commit offsets for a group without members.

    Raises:
        KafkaException: One of them was refused.
    """
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    wanted = [TopicPartition(*one, offset) for one, offset in targets.items()]
    request = [ConsumerGroupTopicPartitions(group, wanted)]

    def ask() -> None:
        futures = client.alter_consumer_group_offsets(request, request_timeout=TIMEOUT_S)
        for one in result(futures[group]).topic_partitions:
            if one.error is not None:
                raise KafkaException(one.error)

    settled(ask)


def settled(ask: Callable[[], T]) -> T:
    """Return the result of ``ask``; retry while the group's coordinator is elected or loads."""
    from confluent_kafka import KafkaError, KafkaException

    unsettled = (
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    )
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in unsettled or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_S)


def check_exists(group: Group) -> None:
    """Raise a `CliError` if the group does not exist."""
    if not group.exists:
        raise CliError(f"there is no group {group.group}", "see `pykafka-core groups list`")


def check_has_no_members(group: Group) -> None:
    """Raise a `CliError` that names the members, if the group has any."""
    if not group.members:
        return
    named = [str(one) for one in group.members[:_NAMED_MAX]]
    if len(group.members) > _NAMED_MAX:
        named.append(f"{len(group.members) - _NAMED_MAX:,} more")
    advice = "stop them first; a killed member remains until its session times out"
    raise CliError(f"{group.group} has members: {', '.join(named)}", advice)


def _member(one: "MemberDescription") -> Member:
    partitions = one.assignment.topic_partitions
    return Member(
        member_id=one.member_id,
        instance_id=one.group_instance_id,
        client_id=one.client_id,
        host=one.host,
        assignment=sorted(Partition(p.topic, p.partition) for p in partitions),
    )


def _state(name: str) -> str:
    return _STATES.get(name, name.capitalize())
