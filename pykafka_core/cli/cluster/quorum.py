"""``quorum``: show the metadata quorum, and change its voters.

It shows the voters and the observers, and the position of each. The command does what
``kafka-metadata-quorum`` does. It also works with brokers of Apache Kafka.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from pykafka_core.broker.storage.identity import NODE_ID_MAX
from pykafka_core.cli.client import wire
from pykafka_core.cli.client.describe_quorum import (
    SILENT_MS_MAX,
    Described,
    Partition,
    describe_quorum,
)
from pykafka_core.cli.cluster import features
from pykafka_core.cli.errors import FAILED, USAGE, CliError
from pykafka_core.cli.output import Moment, print_json, print_table
from pykafka_core.errors import error_of
from pykafka_core.metadata.image.features import KRAFT_VERSION
from pykafka_core.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from pykafka_core.types import ZERO_ID, id_bytes, id_text

ADD_VOTER, ADD_VOTER_VERSION = 80, 1
REMOVE_VOTER, REMOVE_VOTER_VERSION = 81, 0
TIMEOUT_MS = 30_000
PORT_MAX = 2**16 - 1

_CANNOT = "cannot read the metadata quorum"
_NEW = re.compile(r"(\d{1,10})@(.+?):(\d{1,5})(?::([A-Za-z0-9_-]{22}))?\Z")
_OLD = re.compile(r"(\d{1,10})(?::([A-Za-z0-9_-]{22}))?\Z")
_DIRECTORY_ADVICE = "append its directory id, :DIRECTORY_ID, from its meta.properties"


@dataclass(frozen=True, kw_only=True, slots=True)
class Replica:
    """One replica of the metadata log.

    Attributes:
        status: Leader, Follower or Observer.
        log_end_offset: The end of its synced records (exclusive); -1 before its first Fetch.
        lag: The number of records that it lacks; None if unknown.
        last_fetch_ms, last_caught_up_ms: Unix times, by the leader's clock; -1 if there is none.
        listeners: Its addresses as a voter.
    """

    node: int
    directory: str
    status: str
    log_end_offset: int
    lag: int | None
    last_fetch_ms: int
    last_caught_up_ms: int
    listeners: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Quorum:
    """The state of the metadata quorum in its leader."""

    leader: int
    epoch: int
    high_watermark: int
    max_follower_lag: int | None
    replicas: Sequence[Replica]

    @property
    def voters(self) -> list[Replica]:
        """The replicas without the observers."""
        return [one for one in self.replicas if one.status != "Observer"]


class _Change(NamedTuple):
    """The text of a change, and the voters' ids before and after it."""

    text: str
    before: list[int]
    after: list[int]


def describe(bootstrap: str | None, *, as_json: bool) -> None:
    """Show the quorum.

    Raises:
        CliError: No broker answers, or no controller leads.
    """
    with wire.cluster(bootstrap, _CANNOT) as cluster:
        found = look(cluster.any())
    if as_json:
        print_json(asdict(found))
        return
    lag = "unknown" if found.max_follower_lag is None else f"{found.max_follower_lag:,}"
    text = (
        f"node {found.leader} leads in epoch {found.epoch}, committed up to {found.high_watermark:,}, "
        f"longest lag of a voter {lag}"
    )
    print_table([_row(one) for one in found.replicas], title=text, empty="no replicas")


def _row(one: Replica) -> Mapping[str, object]:
    return {
        "node": one.node,
        "directory": one.directory,
        "status": one.status,
        "log end": one.log_end_offset,
        "lag": "" if one.lag is None else one.lag,
        "last fetch": Moment(one.last_fetch_ms),
        "caught up": Moment(one.last_caught_up_ms),
        "listeners": ", ".join(one.listeners),
    }


