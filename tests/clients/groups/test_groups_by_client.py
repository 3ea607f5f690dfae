"""Every client in a consumer group of our broker: the rows and columns of docs/guides/clients.md.

`make test-all` runs the clients of Python and Java; `make clients` runs all of them and writes the
table.
"""

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.clients.groups.clients import ABILITIES, CLIENTS, STRATEGIES, Client
from tests.clients.groups.scenarios import FOR_ALL, IF_OFFERED, SHORT_SESSION_MS, Group, rebalance
from tests.clients.groups.table import table, written
from tests.support.brokers import Serve

CONFIG = {
    # The broker sets the session timeout of the consumer protocol.
    "group.consumer.min.session.timeout.ms": SHORT_SESSION_MS,
    "group.consumer.session.timeout.ms": SHORT_SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 500,
}
NUMBERS = itertools.count()
RUNS = [one for one in CLIENTS if not one.is_foreign or os.environ.get("PYKAFKA_CLIENTS") == "all"]


@pytest.fixture(scope="module")
def bootstrap(serve: Serve) -> Iterator[str]:
    with serve(config=CONFIG) as broker:
        yield broker.bootstrap_servers


def cases() -> Iterator[object]:
    for client in RUNS:
        marks = [pytest.mark.jvm] if client.needs_jvm else []
        for name, scenario in (FOR_ALL | IF_OFFERED).items():
            if name in FOR_ALL or name in client.offers:
                case = f"{client.name}-{name}"
                yield pytest.param(client, None, scenario, id=case, marks=marks)
        for strategy in client.strategies:
            case = f"{client.name}-{strategy}"
            yield pytest.param(client, strategy, rebalance, id=case, marks=marks)


@pytest.mark.interval
@pytest.mark.parametrize(("client", "strategy", "scenario"), list(cases()))
def test_members_of_one_client_share_commit_and_continue(
    bootstrap: str, client: Client, strategy: str | None, scenario: object
) -> None:
    assert callable(scenario)
    group = Group(client, bootstrap, f"group-{next(NUMBERS)}", strategy)
    try:
        scenario(group)
    except BaseException:
        for member in group.members:
            member.kill()
        raise
    group.close()
    assert group.check() == []


def test_every_ability_of_a_client_has_a_scenario() -> None:
    assert set(ABILITIES) == set(IF_OFFERED)
    for client in CLIENTS:
        assert client.offers <= set(ABILITIES)
        assert set(client.strategies) <= set(STRATEGIES)


def test_the_page_has_every_client_and_scenario() -> None:
    assert written() == table()
