"""What a group coordinator's shard holds: the groups of one partition of `__consumer_offsets`, and their offsets."""

from collections.abc import Callable

from pykafka_core.coordinator.deadlines import Deadlines
from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.member_memory import MemberMemory
from pykafka_core.coordinator.group.offsets.table import OffsetTable
from pykafka_core.coordinator.group.offsets.transactions import OpenTransactions
from pykafka_core.coordinator.group.settings import ConsumerGroupSettings, GroupSettings


class GroupState:
    """Data alone; what happens to it is in functions, a file for each request.

    Args:
        settings: Of the coordinator.
        new_uuid: A random UUID's text at each call; member ids end with one.
        topic_id: The id of a topic by its name, None if there is no such topic now.
        consumer_settings: Of a consumer group now, by its id; by default those of the coordinator.
        member_memory: Counts what members of groups hold, also of other shards; by default of this one alone.

    Attributes:
        groups: Classic groups by group id. A group that has offsets only ("simple") is one without members.
        consumer_groups: Groups of the consumer protocol by group id; an id is in one of both.
        offsets: Committed offsets of all groups.
        transactions: Those that have committed offsets here and have not ended.
        deadlines: What is to be done at a time, by keys of `classic.due`, `consumer.due` and
            `offsets.expiry`.
    """

    __slots__ = (
        "consumer_groups",
        "consumer_settings",
        "deadlines",
        "groups",
        "member_memory",
        "new_uuid",
        "offsets",
        "settings",
        "topic_id",
        "transactions",
    )

    def __init__(
        self,
        settings: GroupSettings,
        new_uuid: Callable[[], str],
        topic_id: Callable[[str], bytes | None],
        consumer_settings: Callable[[str], ConsumerGroupSettings] | None = None,
        member_memory: MemberMemory | None = None,
    ) -> None:
        self.settings = settings
        self.new_uuid = new_uuid
        self.topic_id = topic_id
        self.consumer_settings = consumer_settings or (lambda _: settings.consumer)
        self.member_memory = MemberMemory() if member_memory is None else member_memory
        self.groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.offsets = OffsetTable()
        self.transactions = OpenTransactions()
        self.deadlines = Deadlines()

    def any_group(self, group_id: str) -> ClassicGroup | ConsumerGroup | None:
        """The group, of whichever kind."""
        return self.consumer_groups.get(group_id) or self.groups.get(group_id)
