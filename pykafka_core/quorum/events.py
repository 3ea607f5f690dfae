"""What a `Replica` takes in and gives out, beside what ``quorum.py`` has for every quorum.

The driver's duties:
- It carries commands out in the order given. What belongs to the log (`Append`, `AppendFetched`, `Truncate`) completes
  in that order, once each: as `Appended` or `Truncated`, when it is on the disk.
- `Send` completes once, as `Replied`: with the answer, or with None when the connection or the time ended.
- `Answer` is read from the log, if ``read_from`` says so, when it is carried out, not later.
- An event from outside carries the time at which it arrived. It is handled before a `Tick` of a later time, so a loop
  that was late does not take a request that waited in its queue for one that never came.
- A restart begins with ``replica.begin``, which takes what the disk holds. Answers to an earlier life are dropped.
"""

from typing import NamedTuple

from pykafka_core.quorum.quorum import Append, Appended, Committed, Proposal
from pykafka_core.quorum.rpc import AnswerBody, Body
from pykafka_core.quorum.values import Batch, ElectionState, OffsetAndEpoch, VoterSet

# Events.


class Tick(NamedTuple):
    """The monotonic clock shows ``now_ms``: timers that are due go off."""

    now_ms: int


class Request(NamedTuple):
    """Another replica asks; ``number`` is the driver's, for the `Answer`."""

    now_ms: int
    number: int
    body: Body


class Replied(NamedTuple):
    """What became of a `Send`: the answer, or None.

    Attributes:
        is_gone: There is no answer as the node's host refuses connections: its process is gone.
    """

    now_ms: int
    correlation: int
    answer: AnswerBody | None
    is_gone: bool = False


class Persisted(NamedTuple):
    """The oldest `Persist` that is under way is on the disk, or failed."""

    error_code: int = 0


class Truncated(NamedTuple):
    """A `Truncate` is on the disk, or failed."""

    error_code: int = 0


class SnapshotInstalled(NamedTuple):
    """An `InstallSnapshot` ended: snapshot and empty log are in place of what was there.

    Or None: a part could not be stored, or all of them are no snapshot. Nothing changed, and no part is left.

    Attributes:
        voters: The voter set at its end; None if it names none.
    """

    snapshot_id: OffsetAndEpoch | None
    voters: VoterSet | None = None


class SnapshotTaken(NamedTuple):
    """A snapshot of committed records is on the disk."""

    snapshot_id: OffsetAndEpoch


class LogCleaned(NamedTuple):
    """Records before a snapshot's end are gone from the log; the snapshot, on the disk, has them."""

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
    """Command: ask a node. It completes as `Replied`, after ``timeout_ms`` at the latest."""

    correlation: int
    node_id: int
    body: Body
    timeout_ms: int


class Answer(NamedTuple):
    """Command: answer a request.

    Attributes:
        read_from: Whole batches of the log from this offset on go with it, as many as fit one answer and
            one at least: they are there, if not yet synced.
        body: A `SnapshotAnswer` without an error gets the part that was asked for, or an error if there is none.
    """

    number: int
    body: AnswerBody
    read_from: int | None = None


class AppendFetched(NamedTuple):
    """Command: append batches as they are. It completes as `Appended`, with the offset of the first."""

    batches: tuple[Batch, ...]


class Truncate(NamedTuple):
    """Command: remove what is at ``end_offset`` and behind it. It completes as `Truncated`."""

    end_offset: int


class StorePart(NamedTuple):
    """Command: write a part of a snapshot to where it is collected; one at position 0 begins it from nothing.

    If that fails, `SnapshotInstalled` says so.
    """

    snapshot_id: OffsetAndEpoch
    position: int
    part: bytes


class InstallSnapshot(NamedTuple):
    """Command: put the snapshot, all parts of which are stored, atomically in place of log and image.

    It completes as `SnapshotInstalled`. Until then this replica neither fetches nor stands for election.
    """

    snapshot_id: OffsetAndEpoch


# Notices.


class Advanced(NamedTuple):
    """Notice: records of the own log are committed that this replica did not propose; both offsets are inclusive."""

    first_offset: int
    last_offset: int


class InDoubt(NamedTuple):
    """Notice: what was proposed may be committed by another leader, or not; whoever asked for it is told so."""


class LeaderChanged(NamedTuple):
    """Notice: ``leader_id``, or nobody for -1, leads in ``epoch``."""

    leader_id: int
    epoch: int


class Failed(NamedTuple):
    """Notice: the disk failed, or a leader would have committed records removed.

    The replica does nothing from now on; its node stops.
    """

    error_code: int


Write = Append | AppendFetched | Truncate
Command = Persist | Send | Answer | Write | StorePart | InstallSnapshot
ReplicaOutput = Command | Committed | Advanced | InDoubt | LeaderChanged | Failed
