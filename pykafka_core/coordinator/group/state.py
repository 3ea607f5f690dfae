"""What a group coordinator's shard holds: the groups of one partition of `__consumer_offsets`, and their offsets."""

from collections.abc import Callable

from pykafka_core.coordinator.deadlines import Deadlines
from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.offsets.table import OffsetTable
from pykafka_core.coordinator.group.offsets.transactions import OpenTransactions
from pykafka_core.coordinator.group.settings import GroupSettings


class GroupState:
    """Data alone; what happens to it is in functions, a file for each request.

    Args:
        settings: Of the coordinator.
        new_uuid: A random UUID's text at each call; member ids end with one.

    Attributes:
        groups: By group id. A group that has offsets only ("simple") is one without members.
        offsets: Committed offsets of all groups.
        transactions: Those that have committed offsets here and have not ended.
        deadlines: What is to be done at a time, by keys of `classic.due` and `offsets.expiry`.
    """

    __slots__ = "deadlines", "groups", "new_uuid", "offsets", "settings", "transactions"

    def __init__(self, settings: GroupSettings, new_uuid: Callable[[], str]) -> None:
        self.settings = settings
        self.new_uuid = new_uuid
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = OffsetTable()
        self.transactions = OpenTransactions()
        self.deadlines = Deadlines()
