"""The file ``quorum-state``: the election state of a quorum replica.

Format: ``QuorumStateData.json``.

Version 1 has the directory id of the voted candidate (KIP-853). Version 0 has the node ids of
static voters instead.
"""

import json
from collections.abc import Sequence
from typing import Final

from pykafka_core.quorum.values import ElectionState, ReplicaKey
from pykafka_core.types import ZERO_ID, id_bytes, id_text

EPOCH_MAX: Final = 2**31 - 2
"""Maximum epoch in the file, so that the next epoch still fits into 32 bits."""


def encode(state: ElectionState, static_voters: Sequence[int] = ()) -> bytes:
    """Return the file's content.

    Args:
        state: The election state.
        static_voters: Node ids of static voters; empty if the voters are in the log, or for a
            single node.
    """
    voted = state.voted or ReplicaKey(-1, ZERO_ID)
    values: dict[str, object] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": voted.node_id,
        "votedDirectoryId": id_text(voted.directory_id),
        "data_version": 1,
    }
    if static_voters:
        values = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.node_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": node_id} for node_id in static_voters],
            "data_version": 0,
        }
    return json.dumps(values, separators=(",", ":")).encode()


def decode(content: bytes) -> ElectionState:
    """Return the state in a file of ours or of Apache Kafka.

    Raises:
        ValueError: The content is not a quorum-state.
    """
    values = _object(content)
    epoch = _number(values, "leaderEpoch", 0, EPOCH_MAX)
    leader_id = _number(values, "leaderId", -1, 2**31 - 1)
    voted_id = _number(values, "votedId", -1, 2**31 - 1)
    directory_id = values.get("votedDirectoryId", id_text(ZERO_ID))
    if not isinstance(directory_id, str):
        raise ValueError("its votedDirectoryId is not a string")
    voted = None if voted_id == -1 else ReplicaKey(voted_id, id_bytes(directory_id))
    return ElectionState(epoch, leader_id, voted)


def static_voters(content: bytes) -> frozenset[int]:
    """Return the node ids of the static voters in a file of version 0.

    Raises:
        ValueError: The content is not a quorum-state.
    """
    voters = _object(content).get("currentVoters") or []
    if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
        raise ValueError("its currentVoters is not a list of objects")
    return frozenset(_number(voter, "voterId", 0, 2**31 - 1) for voter in voters)


def _object(content: bytes) -> dict[str, object]:
    try:
        values = json.loads(content)
    except RecursionError as error:
        raise ValueError(str(error)) from error
    if not isinstance(values, dict):
        raise ValueError("it is not an object")
    return values


def _number(values: dict[str, object], name: str, least: int, most: int) -> int:
    value = values.get(name, -1)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"its {name} is not a number of {least} to {most}")
    return value
