"""``features``: supported and finalized levels, and their changes."""

import json
from collections.abc import Callable, Iterator

import pytest

from pykafka_core import Broker
from pykafka_core.cli.cluster import features
from pykafka_core.cli.cluster.features import Way
from pykafka_core.cli.errors import CliError

Capture = pytest.CaptureFixture[str]
TRANSACTIONS, GROUPS = "transaction.version", "group.version"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


@pytest.fixture
def levels(broker: Broker, capsys: Capture) -> Callable[[], dict[str, int]]:
    def look() -> dict[str, int]:
        features.describe(broker.bootstrap_servers, as_json=True)
        found = json.loads(capsys.readouterr().out)["features"]
        return {one["name"]: one["finalized"] for one in found}

    return look


def change(broker: Broker, way: Way, *wanted: str, dry_run: bool = False) -> None:
    features.change(broker.bootstrap_servers, wanted, way, as_json=False, dry_run=dry_run)


def test_levels_are_shown(broker: Broker, capsys: Capture) -> None:
    features.describe(broker.bootstrap_servers, as_json=False)
    shown = capsys.readouterr().out
    for text in ("metadata.version", "7 to 33", TRANSACTIONS, "0 to 2"):
        assert text in shown


def test_levels_go_down_and_up_again(
    broker: Broker, levels: Callable[[], dict[str, int]], capsys: Capture
) -> None:
    before = levels()
    change(broker, Way.DOWNGRADE, f"{TRANSACTIONS}=0", f"{GROUPS}=0")
    assert capsys.readouterr().out.splitlines() == [
        f"changed {TRANSACTIONS}: 2 -> 0",
        f"changed {GROUPS}: 1 -> 0",
    ]
    assert levels() == before | {TRANSACTIONS: 0, GROUPS: 0}
    change(broker, Way.UPGRADE, f"{TRANSACTIONS}=2", f"{GROUPS}=1")
    capsys.readouterr()
    assert levels() == before


def test_dry_run_is_checked_and_changes_nothing(
    broker: Broker, levels: Callable[[], dict[str, int]], capsys: Capture
) -> None:
    before = levels()
    change(broker, Way.DOWNGRADE, f"{TRANSACTIONS}=1", dry_run=True)
    assert capsys.readouterr().out == f"would change {TRANSACTIONS}: 2 -> 1\n"
    with pytest.raises(CliError, match="INVALID_UPDATE_VERSION"):
        change(broker, Way.UPGRADE, f"{TRANSACTIONS}=9", dry_run=True)
    assert levels() == before


@pytest.mark.parametrize(
    ("way", "wanted", "why"),
    [
        (Way.UPGRADE, [f"{TRANSACTIONS}=1"], "Can't downgrade the version"),
        (Way.UPGRADE, ["kraft.version=2"], "only supports versions 0-1"),
        (Way.UPGRADE, ["no.such=1"], "does not support this feature"),
        (Way.UNSAFE_DOWNGRADE, ["metadata.version=7"], "not supported"),
        (Way.UPGRADE, [TRANSACTIONS], "is not the level of a feature"),
        (Way.UPGRADE, [f"{TRANSACTIONS}=-1"], "is not the level of a feature"),
        (Way.UPGRADE, [f"{TRANSACTIONS}=40000"], "is not the level of a feature"),
        (Way.UPGRADE, [f"{TRANSACTIONS}=2", f"{TRANSACTIONS}=1"], "twice"),
    ],
)
def test_invalid_change_is_rejected(
    broker: Broker,
    levels: Callable[[], dict[str, int]],
    way: Way,
    wanted: list[str],
    why: str,
) -> None:
    before = levels()
    with pytest.raises(CliError, match=why):
        change(broker, way, *wanted)
    assert levels() == before
