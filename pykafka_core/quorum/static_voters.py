"""Static voters (``controller.quorum.voters``, ``kraft.version`` 0), identified by node id alone.

The keys of a static set have node ids from the settings, and no directory ids. Requests contain
directory ids, as in Kafka, so each incoming request is first translated to the keys of the set; a
replica also uses that key for itself. So all rules just compare keys. Once a leader has put the
voters into the log (``kraft.version`` 1), keys have directory ids, from that record on.
"""

from pykafka_core.quorum.rpc import (
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    Vote,
)
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.values import ReplicaKey, VoterSet
from pykafka_core.types import ZERO_ID


def known_as(voters: VoterSet, key: ReplicaKey) -> ReplicaKey:
    """Return a replica's key in a voter set: without directory id if it is a static voter."""
    static = key._replace(directory_id=ZERO_ID)
    return static if static in voters.keys else key


def take_own_name(transition: Transition) -> None:
    """Set a controller's own key to its key in the voter set."""
    if transition.own is not None:
        transition.key = known_as(transition.log.voter_set, transition.own.key)


def as_known(transition: Transition, body: Body) -> Body:
    """Return a request with the replica keys of the voter set."""
    known = transition.log.voter_set
    match body:
        case Vote():
            return body._replace(
                candidate=known_as(known, body.candidate), voter=_meant(transition, body.voter)
            )
        case BeginQuorumEpoch():
            return body._replace(voter=_meant(transition, body.voter))
        case EndQuorumEpoch():
            return body._replace(preferred=tuple(known_as(known, one) for one in body.preferred))
        case Fetch() | FetchSnapshot():
            return body._replace(replica=known_as(known, body.replica))
        case _:
            return body


def _meant(transition: Transition, voter: ReplicaKey) -> ReplicaKey:
    """Return the target of a request; a static voter may be named with its own directory id."""
    own = transition.own
    is_static = transition.key.directory_id == ZERO_ID
    return transition.key if is_static and own is not None and voter == own.key else voter


def static_ids(voters: VoterSet) -> tuple[int, ...]:
    """Return the node ids of static voters; empty if voters are in the log, or unknown."""
    if voters.kraft_version:
        return ()
    return tuple(key.node_id for key in voters.keys if key.directory_id == ZERO_ID)
