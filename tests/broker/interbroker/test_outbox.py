"""The queued items of each node, and the choice of items for the next request."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.broker.runtime.interbroker.outbox import Outbox

SIZE_MAX = 5


class Item(NamedTuple):
    key: str
    size: int
    number: int
    is_wanted: bool = True


def outbox_of(*items: Item) -> Outbox[Item]:
    outbox = Outbox[Item](
        key=lambda item: item.key,
        size=lambda item: item.size,
        size_max=SIZE_MAX,
        is_wanted=lambda item: item.is_wanted,
    )
    for item in items:
        outbox.put(2, item)
    return outbox


def test_items_queued_during_a_request_are_sent_with_the_next() -> None:
    first, second, third = (Item(key, 1, 0) for key in "abc")
    outbox = outbox_of(first)
    assert outbox.take(2) == [first]
    outbox.put(2, second)
    outbox.put(2, third)
    assert outbox.take(2) == [] == outbox.ready()
    outbox.put(3, second)
    assert outbox.ready() == [3]
    outbox.over(2)
    assert outbox.take(2) == [second, third]


def test_request_is_bounded_and_a_larger_item_is_sent_alone() -> None:
    large, small, other = Item("a", 9, 0), Item("b", 3, 0), Item("c", 3, 0)
    outbox = outbox_of(large, small, other)
    for expected in ([large], [small], [other]):
        assert outbox.take(2) == expected
        outbox.over(2)


def test_items_of_one_key_are_sent_in_order_one_in_each_request() -> None:
    items = [Item("a", 1, 0), Item("a", 1, 1), Item("b", 1, 2), Item("a", 1, 3)]
    outbox = outbox_of(*items)
    for expected in ([items[0], items[2]], [items[1]], [items[3]]):
        assert outbox.take(2) == expected
        outbox.over(2)
    assert outbox.take(2) == []


def test_unwanted_items_send_no_request() -> None:
    outbox = outbox_of(Item("a", 1, 0, is_wanted=False))
    assert outbox.take(2) == []
    wanted = Item("b", 1, 0)
    outbox.put(2, wanted)
    assert outbox.take(2) == [wanted]


ITEMS = st.builds(Item, st.sampled_from("abc"), st.integers(1, 7), st.integers(), st.just(True))


@given(st.lists(ITEMS, max_size=30))
def test_each_item_is_sent_once_in_bounded_requests(items: list[Item]) -> None:
    outbox = outbox_of(*items)
    left: list[Item] = []
    while len(outbox):
        taken = outbox.take(2)
        assert len({item.key for item in taken}) == len(taken) > 0
        assert sum(item.size for item in taken) <= SIZE_MAX or len(taken) == 1
        left += taken
        outbox.over(2)
    for key in "abc":
        assert [one for one in left if one.key == key] == [one for one in items if one.key == key]
