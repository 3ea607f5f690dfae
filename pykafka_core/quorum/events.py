"""Events and outputs of a `Replica`, in addition to those of every quorum in ``quorum.py``.

The driver's duties:
- Execute commands in the given order. Writes to the log (`Append`, `AppendFetched`, `Truncate`)
  complete in that order, once each, as `Appended` or `Truncated`, when they are on disk.
- `Send` completes once, as `Replied`: with the response, or with None if the connection failed or
  the request timed out.
- For a `Respond` with ``read_from``, read the log when the command is executed, not later.
- Before an event without a time, the value is moved to the current time (`Replica.at`). Otherwise a
  pending write would seem older than it is.
- An event from outside carries its time of arrival. It must be handled before a `Tick` of a later
  time, so that a request that waited in the queue of a slow loop is not treated as missing.
- After a restart, start with ``replica.begin`` and the content of the disk. Drop responses to
  requests from before.
"""

from typing import NamedTuple

from pykafka_core.quorum.quorum import Append, Appended, Committed, Proposal
from pykafka_core.quorum.rpc import Body, ReplyBody
from pykafka_core.quorum.values import Batch, ElectionState, OffsetAndEpoch, VoterSet

# Events.


class Tick(NamedTuple):
    """The monotonic clock shows ``now_ms``: handle expired timers."""

    now_ms: int


class Request(NamedTuple):
    """A request from another replica; ``number`` is the driver's, for the `Respond`."""

    now_ms: int
    number: int
    body: Body


class Replied(NamedTuple):
    """The result of a `Send`: the response, or None.

    Attributes:
        is_gone: There is no response because the host refuses connections: the process has ended.
    """

    now_ms: int
    correlation: int
    reply: ReplyBody | None
    is_gone: bool = False


class Persisted(NamedTuple):
    """The oldest pending `Persist` is on disk, or failed."""

    error_code: int = 0


class Truncated(NamedTuple):
    """A `Truncate` is on disk, or failed."""

    error_code: int = 0


class SnapshotInstalled(NamedTuple):
    """An `InstallSnapshot` ended: the snapshot and an empty log replace the old content.

    None instead of an id means that a part could not be stored, or that the parts are not a valid
    snapshot. Nothing was changed, and the parts were deleted.

    Attributes:
        voters: The voter set at its end; None if it contains none.
    """

    snapshot_id: OffsetAndEpoch | None
    voters: VoterSet | None = None


class SnapshotTaken(NamedTuple):
    """A snapshot of committed records is on disk."""

    snapshot_id: OffsetAndEpoch


class LogCleaned(NamedTuple):
    """Records before a snapshot's end were deleted from the log; the snapshot is on disk."""

    snapshot_id: OffsetAndEpoch


class Resign(NamedTuple):
    """The node is about to stop: a leader hands over."""


ReplicaEvent = (
    Tick
    | Request
    | Replied
    | Persisted
    | Proposal
    | Appended
    | Truncated
    | SnapshotInstalled
    | SnapshotTaken
    | LogCleaned
    | Resign
)


# Commands.


class Persist(NamedTuple):
    """Command: write ``quorum-state`` and sync it. It completes as `Persisted`."""

    state: ElectionState


class Send(NamedTuple):
    """Command: send a request to a node. It completes as `Replied`, within ``timeout_ms``."""

    correlation: int
    node_id: int
    body: Body
    timeout_ms: int


class Respond(NamedTuple):
    """Command: respond to a request.

    Attributes:
        read_from: If set, whole batches of the log from this offset on are included: as many as fit
            into a response, and at least one. They exist, but may not be synced.
        body: The driver adds the requested part to a `SnapshotReply` without an error, or an error
            if the part does not exist.
    """

    number: int
    body: ReplyBody
    read_from: int | None = None


class AppendFetched(NamedTuple):
    """Command: append batches unchanged. It completes as `Appended`, with the first offset."""

    batches: tuple[Batch, ...]


class Truncate(NamedTuple):
    """Command: remove records from ``end_offset`` on. It completes as `Truncated`."""

    end_offset: int


class StorePart(NamedTuple):
    """Command: store a part of a snapshot; one at position 0 starts a new file.

    A failure is reported by `SnapshotInstalled`.
    """

    snapshot_id: OffsetAndEpoch
    position: int
    part: bytes


class InstallSnapshot(NamedTuple):
    """Command: atomically replace log and image by the snapshot, all parts of which are stored.

    It completes as `SnapshotInstalled`. Until then this replica neither fetches nor starts
    elections.
    """

    snapshot_id: OffsetAndEpoch


# Notices.


class Advanced(NamedTuple):
    """Notice: records were committed that this replica did not propose; offsets are inclusive."""

    first_offset: int
    last_offset: int


class InDoubt(NamedTuple):
    """Notice: another leader may or may not commit the proposed records; clients get an error."""


class LeaderChanged(NamedTuple):
    """Notice: ``leader_id`` leads in ``epoch``; -1 for no leader."""

    leader_id: int
    epoch: int


class Failed(NamedTuple):
    """Notice: the disk failed, or a leader requested the truncation of committed records.

    The replica ignores all later events; its node stops.
    """

    error_code: int


Write = Append | AppendFetched | Truncate
Command = Persist | Send | Respond | Write | StorePart | InstallSnapshot
ReplicaOutput = Command | Committed | Advanced | InDoubt | LeaderChanged | Failed