def add(bootstrap: str | None, voter: str, *, listener: str, as_json: bool, dry_run: bool) -> None:
    """Turn an observer into a voter.

    Args:
        voter: ``ID@HOST:PORT``, with ``:DIRECTORY_ID`` unless the node is an observer.
        listener: The name of the listener at HOST:PORT.

    Raises:
        CliError: The arguments are invalid, or the leader refuses the change.
    """
    wanted = _NEW.match(voter.strip())
    if wanted is None:
        advice = "write it as ID@HOST:PORT or ID@HOST:PORT:DIRECTORY_ID"
        raise CliError(f"{voter!r} is not a controller", advice, exit_code=USAGE)
    node_id, host, port = _node_id(wanted[1]), wanted[2].strip("[]"), int(wanted[3])
    if not 1 <= port <= PORT_MAX:
        raise CliError(
            f"port {port} is out of range", f"ports are 1 to {PORT_MAX}", exit_code=USAGE
        )
    with wire.cluster(bootstrap, _CANNOT) as cluster:
        broker = cluster.any()
        found = look(broker)
        if dry_run:
            _check_voters_change(broker)
        observers = [one for one in found.replicas if one.status == "Observer"]
        directory = _directory(node_id, wanted[4], observers, "observers")
        ids = sorted(one.node for one in found.voters)
        text = f"add voter {node_id} at {listener}://{host}:{port}, directory {directory}"
        change = _Change(text, ids, sorted({*ids, node_id}))
        if dry_run:
            _check_addition(found, node_id, directory)
        else:
            request = AddRaftVoterRequest(
                cluster_id=None,
                timeout_ms=TIMEOUT_MS,
                voter_id=node_id,
                voter_directory_id=id_bytes(directory),
                listeners=[AddRaftVoterRequest.Listener(name=listener, host=host, port=port)],
            )
            reply = broker.ask_newest(ADD_VOTER, ADD_VOTER_VERSION, request, AddRaftVoterResponse)
            _check(reply.error_code, reply.error_message, text)
    _report(change, as_json=as_json, dry_run=dry_run)


def remove(bootstrap: str | None, voter: str, *, as_json: bool, dry_run: bool) -> None:
    """Remove a voter from the quorum.

    Args:
        voter: ``ID``, or ``ID:DIRECTORY_ID``.

    Raises:
        CliError: The arguments are invalid, or the leader refuses the change.
    """
    wanted = _OLD.match(voter.strip())
    if wanted is None:
        raise CliError(f"{voter!r} is not a voter", "write ID or ID:DIRECTORY_ID", exit_code=USAGE)
    node_id = _node_id(wanted[1])
    with wire.cluster(bootstrap, _CANNOT) as cluster:
        broker = cluster.any()
        found = look(broker)
        if dry_run:
            _check_voters_change(broker)
        directory = _directory(node_id, wanted[2], found.voters, "voters")
        ids = sorted(one.node for one in found.voters)
        text = f"remove voter {node_id}, directory {directory}"
        change = _Change(text, ids, [one for one in ids if one != node_id])
        if dry_run:
            _check_removal(found, node_id, directory)
        else:
            request = RemoveRaftVoterRequest(
                cluster_id=None, voter_id=node_id, voter_directory_id=id_bytes(directory)
            )
            reply = broker.ask_newest(
                REMOVE_VOTER, REMOVE_VOTER_VERSION, request, RemoveRaftVoterResponse
            )
            _check(reply.error_code, reply.error_message, text)
    _report(change, as_json=as_json, dry_run=dry_run)


def _directory(node_id: int, given: str | None, replicas: Sequence[Replica], where: str) -> str:
    if given is not None:
        try:
            id_bytes(given)
        except ValueError as error:
            raise CliError(f"{given!r}: {error}", _DIRECTORY_ADVICE, exit_code=USAGE) from error
        return given
    known = [one.directory for one in replicas if one.node == node_id]
    if len(known) != 1 or known[0] == id_text(ZERO_ID):
        ids = ", ".join(str(one.node) for one in replicas) or "none"
        text = f"the directory of node {node_id} is not known; the {where} are {ids}"
        raise CliError(text, _DIRECTORY_ADVICE, exit_code=FAILED)
    return known[0]


def _node_id(text: str) -> int:
    if int(text) > NODE_ID_MAX:
        raise CliError(
            f"{text} is not a node id", f"node ids are 0 to {NODE_ID_MAX}", exit_code=USAGE
        )
    return int(text)


def _check_voters_change(broker: wire.Connection) -> None:
    """Check that the voters can change.

    Raises:
        CliError: The voters are static.
    """
    _, levels = features.look(broker)
    if not any(one.name == KRAFT_VERSION and one.finalized for one in levels):
        raise _refused(
            "the voters are static (controller.quorum.voters), or the broker is alone and has no listener of "
            "controllers (controller.listener.names)"
        )


