"""Static voters (``controller.quorum.voters``, ``kraft.version`` 0): a voter is its node id, whatever its directory.

Their set has keys without directory ids, and names them as the settings do. Replicas still say their directory in
requests, as Kafka's do, so what comes is taken in as the set names it, before any rule looks at it; a replica itself
goes by that name too. All rules compare keys, and none has to know of this. Once a leader has put the voters in the log
(``kraft.version`` 1) keys have directories again, with the record that says so.
"""

from pykafka_core.quorum.rpc import (
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    Vote,
)
from pykafka_core.quorum.turn import Turn
from pykafka_core.quorum.values import ReplicaKey, VoterSet
from pykafka_core.types import ZERO_ID


def known_as(voters: VoterSet, key: ReplicaKey) -> ReplicaKey:
    """A replica as a voter set names it: without its directory if it is a static voter."""
    static = key._replace(directory_id=ZERO_ID)
    return static if static in voters.keys else key


def take_own_name(turn: Turn) -> None:
    """A controller goes by the name that the voter set has for it."""
    if turn.own is not None:
        turn.key = known_as(turn.log.voter_set, turn.own.key)


def as_known(turn: Turn, body: Body) -> Body:
    """A request with replicas as the voter set names them."""
    known = turn.log.voter_set
    match body:
        case Vote():
            return body._replace(
                candidate=known_as(known, body.candidate), voter=_meant(turn, body.voter)
            )
        case BeginQuorumEpoch():
            return body._replace(voter=_meant(turn, body.voter))
        case EndQuorumEpoch():
            return body._replace(preferred=tuple(known_as(known, one) for one in body.preferred))
        case Fetch() | FetchSnapshot():
            return body._replace(replica=known_as(known, body.replica))
        case _:
            return body


def _meant(turn: Turn, voter: ReplicaKey) -> ReplicaKey:
    """Whom a request is for: a static voter may be named with its directory, which has to be this one then."""
    own = turn.own
    is_static = turn.key.directory_id == ZERO_ID
    return turn.key if is_static and own is not None and voter == own.key else voter


def static_ids(voters: VoterSet) -> tuple[int, ...]:
    """Node ids of static voters; none where the voters are in the log, or not known."""
    if voters.kraft_version:
        return ()
    return tuple(key.node_id for key in voters.keys if key.directory_id == ZERO_ID)
