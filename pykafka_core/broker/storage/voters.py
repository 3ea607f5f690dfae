"""The voters of a metadata quorum in a record. Format: ``VotersRecord.json`` (KIP-853)."""

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
    """A voter and its address."""

    key: ReplicaKey
    host: str
    port: int


def quorum_records(voters: Sequence[VoterNode], listener: str) -> QuorumRecords:
    """Return the control records of a quorum with these voters, whose controller listener is
    ``listener``.
    """
    told = (
        Voter(voter.key, (VoterEndpoint(listener, voter.host, voter.port),), (0, KRAFT_VERSION))
        for voter in voters
    )
    return quorum_records_of(VoterSet(0, tuple(told), KRAFT_VERSION))


def quorum_records_of(known: VoterSet) -> QuorumRecords:
    """Return the control records of a voter set; empty for static voters."""
    if known.kraft_version < 1:
        return QuorumRecords()
    return QuorumRecords(encode_kraft_version(known.kraft_version), encode_voters(known.voters))


def voter_set_of(records: QuorumRecords, end: int) -> VoterSet | None:
    """Return the voter set of control records before ``end``; None if they contain none.

    Raises:
        ValueError: They are invalid.
    """
    change = change_of(records.records())
    if change is None or change.voters is None:
        return None
    return VoterSet(end, change.voters, change.kraft_version or 0)


def kraft_version_of(records: QuorumRecords) -> int:
    """Return the kraft.version in the records; 0 without records, as with static voters.

    Raises:
        ValueError: They are invalid.
    """
    change = change_of(records.records())
    return 0 if change is None else change.kraft_version or 0


def voters_of(records: QuorumRecords, listeners: Sequence[str]) -> tuple[VoterNode, ...]:
    """Return the voters; empty if they are not in the log, as in a quorum with static voters.

    A voter without endpoints is omitted: a single broker wrote it into the log.

    Args:
        records: The control records.
        listeners: Names of controller listeners; the first one that a voter has is its address.

    Raises:
        ValueError: The record is invalid, or a voter has no such listener.
    """
    return tuple(_voter(voter, listeners) for voter in _recorded(records) if voter.endpoints)


def has_others(records: QuorumRecords, node_id: int) -> bool:
    """Return whether a quorum has voters on other nodes.

    Raises:
        ValueError: The record is invalid.
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
