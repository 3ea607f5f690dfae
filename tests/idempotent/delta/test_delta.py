"""The guarantees of a Delta table as a ledger; test_delta_races.py tests concurrent writers and
crashes.
"""

import json
import os
import pickle
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_core.errors import (
    ClosedError,
    ConfigurationError,
    ForkedError,
    LedgerError,
    LedgerSchemaError,
    LedgerUnavailableError,
    UsageError,
)
from pykafka_core.idempotent import DeltaLedger, PartitionKey
from pykafka_core.idempotent.delta.ledger import RETENTION
from pykafka_core.idempotent.delta.log import (
    looked_up,
    mark_id,
    newest_checkpoint,
    of_group,
)
from pykafka_core.idempotent.delta.rows import storable
from tests.idempotent.delta.delta_tables import contents, rows, written

GROUP = "billing"
KEYS = [PartitionKey(b"\1" * 16, "orders", number) for number in range(3)]
NAMES = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=8)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def ledger(uri: str) -> DeltaLedger:
    return DeltaLedger(uri)


def version(uri: str) -> int:
    return int(deltalake.DeltaTable(uri).version())


def marks(ledger: DeltaLedger, group: str = GROUP) -> dict[PartitionKey, int]:
    with ledger.transaction(group) as transaction:
        return transaction.marks()


def commit(ledger: DeltaLedger, moved: Mapping[PartitionKey, int], *values: int) -> None:
    with ledger.transaction(GROUP) as transaction:
        if values:
            transaction.connection.append(rows(*values))
        transaction.advance(moved)


def test_rows_and_marks_are_one_commit(ledger: DeltaLedger, uri: str) -> None:
    commit(ledger, {KEYS[0]: 2}, 10, 11)
    before = version(uri)
    commit(ledger, {KEYS[0]: 3, KEYS[1]: 1}, 12, 13)
    assert version(uri) == before + 1
    assert written(uri) == [10, 11, 12, 13]
    assert marks(ledger) == marks(DeltaLedger(uri)) == {KEYS[0]: 3, KEYS[1]: 1}


def test_an_error_of_the_effect_commits_nothing(ledger: DeltaLedger, uri: str) -> None:
    commit(ledger, {KEYS[0]: 1}, 10)
    with pytest.raises(ZeroDivisionError):
        with ledger.transaction(GROUP) as transaction:
            transaction.connection.append(rows(11))
            transaction.advance({KEYS[0]: 2})
            raise ZeroDivisionError
    assert written(uri) == [10]
    assert marks(ledger) == {KEYS[0]: 1}


def test_marks_can_advance_without_rows(ledger: DeltaLedger, uri: str) -> None:
    commit(ledger, {KEYS[0]: 1}, 10)
    commit(ledger, {KEYS[0]: 9})
    assert marks(ledger) == {KEYS[0]: 9}
    assert written(uri) == [10]


def test_unchanged_marks_write_nothing(ledger: DeltaLedger, uri: str) -> None:
    commit(ledger, {})
    assert not Path(uri).exists()
    commit(ledger, {KEYS[0]: 1}, 10)
    before = version(uri)
    commit(ledger, {KEYS[0]: 1})
    assert version(uri) == before


def test_marks_without_rows_need_a_table(ledger: DeltaLedger, uri: str) -> None:
    with pytest.raises(LedgerSchemaError, match=r"DeltaTable\.create"):
        commit(ledger, {KEYS[0]: 1})
    deltalake.DeltaTable.create(uri, rows().schema)
    commit(ledger, {KEYS[0]: 1})
    assert marks(ledger) == {KEYS[0]: 1}


def test_groups_and_recreated_topics_have_separate_marks(ledger: DeltaLedger) -> None:
    reborn = KEYS[0]._replace(topic_id=b"\2" * 16)
    commit(ledger, {KEYS[0]: 7, reborn: 1}, 10)
    assert marks(ledger) == {KEYS[0]: 7, reborn: 1}
    assert marks(ledger, "other") == {}


def test_partitions_see_only_their_own_marks(ledger: DeltaLedger) -> None:
    commit(ledger, {KEYS[0]: 7}, 10)
    with ledger.partitions_transaction(GROUP, [KEYS[1], KEYS[0]]) as transaction:
        assert transaction.marks() == {KEYS[0]: 7, KEYS[1]: 0}
        with pytest.raises(UsageError, match="not of orders-2"):
            transaction.advance({KEYS[2]: 1})
        transaction.advance({KEYS[1]: 4})
    assert marks(ledger) == {KEYS[0]: 7, KEYS[1]: 4}


