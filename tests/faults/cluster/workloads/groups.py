"""Groups of both protocols, with members by raw requests that follow their coordinator.

The members behave as in `tests/faults/groups/lives.py`. The rules are one owner per partition in a
generation of a classic group, and the committed offsets at the end. Earlier responses are not
checked: a coordinator that is isolated and not yet aware of its replacement still responds to
OffsetFetch, and to KIP-848 heartbeats, as in Apache Kafka.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from pykafka_core.protocol import messages as m
from tests.faults.cluster.clusters import Cluster
from tests.faults.cluster.workloads.workload import Workload
from tests.faults.groups.lives import ClassicLife, ConsumerLife, GoneError, Kind, Life, Line, Noted
from tests.faults.history import Anomaly, History, lost_commits
from tests.faults.raw import NONE, Keys
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection

RESPONSE_S = 5.0
"""Timeout of a member for a response: longer than a rebalance."""
MEMBERS, CUTS = 3, 0.02
ELSEWHERE = frozenset((7, 15, 16, 19, 20))
"""Errors after which the outcome is unknown; the coordinator may be on another node by now."""
GROUPS: dict[str, Kind] = {"classic": ClassicLife, "modern": ConsumerLife}


class CoordinatorLine(Line):
    """A connection to the coordinator of a group on any node, found through any node."""

    def __init__(self, group: str, addresses: str, choice: Random, cuts: float) -> None:
        super().__init__(addresses, choice, cuts)
        self._group, self._addresses, self._nodes = group, addresses.split(","), choice

    def open(self) -> Connection:
        request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[self._group])
        with Connection(self._nodes.choice(self._addresses), RESPONSE_S) as connection:
            (found,) = connection.ask(Keys.FIND_COORDINATOR, 4, request).coordinators
        if found.error_code != NONE:
            raise GoneError
        return Connection(f"{found.host}:{found.port}", RESPONSE_S)

    def ask(self, api_key: int, version: int, request: Any) -> Any:
        response = super().ask(api_key, version, request)
        if _code(response) in ELSEWHERE:
            raise GoneError
        return response


def _code(response: Any) -> int:
    """Return the error code of a response, of its group, or of its one partition."""
    if isinstance(response, m.OffsetCommitResponse):
        return int(response.topics[0].partitions[0].error_code)
    if isinstance(response, m.OffsetFetchResponse):
        return int(response.groups[0].error_code)
    return int(response.error_code)


class Groups(Workload):
    """A group of each protocol, with `MEMBERS` members each; the topic has no records."""

    topic = "orders"
    partitions = 6

    def __init__(self, cluster: Cluster, seed: int) -> None:
        super().__init__(cluster, seed)
        self.noted = {name: Noted(name) for name in GROUPS}
        self._lives = {
            name: [self._life(name, place) for place in range(MEMBERS)] for name in GROUPS
        }

    def _life(self, name: str, place: int) -> Life:
        line = partial(CoordinatorLine, name)
        seed = self._seed * MEMBERS + place
        return GROUPS[name](self.cluster.bootstrap, self.noted[name], seed, CUTS, line)

    @property
    def progress(self) -> int:
        return sum(one.acknowledged for noted in self.noted.values() for one in noted.commits)

    @property
    def seen_count(self) -> int:
        return self.progress

    def clients(self) -> Sequence[Callable[[Random], None]]:
        return [partial(self._live, life) for lives in self._lives.values() for life in lives]

    def _live(self, life: Life, _: Random) -> None:
        life.run(self.stopping)

    def clients_history(self) -> History:
        return History(owned=self.noted["classic"].owned)

    def further(self, _: Any) -> list[Anomaly]:
        """Check that each group has its last commits."""
        found = []
        for name, noted in self.noted.items():
            noted.fetches.clear()
            self._fetch_from(self._lives[name][0])
            history = History(commits=noted.commits, fetches=noted.fetches)
            found += [one._replace(detail=f"{name}: {one.detail}") for one in lost_commits(history)]
            if not noted.fetches:
                found.append(Anomaly("no progress", f"{name} has no coordinator"))
        return found

    def _fetch_from(self, life: Life) -> None:
        deadline = time.monotonic() + PATIENCE_S
        is_told = False
        while not is_told and time.monotonic() < deadline:
            try:
                life.fetch()
                is_told = True
            except GoneError:
                time.sleep(0.05)
            finally:
                life.cut()
