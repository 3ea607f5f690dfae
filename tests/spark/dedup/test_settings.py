"""Which memories a query may go on with."""

import pytest

from spark_udfs.dedup.settings import agree, written

KEPT = {"ids": ["id", "part"], "types": ["string", "int"], "buckets": 16}


@pytest.mark.parametrize(
    ("before", "now", "agreed"),
    [
        (KEPT, KEPT, True),
        (KEPT, {**KEPT, "types": ["string", "bigint"]}, False),
        (KEPT, {**KEPT, "buckets": 17}, False),
        # Those of old do not tell types; all else counts for them too.
        ({"ids": ["id", "part"], "buckets": 16}, KEPT, True),
        ({"ids": ["id", "part"], "buckets": 16}, {**KEPT, "buckets": 17}, False),
        ({"ids": ["id", "part"], "buckets": 16}, {**KEPT, "ids": ["part", "id"]}, False),
    ],
)
def test_memories_are_gone_on_with_under_equal_settings(
    before: dict[str, object], now: dict[str, object], agreed: bool
) -> None:
    assert agree(written(before), written(now)) is agreed