@pytest.mark.parametrize("offset", [6, -1, 2**63, 7.5, True])
def test_mark_can_only_advance(ledger: DeltaLedger, offset: Any) -> None:
    commit(ledger, {KEYS[0]: 7}, 10)
    with ledger.transaction(GROUP) as transaction:
        with pytest.raises(UsageError):
            transaction.advance({KEYS[1]: 1, KEYS[0]: offset})
        assert transaction.marks() == {KEYS[0]: 7}


def test_ids_are_rejected_with_advice(ledger: DeltaLedger) -> None:
    with ledger.transaction(GROUP) as transaction:
        assert transaction.claim([]) == []
        assert transaction.claim(pa.array([], pa.binary())).equals(pa.array([], pa.bool_()))
        for ids in ([b"a"], pa.array([b"a"]), pa.chunked_array([[b"a"]])):
            with pytest.raises(UsageError, match=r"spark_udfs\.dedup_stream"):
                transaction.claim(ids)
        for bad in (b"a", "a", None):
            with pytest.raises(UsageError, match="sequence"):
                transaction.claim(bad)


def test_committed_batch_is_not_processed_again(ledger: DeltaLedger, uri: str) -> None:
    deltalake.DeltaTable.create(uri, rows().schema)
    for batch, expected in [(0, True), (0, False), (1, True), (0, False), (5, True), (4, False)]:
        with ledger.transaction(GROUP) as transaction:
            assert transaction.begin_batch("q", batch) is expected
            if expected:
                transaction.connection.append(rows(batch))
    with ledger.transaction(GROUP) as transaction:
        assert transaction.begin_batch("another", 0)
        assert transaction.batches() == {"q": 5, "another": 0}
        assert transaction.marks() == {}
        for bad in (-1, "0", None, True, 2**63):
            with pytest.raises(UsageError, match="batch_id"):
                transaction.begin_batch("q", bad)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="query_id"):
            transaction.begin_batch("", 0)
    with ledger.partitions_transaction(GROUP, KEYS[:1]) as transaction:
        with pytest.raises(UsageError, match="whole group"):
            transaction.begin_batch("q", 6)
    assert written(uri) == [0, 1, 5]


def test_rows_without_progress_are_rejected(ledger: DeltaLedger, uri: str) -> None:
    """A writer that did not get the result of such a commit would append them again."""
    commit(ledger, {KEYS[0]: 1}, 10)
    for group in (GROUP, "new"):
        with pytest.raises(UsageError, match="no mark moved"):
            with ledger.transaction(group) as transaction:
                transaction.connection.append(rows(11))
    with ledger.transaction(GROUP) as transaction:
        transaction.connection.append(rows())
    assert written(uri) == [10]


@pytest.mark.parametrize(
    "bad",
    [{"y": [1]}, {"x": [1], "y": [1]}, {"x": ["1"]}, {"x": [1.0]}, {"x": [2**63]}],
    ids=str,
)
def test_rows_that_do_not_fit_are_rejected_at_the_append(
    ledger: DeltaLedger, uri: str, bad: dict[str, list[Any]]
) -> None:
    commit(ledger, {KEYS[0]: 1}, 10)
    before = version(uri)
    types = {"x": pa.uint64()} if bad == {"x": [2**63]} else {}
    table = pa.table({name: pa.array(value, types.get(name)) for name, value in bad.items()})
    with ledger.transaction(GROUP) as transaction:
        with pytest.raises(LedgerSchemaError):
            transaction.connection.append(table)
    assert version(uri) == before


def test_columns_are_put_in_order_and_widened(ledger: DeltaLedger, uri: str) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string(), nullable=False)])
    deltalake.DeltaTable.create(uri, schema)
    with ledger.transaction(GROUP) as transaction:
        append = transaction.connection.append
        with pytest.raises(LedgerSchemaError, match="null"):
            append(pa.table({"b": pa.nulls(1, pa.string()), "a": [1]}))
        append(pa.table({"b": ["u"], "a": pa.array([1], pa.int32())}))
        append(pa.table({"b": pa.array(["v"]).dictionary_encode(), "a": pa.nulls(1)}))
        append(pa.table({"b": pa.array(["w"], pa.large_string()), "a": [2]}))
        transaction.advance({KEYS[0]: 3})
    assert sorted(contents(uri).to_pylist(), key=str) == [
        {"a": 1, "b": "u"},
        {"a": 2, "b": "w"},
        {"a": None, "b": "v"},
    ]


