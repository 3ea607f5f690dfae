"""The file ``quorum-state``: what a replica of the metadata quorum must not forget. Format: ``QuorumStateData.json``.

Version 1 has a directory id in its vote (KIP-853). Version 0, of static voters, has their node ids instead.
"""

import json
from collections.abc import Sequence
from typing import Final

from pykafka_core.quorum.values import ElectionState, ReplicaKey
from pykafka_core.types import ZERO_ID, id_bytes, id_text

EPOCH_MAX: Final = 2**31 - 2
"""Of a file that is found: the next epoch has to be a number of 32 bits too."""


def encode(state: ElectionState, static_voters: Sequence[int] = ()) -> bytes:
    """The file's content.

    Args:
        static_voters: Their node ids; none where the voters are in the log, or where this node is alone.
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
    """What was written, by us or by Apache Kafka.

    Raises:
        ValueError: It is no quorum-state.
    """
    values = _object(content)
    epoch = _number(values, "leaderEpoch", 0, EPOCH_MAX)
    leader_id = _number(values, "leaderId", -1, 2**31 - 1)
    voted_id = _number(values, "votedId", -1, 2**31 - 1)
    directory_id = values.get("votedDirectoryId", id_text(ZERO_ID))
    if not isinstance(directory_id, str):
        raise ValueError("its votedDirectoryId is no text")
    voted = None if voted_id == -1 else ReplicaKey(voted_id, id_bytes(directory_id))
    return ElectionState(epoch, leader_id, voted)


def static_voters(content: bytes) -> frozenset[int]:
    """Node ids of the static voters that a version 0 names.

    Raises:
        ValueError: It is no quorum-state.
    """
    voters = _object(content).get("currentVoters") or []
    if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
        raise ValueError("its currentVoters are no list of objects")
    return frozenset(_number(voter, "voterId", 0, 2**31 - 1) for voter in voters)


def _object(content: bytes) -> dict[str, object]:
    try:
        values = json.loads(content)
    except RecursionError as error:
        raise ValueError(str(error)) from error
    if not isinstance(values, dict):
        raise ValueError("it is no object")
    return values


def _number(values: dict[str, object], name: str, least: int, most: int) -> int:
    value = values.get(name, -1)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"its {name} is not a number of {least} to {most}")
    return value
