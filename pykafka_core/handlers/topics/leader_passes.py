"""Elections that the active controller makes from time to time, at most `ELECTIONS_MAX` of them in a pass.

A pass that made as many has left some over: the next one follows at once.
"""

from collections.abc import Iterable

from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Propose, Slices
from pykafka_core.metadata.elections import leaderless, preferred
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import ElectLeadersResponse, Message, PartitionChangeRecord

REBALANCE = "auto.leader.rebalance.enable"


def balance_leaders(context: Context) -> Slices[Propose]:
    """Make first replicas lead that may, every ``leader.imbalance.check.interval.seconds``; nothing where it is off."""
    if not context.settings.boolean(REBALANCE):
        return (yield from _proposed(()))
    rules = PartitionRules(context.image, context.settings)
    return (yield from _proposed(preferred(context.image, rules)))


def elect_leaderless(context: Context) -> Slices[Propose]:
    """Elect where nobody leads and somebody may, every ``unclean.leader.election.interval.ms``."""
    rules = PartitionRules(context.image, context.settings)
    return (yield from _proposed(leaderless(context.image, rules)))


def _proposed(changes: Iterable[PartitionChangeRecord | None]) -> Slices[Propose]:
    records: list[Message] = []
    for record in changes:
        if record is not None:
            records.append(record)
        yield
    return Propose(records, lambda code: ElectLeadersResponse(error_code=code))
