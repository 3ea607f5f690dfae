"""Raising ``kraft.version`` to 1: static voters come into the log (KIP-853).

A static set names node ids, but voters in the log have directories, and each has to support the
level. So a static voter describes itself to every new leader, by UpdateVoter, and the leader keeps
that in memory. Once all have done so, one control batch holds the version and the voters. It counts
from its append on, like any other voter set: the same nodes vote before and after it
(``KRaftVersionUpgrade`` in Kafka).
"""

from pykafka_core.errors import InvalidRequestError, KafkaError, VoterNotFoundError
from pykafka_core.quorum.log.voters import append_voters
from pykafka_core.quorum.quorum import Append
from pykafka_core.quorum.roles import Follower, Leader, Role
from pykafka_core.quorum.rpc import UpdateVoter
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.values import Voter, VoterSet


def take_description(transition: Transition, voter: Voter) -> tuple[type[KafkaError], str] | None:
    """Keep a static voter's description of itself, or return the refusal."""
    role, known = transition.role, transition.log.voter_set
    assert isinstance(role, Leader), "voters describe themselves to a leader"
    low, high = voter.kraft_versions
    node_id = voter.key.node_id
    if not low <= known.kraft_version <= high:
        return InvalidRequestError, InvalidRequestError.text
    if all(node_id != key.node_id for key in known.keys):
        return VoterNotFoundError, f"node {node_id} is not among the static voters"
    others = tuple(one for one in role.described if one.key.node_id != node_id)
    transition.role = role._replace(described=(*others, voter))
    return None


def description(transition: Transition, role: Follower) -> UpdateVoter | None:
    """The description that a static voter owes its leader; None once the leader has it."""
    if transition.own is None or not transition.is_voter or role.is_described:
        return None
    return UpdateVoter(transition.own, transition.election.epoch)


def raising_problem(known: VoterSet, own: Voter | None, role: Role, level: int) -> str | None:
    """Why the version cannot be raised, in the words of Kafka's ``LeaderState``."""
    voters = _described(known, own, role)
    reason = None
    if len(voters) < len(known.voters):
        reason = "not all of the voters have described themselves to the leader"
    elif any(not low <= level <= high for _, _, (low, high) in voters):
        reason = "not all of the voters support it"
    return reason and f"Invalid upgrade of kraft.version to {level} because {reason}"


def raising(transition: Transition, level: int) -> Append | None:
    """The control batch that raises the version; None if there is a problem."""
    known, own, role = transition.log.voter_set, transition.own, transition.role
    if raising_problem(known, own, role, level) is not None:
        return None
    return append_voters(transition.election.epoch, level, _described(known, own, role))


def _described(known: VoterSet, own: Voter | None, role: Role) -> tuple[Voter, ...]:
    """The static voters with what they said of themselves, in the order of the set."""
    described = role.described if isinstance(role, Leader) else ()
    by_id = {voter.key.node_id: voter for voter in (*described, *((own,) if own else ()))}
    return tuple(by_id[key.node_id] for key in known.keys if key.node_id in by_id)
