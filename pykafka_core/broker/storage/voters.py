"""The voters of a metadata quorum as a record has them. Format: ``VotersRecord.json`` (KIP-853)."""

from collections.abc import Sequence
from typing import NamedTuple

from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.quorum.log.voters import (
    KRAFT_VERSION,
    change_of,
    decode_voters,
    encode_kraft_version,
    encode_voters,
    reached_at,
)
from pykafka_core.quorum.values import ReplicaKey, Voter, VoterEndpoint, VoterSet


class VoterNode(NamedTuple):
    """A voter, and where the others reach it."""

    key: ReplicaKey
    host: str
    port: int


def quorum_records(voters: Sequence[VoterNode], listener: str) -> QuorumRecords:
    """The control records of a quorum of these voters, who listen for each other at ``listener``."""
    told = (
        Voter(voter.key, (VoterEndpoint(listener, voter.host, voter.port),), (0, KRAFT_VERSION))
        for voter in voters
    )
    return quorum_records_of(VoterSet(0, tuple(told), KRAFT_VERSION))


def quorum_records_of(known: VoterSet) -> QuorumRecords:
    """The control records of a voter set; none of static voters."""
    if known.kraft_version < 1:
        return QuorumRecords()
    return QuorumRecords(encode_kraft_version(known.kraft_version), encode_voters(known.voters))


def voter_set_of(records: QuorumRecords, end: int) -> VoterSet | None:
    """The voter set that control records before ``end`` name; None if they name none.

    Raises:
        ValueError: They cannot be understood.
    """
    change = change_of(records.records())
    if change is None or change.voters is None:
        return None
    return VoterSet(end, change.voters, change.kraft_version or 0)


def kraft_version_of(records: QuorumRecords) -> int:
    """The level that the records name; 0 where there are none, as with static voters.

    Raises:
        ValueError: They cannot be understood.
    """
    change = change_of(records.records())
    return 0 if change is None else change.kraft_version or 0


def voters_of(records: QuorumRecords, listeners: Sequence[str]) -> tuple[VoterNode, ...]:
    """The voters; none where they are not in the log, as in a quorum with static voters.

    A voter without any endpoint is left out: a broker that was alone put it into the log.

    Args:
        listeners: Names of listeners of controllers; a voter is reached at the first that it has.

    Raises:
        ValueError: The record cannot be understood, or a voter has no such listener.
    """
    return tuple(_voter(voter, listeners) for voter in _recorded(records) if voter.endpoints)


def has_others(records: QuorumRecords, node_id: int) -> bool:
    """Whether a quorum has voters on other nodes.

    Raises:
        ValueError: The record cannot be understood.
    """
    return any(voter.key.node_id != node_id for voter in _recorded(records))


def _recorded(records: QuorumRecords) -> Sequence[Voter]:
    return () if records.voters is None else decode_voters(records.voters)


def _voter(voter: Voter, listeners: Sequence[str]) -> VoterNode:
    at = reached_at(voter, listeners)
    if at is None:
        node_id = voter.key.node_id
        raise ValueError(f"voter {node_id} has none of the listeners {', '.join(listeners)}")
    return VoterNode(voter.key, at.host, at.port)
