"""The voter set in the log: KRaftVersionRecord and VotersRecord (KIP-853), and changes of a set.

Formats: Kafka's ``KRaftVersionRecord.json`` and ``VotersRecord.json``, both in version 0.
"""

from collections.abc import Iterable
from typing import Final, cast

from pykafka_core.protocol import decode_message, encode_message
from pykafka_core.protocol.messages import KRaftVersionRecord, VotersRecord
from pykafka_core.quorum.quorum import Append
from pykafka_core.quorum.values import ReplicaKey, Voter, VoterEndpoint, VoterSet, VoterSetChange

KRAFT_VERSION_KEY: Final = b"\0\0\0\x05"
VOTERS_KEY: Final = b"\0\0\0\x06"
"""Version 0 and the type of a control record (``ControlRecordType``)."""

KRAFT_VERSION_RECORD: Final = 5
"""Type of the control record (``ControlRecordType``)."""

KRAFT_VERSION: Final = 1
"""The highest supported ``kraft.version``: voters are in the log and can be changed."""


# Records.


def encode_kraft_version(version: int) -> bytes:
    """Return the value of a KRaftVersionRecord."""
    return bytes(encode_message(KRaftVersionRecord(k_raft_version=version), 0))


def encode_voters(voters: Iterable[Voter]) -> bytes:
    """Return the value of a VotersRecord."""
    of = VotersRecord
    record = of(
        voters=[
            of.Voter(
                voter_id=voter.key.node_id,
                voter_directory_id=voter.key.directory_id,
                endpoints=[
                    of.Endpoint(name=name, host=host, port=port)
                    for name, host, port in voter.endpoints
                ],
                k_raft_version_feature=of.KRaftVersionFeature(
                    min_supported_version=voter.kraft_versions[0],
                    max_supported_version=voter.kraft_versions[1],
                ),
            )
            for voter in voters
        ]
    )
    return bytes(encode_message(record, 0))


def decode_voters(value: bytes) -> tuple[Voter, ...]:
    """Return the voters of a VotersRecord.

    Raises:
        ValueError: The value is invalid.
    """
    record = cast("VotersRecord", decode_message("VotersRecord", 0, value))
    return tuple(
        Voter(
            ReplicaKey(voter.voter_id, voter.voter_directory_id),
            tuple(VoterEndpoint(at.name, at.host, at.port) for at in voter.endpoints),
            (
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            ),
        )
        for voter in record.voters
    )


def change_of(records: Iterable[tuple[bytes | None, bytes | None]]) -> VoterSetChange | None:
    """Return the changes to the voter set by control records (keys and values), or None.

    Raises:
        ValueError: A record is invalid.
    """
    change = VoterSetChange(None, None)
    for key, value in records:
        if value is None:
            continue
        if key == VOTERS_KEY:
            change = change._replace(voters=decode_voters(value))
        elif key == KRAFT_VERSION_KEY:
            record = cast("KRaftVersionRecord", decode_message("KRaftVersionRecord", 0, value))
            change = change._replace(kraft_version=record.k_raft_version)
    return None if change == (None, None) else change


def after(before: VoterSet, change: VoterSetChange, end: int) -> VoterSet:
    """Return the voter set after a change by a batch that ends before ``end``."""
    voters = before.voters if change.voters is None else change.voters
    version = before.kraft_version if change.kraft_version is None else change.kraft_version
    return VoterSet(end, voters, version)


def reached_at(voter: Voter, listeners: Iterable[str]) -> VoterEndpoint | None:
    """Return the endpoint to reach a voter: the first of ``listeners`` (upper case) that it has."""
    at = {endpoint.listener.upper(): endpoint for endpoint in voter.endpoints}
    return next((at[name] for name in listeners if name in at), None)


def append_voters(epoch: int, kraft_version: int, voters: Iterable[Voter]) -> Append:
    """Return the control batch that puts the voters into the log."""
    values = encode_kraft_version(kraft_version), encode_voters(voters)
    return Append(epoch, values, (KRAFT_VERSION_KEY, VOTERS_KEY), KRAFT_VERSION_RECORD)


# Changes.


def recorded(voters: Iterable[Voter], key: ReplicaKey) -> Voter | None:
    """Return a replica's entry in the set; None if it is not in it."""
    return next((voter for voter in voters if voter.key == key), None)


def without(voters: Iterable[Voter], key: ReplicaKey) -> tuple[Voter, ...]:
    """Return the set without a replica."""
    return tuple(voter for voter in voters if voter.key != key)


def updated(voters: Iterable[Voter], changed: Voter) -> tuple[Voter, ...]:
    """Return the set with other endpoints or versions of one replica."""
    return tuple(changed if voter.key == changed.key else voter for voter in voters)
