"""The quorum's own control records."""

from collections.abc import Sequence

from pykafka_core.protocol import encode_message
from pykafka_core.protocol.messages import LeaderChangeMessage
from pykafka_core.quorum.values import ReplicaKey

LEADER_CHANGE = 2
"""Type of the control record with which every epoch begins (``ControlRecordType``)."""
LEADER_CHANGE_KEY = b"\0\0\0\x02"


def leader_change(
    leader_id: int, voters: Sequence[ReplicaKey], granting: Sequence[ReplicaKey]
) -> bytes:
    """LeaderChangeMessage version 1, whose voters have directory ids (KIP-853)."""
    message = LeaderChangeMessage(
        version=1,
        leader_id=leader_id,
        voters=[_voter(voter) for voter in voters],
        granting_voters=[_voter(voter) for voter in granting],
    )
    return encode_message(message, 1)


def _voter(replica: ReplicaKey) -> LeaderChangeMessage.Voter:
    node_id, directory_id = replica
    return LeaderChangeMessage.Voter(voter_id=node_id, voter_directory_id=directory_id)