ZONED = pa.timestamp("us", "Europe/Berlin")  # as in a Spark session with that time zone


def test_every_spark_type_round_trips(ledger: DeltaLedger, uri: str) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    values = {
        "binary": pa.array([b"x"]),
        "boolean": pa.array([True]),
        "date": pa.array([moment.date()]),
        "decimal": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        "double": pa.array([0.5]),
        "float": pa.array([0.5], pa.float32()),
        "list": pa.array([[1, None]], pa.list_(pa.int32())),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"s": [moment]}], pa.struct({"s": pa.list_(ZONED)})),
        "timestamp": pa.array([moment], ZONED),
        "timestamp_ntz": pa.array([moment.replace(tzinfo=None)], pa.timestamp("us")),
    }
    for at in range(2):  # the first one creates the table
        with ledger.transaction(GROUP) as transaction:
            transaction.connection.append(pa.table(values))
            transaction.advance({KEYS[0]: at + 1})
    found = contents(uri).to_pylist()
    assert found == pa.table(values).to_pylist() * 2


def test_marks_without_rows_can_be_committed_to_a_partitioned_table(
    ledger: DeltaLedger, uri: str
) -> None:
    days = pa.table({"day": ["mon", "tue"], "x": [10, 11]})
    deltalake.DeltaTable.create(uri, days.schema, partition_by=["day"])
    commit(ledger, {KEYS[0]: 1})
    with ledger.transaction(GROUP) as transaction:
        transaction.connection.append(days)
        transaction.advance({KEYS[0]: 2})
    assert marks(ledger) == {KEYS[0]: 2}
    assert deltalake.DeltaTable(uri).metadata().partition_columns == ["day"]
    assert written(uri) == [10, 11]


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        (pa.array([Decimal("1.00"), Decimal("-0.01")], pa.decimal128(10, 2)), "negative decimals"),
        (pa.array([b"a", b"b"]), "which is binary"),
    ],
)
def test_partition_values_that_could_not_be_read_back_are_rejected(
    ledger: DeltaLedger, uri: str, values: pa.Array, refusal: str
) -> None:
    """deltalake wrote them, and the table could no longer be opened."""
    table = pa.table({"part": values, "x": [1, 2]})
    deltalake.DeltaTable.create(uri, table.schema, partition_by=["part"])
    with (
        pytest.raises(LedgerSchemaError, match=refusal),
        ledger.transaction(GROUP) as transaction,
    ):
        transaction.connection.append(table)
        transaction.advance({KEYS[0]: 1})
    assert (marks(ledger), written(uri)) == ({}, [])


def test_rows_that_the_table_rejects_commit_nothing(ledger: DeltaLedger, uri: str) -> None:
    table = deltalake.DeltaTable.create(uri, rows().schema)
    table.alter.add_constraint({"small": "x < 100"})
    with pytest.raises(LedgerError, match="validation"):
        commit(ledger, {KEYS[0]: 1}, 100)
    assert (marks(ledger), written(uri)) == ({}, [])


def test_table_with_a_retention_of_marks_is_rejected(ledger: DeltaLedger, uri: str) -> None:
    commit(ledger, {KEYS[0]: 1}, 10)
    deltalake.DeltaTable(uri).alter.set_table_properties({RETENTION: "interval 1 days"})
    with pytest.raises(LedgerSchemaError, match=RETENTION):
        marks(ledger)


