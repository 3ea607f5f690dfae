"""State of a group coordinator's shard: groups and committed offsets of a `__consumer_offsets`
partition.
"""

from collections.abc import Callable

from pykafka_core.coordinator.deadlines import Deadlines
from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.member_memory import MemberMemory
from pykafka_core.coordinator.group.offsets.table import OffsetTable
from pykafka_core.coordinator.group.offsets.transactions import OpenTransactions
from pykafka_core.coordinator.group.settings import ConsumerGroupSettings, GroupSettings


class GroupState:
    """Data only; the operations are functions, with one file for each request.

    Args:
        settings: Settings of the coordinator.
        new_uuid: Returns the text of a new random UUID; member ids end with one.
        topic_id: Returns the id of a topic by its name, None if the topic does not exist now.
        consumer_settings: Returns the current settings of a consumer group by its id; by default
            those of the coordinator.
        member_memory: Counts the memory of members, also of other shards; by default of this shard
            only.

    Attributes:
        groups: Classic groups by group id. A group that has only offsets ("simple") is one without
            members.
        consumer_groups: Consumer groups by group id; a group id is in only one of both mappings.
        offsets: Committed offsets of all groups.
        transactions: Open transactions that have committed offsets here.
        deadlines: Deadlines, by keys of `classic.keys`, `consumer.timers.keys` and the modules
            of `offsets`.
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
        """Return the group, classic or consumer, or None."""
        return self.consumer_groups.get(group_id) or self.groups.get(group_id)
