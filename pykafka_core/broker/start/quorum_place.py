"""A node's role in the metadata quorum at its start: the voters, its own addresses, and the nodes
that it can contact.

The voters are recorded in the log after its newest snapshot (KIP-853). Otherwise
``controller.quorum.voters`` lists static voters, which never change and are identified only by
their node ids. The logs of three other kinds of nodes have no voters. The first kind is a broker
that was alone before it got a controller listener: its next epoch starts with a record of the
voters. The other kinds are a controller that will be added to the quorum later, and a node that is
only a broker; both contact the nodes in their settings. An empty log never starts a cluster: its
disk may have been lost, while the cluster runs on other nodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pykafka_core.broker.start.listeners import LOOPBACK
from pykafka_core.config import Listener, StartConfig
from pykafka_core.errors import ClusterError
from pykafka_core.quorum.log.state import LogState
from pykafka_core.quorum.log.voters import KRAFT_VERSION, recorded
from pykafka_core.quorum.values import ElectionState, ReplicaKey, Voter, VoterEndpoint, VoterSet
from pykafka_core.quorum.wire.envelope import Endpoint
from pykafka_core.types import ZERO_ID

FIRST_BOOTSTRAP_ID = -2
"""Node id of the first of ``controller.quorum.bootstrap.servers``, whose real ids are unknown; the
ids decrease, as in Kafka."""
_EVERYWHERE = ("", "0.0.0.0", "::")


class QuorumPlace(NamedTuple):
    """The initial state of a quorum replica.

    Attributes:
        log: The log with its voter sets.
        own: This node as a voter; None for a node that is only a broker.
        endpoints: Addresses of nodes for the first requests, by node id.
        bootstrap: The ids of these nodes, without this node's.
    """

    log: LogState
    own: Voter | None
    endpoints: Mapping[int, Endpoint]
    bootstrap: tuple[int, ...]


def quorum_place(
    start: StartConfig,
    key: ReplicaKey,
    log: LogState,
    election: ElectionState,
    bound: Sequence[tuple[Listener, int]],
    remembered: frozenset[int] = frozenset(),
) -> QuorumPlace:
    """Return the role of a node.

    Args:
        start: The settings of the start.
        key: This node and its directory.
        log: The log on disk.
        election: The content of quorum-state.
        bound: Its controller listeners, and their ports.
        remembered: Static voters in quorum-state.

    Raises:
        ClusterError: The other controllers are unknown, or the host at which they can reach this
            one.
    """
    own = Voter(
        key, _own_endpoints(start, bound, recorded(log.voter_set.voters, key)), (0, KRAFT_VERSION)
    )
    others = dict(_others(start, own))
    led_alone = log.end > 0 and election.leader_id == key.node_id and remembered <= {key.node_id}
    if not log.voter_set.voters:
        _check_history(start, key, remembered, led_alone=led_alone)
    if not start.is_controller:
        return QuorumPlace(log, None, others, tuple(others))
    if start.voters and not log.voter_sets[0].voters:
        # Before the voter sets in the log: a truncation of their records restores the static
        # voters.
        recorded_sets = (known for known in log.voter_sets[1:] if known.voters)
        log = log._replace(voter_sets=(_static_voters(start), *recorded_sets))
    if not log.voter_set.voters and led_alone:
        log = log._replace(voter_sets=(VoterSet(0, (own,), KRAFT_VERSION),))
    if not log.voter_set.voters and not others:
        raise ClusterError(
            "this directory knows no controllers: name some in controller.quorum.bootstrap.servers, or begin a "
            "new cluster in another one by `pykafka-core format --standalone HOST:PORT`"
        )
    at = own.endpoints[0]
    endpoints = {**others, key.node_id: Endpoint(at.host, at.port)}
    return QuorumPlace(log, own, endpoints, tuple(others))


def _check_history(
    start: StartConfig, key: ReplicaKey, remembered: frozenset[int], *, led_alone: bool
) -> None:
    """Refuse settings that contradict the directory's history, if its log names no voters."""
    named = frozenset(voter.node_id for voter in start.voters)
    if not start.is_controller:
        if led_alone:
            raise ClusterError(
                "this directory is of a node that was alone, and holds the metadata of its cluster: start it as a "
                "controller too, and add the others with `pykafka-core quorum add`"
            )
    elif remembered - {key.node_id} and remembered != named:
        listed = ", ".join(map(str, sorted(remembered)))
        raise ClusterError(
            f"the static voters of this directory are {listed}, and they never change: name these, and no others, in "
            "controller.quorum.voters"
        )
    elif led_alone and named - {key.node_id}:
        raise ClusterError(
            "this directory is of a node that was alone, and the others would start a cluster without its metadata: "
            "remove controller.quorum.voters, and add them one by one with `pykafka-core quorum add`"
        )


def _static_voters(start: StartConfig) -> VoterSet:
    listener = start.controller_names[0]
    voters = (
        Voter(
            ReplicaKey(voter.node_id, ZERO_ID),
            (VoterEndpoint(listener, voter.host, voter.port),),
            (0, KRAFT_VERSION),
        )
        for voter in start.voters
    )
    return VoterSet(0, tuple(voters))


def _own_endpoints(
    start: StartConfig, bound: Sequence[tuple[Listener, int]], known: Voter | None
) -> tuple[VoterEndpoint, ...]:
    """Return the addresses of this node: the advertised ones, or the listeners; a listener at all
    addresses uses the host in the voter set.
    """
    told = {listener.name: listener for listener in start.advertised_controllers}
    hosts = {at.listener.upper(): at.host for at in known.endpoints} if known else {}
    endpoints = []
    for listener, port in bound:
        shown = told.get(listener.name, listener)
        host = hosts.get(listener.name) if shown.host in _EVERYWHERE else shown.host
        if host is None:
            raise ClusterError(
                f"listener {listener.name} is at every address, and nothing says at which others reach this node: "
                f"add {listener.name}://HOST:{shown.port or port} to advertised.listeners"
            )
        endpoints.append(VoterEndpoint(listener.name, host, shown.port or port))
    return tuple(endpoints)


def _others(start: StartConfig, own: Voter) -> Iterator[tuple[int, Endpoint]]:
    """Yield the nodes in the settings, except this one."""
    for voter in start.voters:
        if voter.node_id != own.key.node_id:
            yield voter.node_id, Endpoint(voter.host, voter.port)
    for place, server in enumerate(start.bootstrap_servers):
        host, _, port = server.rpartition(":")
        at = Endpoint(host.strip("[]"), int(port))
        if not any(_is_same(at, endpoint) for endpoint in own.endpoints):
            yield FIRST_BOOTSTRAP_ID - place, at


def _is_same(at: Endpoint, endpoint: VoterEndpoint) -> bool:
    here = ("localhost", LOOPBACK, "::1")
    is_same_host = at.host == endpoint.host or (at.host in here and endpoint.host in here)
    return is_same_host and at.port == endpoint.port