LOG = [f"{number:020}" for number in range(9)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], (-1, [])),
        ([f"{LOG[0]}.json", "_last_checkpoint", f"{LOG[1]}.crc"], (-1, [])),
        ([f"{LOG[3]}.checkpoint.parquet", f"{LOG[8]}.checkpoint.parquet"], (3, [f"{LOG[3]}.checkpoint.parquet"])),
        (
            [f"{LOG[2]}.checkpoint.parquet"]
            + [f"{LOG[4]}.checkpoint.000000000{part}.0000000002.parquet" for part in (1, 2)],
            (4, [f"{LOG[4]}.checkpoint.000000000{part}.0000000002.parquet" for part in (1, 2)]),
        ),
        (
            [f"{LOG[2]}.checkpoint.parquet", f"{LOG[4]}.checkpoint.0000000002.0000000002.parquet"],
            (2, [f"{LOG[2]}.checkpoint.parquet"]),
        ),
        (
            [f"{LOG[5]}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"],
            (5, [f"{LOG[5]}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"]),
        ),
    ],
    ids=["none", "others", "too new", "in parts", "a part missing", "version 2"],
)  # fmt: skip
def test_newest_complete_checkpoint_is_read(
    names: list[str], expected: tuple[int, list[str]]
) -> None:
    assert newest_checkpoint(names, version_max=6) == expected


@pytest.mark.parametrize("form", ["parts", "json"])
def test_checkpoints_of_other_forms_give_the_same_marks(
    ledger: DeltaLedger, uri: str, form: str
) -> None:
    """Spark writes them; this test converts a checkpoint of deltalake to these forms, and deletes
    the commits before it.
    """
    for at in range(1, 4):
        commit(ledger, {KEYS[0]: at, KEYS[1]: 10 * at}, at)
    deltalake.DeltaTable(uri).create_checkpoint()
    log = Path(uri, "_delta_log")
    [written_one] = log.glob("*.checkpoint.parquet")
    actions, name = pq.read_table(written_one), written_one.name.removesuffix(".parquet")
    table = deltalake.DeltaTable(uri)  # it stores the version; the log is read below
    written_one.unlink()
    for path in log.glob("*.json"):
        path.unlink()
    if form == "json":
        lines = [{k: v for k, v in row.items() if v is not None} for row in actions.to_pylist()]
        text = "\n".join(json.dumps(line, default=str) for line in lines)
        (log / f"{name}.80a083e8-7026-4e79-81be-64bd76c43a11.json").write_text(text)
    else:
        for part in (1, 2):
            rows_of_part = actions.slice((part - 1) * 3, 3 if part == 1 else None)
            pq.write_table(rows_of_part, log / f"{name}.000000000{part}.0000000002.parquet")
    assert of_group(table, GROUP) == {mark_id(GROUP, KEYS[0]): 3, mark_id(GROUP, KEYS[1]): 30}


def test_truncated_log_is_an_error_instead_of_a_mark_of_0(ledger: DeltaLedger, uri: str) -> None:
    commit(ledger, {KEYS[0]: 1}, 10)
    commit(ledger, {KEYS[0]: 2}, 11)
    table = deltalake.DeltaTable(uri)
    Path(uri, "_delta_log", f"{LOG[1]}.json").unlink()
    with pytest.raises(LedgerUnavailableError, match=f"no {LOG[1]}"):
        of_group(table, GROUP)


@pytest.mark.parametrize("cleaned", [False, True])
def test_checkpointed_log_still_has_its_marks(ledger: DeltaLedger, uri: str, cleaned: bool) -> None:
    for at in range(1, 4):
        commit(ledger, {KEYS[0]: at, KEYS[1]: 10 * at}, at)
    deltalake.DeltaTable(uri).create_checkpoint()
    if cleaned:
        for path in sorted(Path(uri, "_delta_log").glob("*.json"))[:-1]:
            path.unlink()
    assert marks(ledger) == {KEYS[0]: 3, KEYS[1]: 30}
    commit(ledger, {KEYS[0]: 4}, 4)
    assert marks(ledger) == {KEYS[0]: 4, KEYS[1]: 30}
    with ledger.partitions_transaction(GROUP, KEYS[:2]) as transaction:
        assert transaction.marks() == {KEYS[0]: 4, KEYS[1]: 30}
    assert written(uri) == [1, 2, 3, 4]


def test_pickled_ledger_is_the_same(ledger: DeltaLedger) -> None:
    commit(ledger, {KEYS[0]: 1}, 10)
    copy = pickle.loads(pickle.dumps(ledger))
    assert marks(copy) == {KEYS[0]: 1}
    assert repr(copy) == repr(ledger)


