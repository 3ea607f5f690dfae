"""Conversion of rows to blocks and back, without a session."""

import pyarrow as pa
import pytest

from spark_udfs.dedup.blocks import BLOCK_BYTES, Routing, pack, read, rows_of


@pytest.mark.parametrize("buckets", [1, 5, 300])
@pytest.mark.parametrize("own_id", [False, True])
@pytest.mark.parametrize("size", [0, 100, 3 * BLOCK_BYTES])
def test_blocks_hold_every_row_once_in_order_and_are_bounded(
    buckets: int, size: int, own_id: bool
) -> None:
    count = 2_000 if size <= 100 else 20
    numbers = pa.array(range(count), pa.int64())
    values = pa.array([b"v" * size] * count)
    ids = pa.array([None if number % 7 == 0 else str(number % 50) for number in range(count)])
    spread = pa.array([number // 7 % buckets for number in range(count)], pa.int32())
    rows = pa.RecordBatch.from_arrays(
        [numbers, values, ids, spread], ["number", "value", "id", "spread"]
    )
    routing = Routing(width=3 if own_id else 2, ids=(2,), buckets=buckets)
    batches = [rows.slice(0, count // 2), rows.slice(0, 0), rows.slice(count // 2)]
    packed = pa.Table.from_batches(pack(routing, pa.binary())(iter(batches))).to_pylist()

    assert len({block["place"] for block in packed}) == len(packed)
    found: dict[int, list[int]] = {}
    bucket_of: dict[str, int] = {}
    for block in sorted(packed, key=lambda block: int(block["place"])):
        held = read(block["rows"])
        assert len(block["rows"]) <= 2 * BLOCK_BYTES or held.num_rows == 1
        for number, digest in zip(held["number"].to_pylist(), held["fingerprint"], strict=True):
            assert digest.is_valid == (number % 7 != 0)
            if not digest.is_valid:  # never compared: the caller chooses the bucket
                assert block["bucket"] == number // 7 % buckets
            if digest.is_valid:
                assert bucket_of.setdefault(str(number % 50), block["bucket"]) == block["bucket"]
            found.setdefault(block["bucket"], []).append(number)
    assert all(held == sorted(held) for held in found.values())
    assert sorted(number for held in found.values() for number in held) == list(range(count))

    blocks = pa.RecordBatch.from_arrays([pa.array([block["rows"] for block in packed])], ["rows"])
    back = pa.Table.from_batches(rows_of(2)(iter([blocks])))
    assert back.column_names == ["number", "value"]
    assert sorted(back["number"].to_pylist()) == list(range(count))
