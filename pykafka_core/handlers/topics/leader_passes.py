"""Periodic elections by the active controller, at most `ELECTIONS_MAX` in a pass.

After a pass with that many elections the next pass follows at once.
"""

from collections.abc import Iterable

from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Work
from pykafka_core.metadata.elections import leaderless, preferred
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import ElectLeadersResponse, Message, PartitionChangeRecord

REBALANCE = "auto.leader.rebalance.enable"


def balance_leaders(context: Context) -> Work[MetadataWrite]:
    """Make preferred leaders lead, every ``leader.imbalance.check.interval.seconds``.

    It does nothing if the rebalance is disabled.
    """
    if not context.settings.boolean(REBALANCE):
        return (yield from _proposed(()))
    rules = PartitionRules(context.image, context.settings)
    return (yield from _proposed(preferred(context.image, rules)))


def elect_leaderless(context: Context) -> Work[MetadataWrite]:
    """Elect leaders of partitions without one, where a replica may lead.

    It runs every ``unclean.leader.election.interval.ms``.
    """
    rules = PartitionRules(context.image, context.settings)
    return (yield from _proposed(leaderless(context.image, rules)))


def _proposed(changes: Iterable[PartitionChangeRecord | None]) -> Work[MetadataWrite]:
    records: list[Message] = []
    for record in changes:
        if record is not None:
            records.append(record)
        yield
    return MetadataWrite(records, lambda code: ElectLeadersResponse(error_code=code))