def test_relative_path_is_the_same_table_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = DeltaLedger(Path("table"))
    commit(ledger, {KEYS[0]: 1}, 10)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert marks(pickle.loads(pickle.dumps(ledger))) == {KEYS[0]: 1}


def test_forked_child_must_create_its_own_ledger(ledger: DeltaLedger) -> None:
    commit(ledger, {KEYS[0]: 1}, 10)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ledger.close()
            ledger.transaction(GROUP).__enter__()
        except ForkedError:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"refused"
    os.close(reader)
    os.close(writer)


def test_passwords_are_in_neither_repr_nor_errors() -> None:
    options = {"AWS_SECRET_ACCESS_KEY": "hush", "AWS_ACCESS_KEY_ID": "me", "AWS_REGION": "x"}
    options |= {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true"}
    ledger = DeltaLedger("s3://u:hush@bucket/t?sig=hush", storage_options=options)
    assert "hush" not in repr(ledger)
    with pytest.raises(LedgerError) as raised:
        marks(DeltaLedger("s3://bucket/t", storage_options={**options, "max_retries": "0"}))
    assert isinstance(raised.value, LedgerUnavailableError)
    assert "hush" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "options",
    [{"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, {"conditional_put": "disabled"}, {"a": 1}, "a"],
)
def test_invalid_options_are_rejected(uri: str, options: Any) -> None:
    with pytest.raises(ConfigurationError):
        DeltaLedger(uri, storage_options=options)


@pytest.mark.parametrize(
    "path", ["dbfs:/mnt/t", "s3:/bucket/t", Path("s3://bucket/t"), "file:/tmp/x", "~/t", "~x"]
)
def test_text_like_a_url_or_a_home_is_not_a_folder_name(path: Any) -> None:
    with pytest.raises(ConfigurationError, match="table_uri"):
        DeltaLedger(path)


@pytest.mark.parametrize("path", ["./dbfs:/t", "a:b", "a~b", "/tmp/s3:/t", "s3://bucket/t"])
def test_path_or_url_is_accepted(path: str) -> None:
    assert path.removeprefix("./") in repr(DeltaLedger(path))


@pytest.mark.parametrize("version_before", [0, 1])
@pytest.mark.parametrize("in_place", [True, False])
def test_table_replaced_during_a_transaction_gets_no_rows_and_no_marks(
    ledger: DeltaLedger, uri: str, version_before: int, in_place: bool
) -> None:
    """The new table has all version numbers of the old one and more, so deltalake continued with
    it.
    """
    commit(ledger, {KEYS[0]: 1}, 10)
    if version_before == 0:
        shutil.rmtree(uri)
        deltalake.DeltaTable.create(uri, rows().schema)
    with (
        pytest.raises(LedgerError, match="replaced by another table"),
        ledger.transaction(GROUP) as mine,
    ):
        mine.connection.append(rows(11))
        mine.advance({KEYS[0]: 2})
        shutil.rmtree(uri)
        if in_place:
            for value in range(3):
                deltalake.write_deltalake(uri, rows(value), mode="append")
    if in_place:
        assert (marks(ledger), written(uri)) == ({}, [0, 1, 2])
    else:
        assert marks(ledger) == {}


NO_TEXT = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]
)


@pytest.mark.parametrize(
    "column",
    [
        NO_TEXT,
        pa.DictionaryArray.from_arrays([0], NO_TEXT),
        pa.ListArray.from_arrays([0, 1], NO_TEXT),
        pa.StructArray.from_arrays([NO_TEXT], ["s"]),
        pa.MapArray.from_arrays([0, 1], ["k"], NO_TEXT),
        NO_TEXT.cast(pa.large_string()),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("is_there", [False, True])
def test_text_that_is_not_utf8_is_rejected(
    ledger: DeltaLedger, uri: str, column: Any, is_there: bool
) -> None:
    """A Kafka value that is cast to a string may contain any bytes."""
    table = pa.table({"fine": ["x"], "odd": column})
    if is_there:
        deltalake.DeltaTable.create(uri, storable(table.schema))
    with pytest.raises(LedgerSchemaError, match=r"column odd .*UTF8.* binary column"):
        with ledger.transaction(GROUP) as transaction:
            transaction.connection.append(table)
            transaction.advance({KEYS[0]: 1})
    assert Path(uri).exists() == is_there
    assert marks(ledger) == {}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**63], pa.uint64()),
        pa.array([1], pa.timestamp("ns")),
        pa.array([{}], pa.struct([])),
        pa.array([[{}]], pa.list_(pa.struct([]))),
        pa.array([[1]], pa.list_(pa.int64(), 1)),
        pa.array([[1]], pa.list_view(pa.int64())),
    ],
    ids=lambda column: str(column.type),
)
def test_first_rows_that_cannot_be_stored_create_no_table(
    ledger: DeltaLedger, uri: str, column: Any
) -> None:
    with pytest.raises(LedgerSchemaError), ledger.transaction(GROUP) as transaction:
        transaction.connection.append(pa.table({"x": column}))
        transaction.advance({KEYS[0]: 1})
    assert not Path(uri).exists()


