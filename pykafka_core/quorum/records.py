"""The quorum's own control records."""

from collections.abc import Sequence

from pykafka_core.quorum.values import ReplicaKey

LEADER_CHANGE = 2
"""Type of the control record with which every epoch begins (``ControlRecordType``)."""
LEADER_CHANGE_KEY = b"\0\0\0\x02"


def leader_change(
    leader_id: int, voters: Sequence[ReplicaKey], granting: Sequence[ReplicaKey]
) -> bytes:
    """LeaderChangeMessage version 1, whose voters have directory ids (KIP-853).

    int16 version, int32 leader, two compact arrays of {int32 voter, uuid directory, no tags}, no tags.
    """
    return b"\0\1" + leader_id.to_bytes(4, "big") + _array(voters) + _array(granting) + b"\0"


def _array(replicas: Sequence[ReplicaKey]) -> bytes:
    items = (node.to_bytes(4, "big") + directory + b"\0" for node, directory in replicas)
    return bytes((len(replicas) + 1,)) + b"".join(items)
