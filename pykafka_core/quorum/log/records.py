"""The quorum's own control records."""

from collections.abc import Iterable

from pykafka_core.protocol import encode_message
from pykafka_core.protocol.messages import LeaderChangeMessage

LEADER_CHANGE = 2
"""Type of the control record that starts every epoch (``ControlRecordType``)."""
LEADER_CHANGE_KEY = b"\0\0\0\x02"


def leader_change(leader_id: int, voters: Iterable[int], granting: Iterable[int]) -> bytes:
    """Encode a LeaderChangeMessage in version 0, the only one in Kafka 4.2, even with KIP-853."""
    of = LeaderChangeMessage.Voter
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=[of(voter_id=node_id) for node_id in voters],
        granting_voters=[of(voter_id=node_id) for node_id in granting],
    )
    return encode_message(message, 0)