def test_two_columns_of_one_name_are_rejected_by_name(ledger: DeltaLedger, uri: str) -> None:
    twice = pa.table([[1], [2]], ["x", "x"])
    for mark in (1, 2):
        with pytest.raises(LedgerSchemaError, match="two columns of one name, of x, x"):
            with ledger.transaction(GROUP) as transaction:
                transaction.connection.append(twice)
        commit(ledger, {KEYS[0]: mark}, 10)


def test_misuse_is_rejected(ledger: DeltaLedger) -> None:
    with ledger.transaction(GROUP) as transaction:
        connection = transaction.connection
        with pytest.raises(UsageError, match="within"), ledger.transaction(GROUP):
            pass
        with pytest.raises(UsageError, match="close"):
            ledger.close()
        with pytest.raises(UsageError, match=r"pyarrow\.Table"):
            connection.append([1])
    for late in (transaction.marks, lambda: connection.append(rows(1))):
        with pytest.raises(UsageError, match="ended"):
            late()
    with pytest.raises(UsageError, match="group"), ledger.transaction(""):
        pass
    ledger.close()
    ledger.close()
    with pytest.raises(ClosedError), ledger.transaction(GROUP):
        pass


def test_without_deltalake_the_error_names_the_extra(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ImportError, match=r"pykafka_core\[delta\]"):
        DeltaLedger(uri)


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(0, 11)), unique=True, max_size=9))
def test_no_two_marks_share_an_application_id(places: list[tuple[str, str, int]]) -> None:
    ids = {mark_id(group, PartitionKey(b"\0" * 16, topic, at)) for group, topic, at in places}
    assert len(ids) == len(places)


MOVES = st.dictionaries(st.integers(0, 2), st.integers(0, 4), max_size=3)
STEPS = st.tuples(st.sampled_from(["commit", "fail", "checkpoint", "replay", "partitions"]), MOVES)


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(STEPS, max_size=12))
def test_marks_and_rows_follow_a_model(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, dict[int, int]]]
) -> None:
    uri = str(tmp_path_factory.mktemp("model") / "table")
    deltalake.DeltaTable.create(uri, rows().schema)
    ledger = DeltaLedger(uri)
    model: dict[int, int] = {}
    for step, moves in steps:
        if step == "checkpoint":
            deltalake.DeltaTable(uri).create_checkpoint()
            continue
        opened = (
            ledger.partitions_transaction(GROUP, [KEYS[at] for at in moves])
            if step == "partitions"
            else ledger.transaction(GROUP)
        )
        try:
            with opened as transaction:
                known = transaction.marks()
                ends = {at: known.get(KEYS[at], 0) + more for at, more in moves.items()}
                if step == "replay":
                    ends = {at: known.get(KEYS[at], 0) for at in moves}
                for at, end in ends.items():
                    fresh = [1000 * at + n for n in range(known.get(KEYS[at], 0), end)]
                    transaction.connection.append(rows(*fresh))
                transaction.advance({KEYS[at]: end for at, end in ends.items()})
                if step == "fail":
                    raise ZeroDivisionError
        except ZeroDivisionError:
            continue
        model |= ends
    found = marks(ledger)
    table = deltalake.DeltaTable(uri)
    in_log = of_group(table, GROUP)
    assert looked_up(table, in_log) == in_log
    assert {at: found.get(KEYS[at], 0) for at in range(3)} == {
        at: model.get(at, 0) for at in range(3)
    }
    assert written(uri) == sorted(1000 * at + n for at, end in model.items() for n in range(end))