def _check_addition(found: Quorum, node_id: int, directory: str) -> None:
    """Check what a leader checks, as far as a client can.

    Raises:
        CliError: The leader would refuse the addition; the text states the reason.
    """
    if any(one.node == node_id for one in found.voters):
        ids = _listed([one.node for one in found.voters])
        raise _refused(f"node {node_id} is among the voters {ids} already")
    known = [one for one in found.replicas if (one.node, one.directory) == (node_id, directory)]
    if not known:
        raise _refused(f"node {node_id} with directory {directory} does not follow the quorum")
    if known[0].lag != 0:
        lag = "an unknown number of" if known[0].lag is None else f"{known[0].lag:,}"
        raise _refused(f"node {node_id} lacks {lag} records; try again when it has caught up")
    _check_majority(found.voters, [*found.voters, *known])


def _check_removal(found: Quorum, node_id: int, directory: str) -> None:
    """Check what a leader checks, as `_check_addition` does.

    Raises:
        CliError: The leader would refuse the removal; the text states the reason.
    """
    left = [one for one in found.voters if (one.node, one.directory) != (node_id, directory)]
    if len(left) == len(found.voters):
        ids = _listed([one.node for one in found.voters])
        raise _refused(f"node {node_id} with directory {directory} is not among the voters {ids}")
    if not left:
        raise _refused("the last voter cannot be removed")
    _check_majority(found.voters, left)


def _check_majority(before: Sequence[Replica], after: Sequence[Replica]) -> None:
    """Check that a majority of the voters fetches, before and after the change.

    Raises:
        CliError: Too few of them fetch.
    """
    now_ms = max(one.last_fetch_ms for one in before)
    there = [
        one.node
        for one in after
        if one.status == "Leader" or now_ms - one.last_fetch_ms <= SILENT_MS_MAX
    ]
    if 2 * len(there) <= len(after):
        raise _refused(
            f"of the voters {_listed([one.node for one in after])} only {_listed(there)} would be running, which is "
            "not a majority: the quorum could not commit any more"
        )


def _refused(text: str) -> CliError:
    return CliError(f"this would be rejected, or do harm: {text}", exit_code=FAILED)


def _check(code: int, message: str | None, text: str) -> None:
    if code:
        error = error_of(code)
        raise CliError(f"cannot {text}: {error.name}: {message or error.text}", exit_code=FAILED)


def _report(change: _Change, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        told = {
            "change": change.text,
            "before": change.before,
            "after": change.after,
            "dry_run": dry_run,
        }
        print_json(told)
        return
    done = "would" if dry_run else "did"
    print(f"{done} {change.text}; voters {_listed(change.before)} -> {_listed(change.after)}")


def _listed(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "none"


def look(broker: wire.Connection) -> Quorum:
    """Return the quorum, as a broker reports it.

    Raises:
        CliError: No controller answers.
    """
    described = describe_quorum(broker)
    if described.partition is None:
        name = error_of(described.error_code).name
        raise CliError(f"no controller answers: {name}", exit_code=FAILED)
    return _quorum(described, described.partition)


def _quorum(described: Described, found: Partition) -> Quorum:
    listeners = {
        node.node_id: [f"{at.name}://{at.host}:{at.port}" for at in node.listeners]
        for node in described.nodes
    }
    states = [(one, "Follower") for one in found.current_voters]
    states += [(one, "Observer") for one in found.observers]
    ends = [one.log_end_offset for one, _ in states if one.replica_id == found.leader_id]
    end = max(ends, default=found.high_watermark)
    replicas = [
        Replica(
            node=one.replica_id,
            directory=id_text(one.replica_directory_id),
            status="Leader" if one.replica_id == found.leader_id else status,
            log_end_offset=one.log_end_offset,
            lag=max(0, end - one.log_end_offset) if one.log_end_offset >= 0 else None,
            last_fetch_ms=one.last_fetch_timestamp,
            last_caught_up_ms=one.last_caught_up_timestamp,
            listeners=listeners.get(one.replica_id, []) if status == "Follower" else [],
        )
        for one, status in states
    ]
    lags = [one.lag for one in replicas if one.status == "Follower"]
    known = [lag for lag in lags if lag is not None]
    return Quorum(
        leader=found.leader_id,
        epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        max_follower_lag=max(known, default=0) if len(known) == len(lags) else None,
        replicas=sorted(replicas, key=lambda one: (one.status == "Observer", one.node)),
    )
