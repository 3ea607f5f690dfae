"""The checks of groups find planted anomalies, and none in a correct history."""

import pytest

from tests.clients.groups.checks import anomalies
from tests.faults.history import Owned, Read

READS = [
    Read("a", 0, 0, 0, "0", 1.0),
    Read("a", 0, 0, 1, "1", 2.0),
    Read("b", 0, 0, 1, "1", 6.0),
    Read("b", 0, 0, 2, "2", 7.0),
]
OWNED = [Owned("a", 1, 0, 0.0, 5.0), Owned("b", 2, 0, 5.0, 9.0), Owned("b", 1, 1, 0.0, 5.0)]
WRITTEN = ("0", "1", "2")
REPEATED = ((0, 1),)


def test_valid_history_has_no_anomaly() -> None:
    assert anomalies(READS, OWNED, written=WRITTEN, repeated=REPEATED) == []


@pytest.mark.parametrize(
    ("kind", "reads", "owned", "repeated"),
    [
        ("two owners", READS, [*OWNED, Owned("c", 1, 0, 5.0, 5.0)], REPEATED),
        ("two owners", READS, [*OWNED, Owned("c", -1, 0, 4.0, 5.0)], REPEATED),
        ("duplicate", READS, OWNED, ()),
        ("duplicate", [*READS, Read("c", 0, 0, 1, "1", 8.0)], OWNED, REPEATED),
        ("lost record", READS[:-1], OWNED, REPEATED),
        ("inconsistent offset", [*READS, Read("c", 0, 0, 2, "9", 8.0)], OWNED, ((0, 1), (0, 2))),
        ("non-monotonic poll", READS[::-1], OWNED, REPEATED),
    ],
)
def test_each_anomaly_is_found(
    kind: str, reads: list[Read], owned: list[Owned], repeated: tuple[tuple[int, int], ...]
) -> None:
    found = anomalies(reads, owned, written=WRITTEN, repeated=repeated)
    assert {one.kind for one in found} == {kind}
