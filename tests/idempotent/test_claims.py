"""Claims with ids of every form, with every kind of access to the database, compared with a set."""

from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_core.idempotent.postgres import ids as postgres_ids
from tests.idempotent.databases import Database

GROUPS = count()
KINDS = [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()]
FORMS = ["list", "array", "chunked"]
IDS = st.one_of(
    st.sampled_from(["a", "b", "c", "é"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)


@st.composite
def claims(draw: st.DrawFn) -> tuple[list[bytes], Any]:
    """Return the claimed ids, and the same ids in one of the forms."""
    texts = draw(st.lists(IDS, max_size=12))
    form = draw(st.sampled_from(FORMS))
    ids = [text.encode() for text in texts]
    if form == "list":
        return ids, ids
    kind = draw(st.sampled_from(KINDS))
    column = pa.array([b"before", *ids, b"after"], pa.binary()).cast(kind)[1 : len(ids) + 1]
    if form == "array":
        return ids, column
    cuts = sorted(draw(st.lists(st.integers(0, len(ids)), max_size=3)))
    edges = zip([0, *cuts], [*cuts, len(ids)], strict=True)
    return ids, pa.chunked_array([column[start:stop] for start, stop in edges], kind)


def first_of_unseen(ids: list[bytes], seen: set[bytes]) -> list[bool]:
    mask = []
    for value in ids:
        mask.append(value not in seen)
        seen.add(value)
    return mask


@pytest.mark.parametrize("parameter_bytes_max", [0, 60, 1 << 20])
def test_an_id_is_new_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, parameter_bytes_max: int
) -> None:
    monkeypatch.setattr(postgres_ids, "PARAMETER_BYTES_MAX", parameter_bytes_max)
    with database.ledger() as ledger:

        @settings(max_examples=40, deadline=None)
        @given(st.lists(st.lists(claims(), max_size=3), max_size=4))
        def hold(transactions: list[list[tuple[list[bytes], Any]]]) -> None:
            group, seen = f"g{next(GROUPS)}", set[bytes]()
            for together in transactions:
                with ledger.transaction(group) as transaction:
                    for ids, form in together:
                        mask = transaction.claim(form)
                        found = mask if form is ids else mask.to_pylist()
                        assert found == first_of_unseen(ids, seen)

        hold()
    rows = database.run(
        "SELECT g.ids_count, (SELECT count(*) FROM pykafka_ids i WHERE i.group_key = g.group_key), "
        "(SELECT coalesce(sum(ids_count), 0) FROM pykafka_claims c WHERE c.group_key = g.group_key), "
        "(SELECT count(*) FROM pykafka_claims c JOIN pykafka_ids i ON i.group_key = c.group_key "
        "AND i.seq BETWEEN c.first_seq AND c.last_seq WHERE c.group_key = g.group_key) "
        "FROM pykafka_groups g"
    )
    assert all(len(set(counts)) == 1 for counts in rows)


@pytest.mark.parametrize("parameter_bytes_max", [0, 1 << 30])
def test_claim_of_many_more_ids_than_one_statement_takes(
    database: Database, monkeypatch: pytest.MonkeyPatch, parameter_bytes_max: int
) -> None:
    monkeypatch.setattr(postgres_ids, "PARAMETER_BYTES_MAX", parameter_bytes_max)
    distinct, total = 150_000, 200_000
    ids = [b"%d" % (number * 7 % distinct) for number in range(total)]
    chunked = pa.chunked_array([ids[:1], ids[1:70_000], [], ids[70_000:]], pa.binary())
    first = [True] * distinct + [False] * (total - distinct)
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.claim(chunked).equals(pa.array(first))
        assert transaction.claim(ids[:-1]) == [False] * (total - 1)
    with database.ledger() as ledger, ledger.transaction("h") as transaction:
        assert transaction.claim(ids) == first
    assert sorted(database.run("SELECT ids_count FROM pykafka_claims")) == [(distinct,)] * 2
