"""The voters of a metadata quorum as a record has them. Format: ``VotersRecord.json`` (KIP-853)."""

from collections.abc import Sequence
from typing import NamedTuple, cast

from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.protocol import decode_message, encode_message
from pykafka_core.protocol.messages import KRaftVersionRecord, VotersRecord
from pykafka_core.quorum.values import ReplicaKey

KRAFT_VERSION = 1
"""Since then voters are in the log, each with its directory id."""


class VoterNode(NamedTuple):
    """A voter, and where the others reach it."""

    key: ReplicaKey
    host: str
    port: int


def quorum_records(voters: Sequence[VoterNode], listener: str) -> QuorumRecords:
    """The control records of a quorum of these voters, who listen for each other at ``listener``."""
    of = VotersRecord
    record = of(
        voters=[
            of.Voter(
                voter_id=voter.key.node_id,
                voter_directory_id=voter.key.directory_id,
                endpoints=[of.Endpoint(name=listener, host=voter.host, port=voter.port)],
                k_raft_version_feature=of.KRaftVersionFeature(
                    min_supported_version=0, max_supported_version=KRAFT_VERSION
                ),
            )
            for voter in voters
        ]
    )
    version = KRaftVersionRecord(k_raft_version=KRAFT_VERSION)
    return QuorumRecords(bytes(encode_message(version, 0)), bytes(encode_message(record, 0)))


def voters_of(records: QuorumRecords, listeners: Sequence[str]) -> tuple[VoterNode, ...]:
    """The voters; none where they are not in the log, as in a quorum with static voters.

    Args:
        listeners: Names of listeners of controllers; a voter is reached at the first that it has.

    Raises:
        ValueError: The record cannot be understood, or a voter has no such listener.
    """
    return tuple(_voter(voter, listeners) for voter in _recorded(records))


def has_others(records: QuorumRecords, node_id: int) -> bool:
    """Whether a quorum has voters on other nodes.

    Raises:
        ValueError: The record cannot be understood.
    """
    return any(voter.voter_id != node_id for voter in _recorded(records))


def _recorded(records: QuorumRecords) -> Sequence[VotersRecord.Voter]:
    if records.voters is None:
        return ()
    return cast("VotersRecord", decode_message("VotersRecord", 0, records.voters)).voters


def _voter(voter: VotersRecord.Voter, listeners: Sequence[str]) -> VoterNode:
    at = {endpoint.name.upper(): endpoint for endpoint in voter.endpoints}
    for name in listeners:
        if name in at:
            key = ReplicaKey(voter.voter_id, voter.voter_directory_id)
            return VoterNode(key, at[name].host, at[name].port)
    raise ValueError(f"voter {voter.voter_id} has none of the listeners {', '.join(listeners)}")
