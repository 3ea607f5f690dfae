"""The subscriptions of members are read on request, in little time, and are not kept.

1 MiB of metadata became 16 MiB of names that were kept; for 5,000 members with 100 topics one turn
took 219 ms; and subscriptions were kept after the members had left.
"""

from struct import pack
from sys import getrefcount

import pytest

from pykafka_core.coordinator.group.classic.subscription import NAMES_MAX, topics_of
from tests.coordinator.classic.world import SESSION_MS, World, join, leave
from tests.support.calls import counting_calls

COUNT = 500


def metadata_of(*names: str) -> bytes:
    rows = b"".join(pack(">h", len(name)) + name.encode() for name in names)
    return pack(">hi", 1, len(names)) + rows + b"\0\0\0\0"


def holders(metadata: bytes) -> int:
    return getrefcount(metadata)


@pytest.mark.parametrize("goes", ["it leaves", "it says something else"])
def test_metadata_that_no_member_has_any_longer_is_released(goes: str) -> None:
    world = World()
    metadata = metadata_of("t")
    before = holders(metadata)
    first, second = world.stable("A", "B")
    world.submit(join(second, protocols=(("range", metadata),)))
    world.submit(join(first))
    assert world.group.state.value == "CompletingRebalance"
    world.submit(leave(second) if goes == "it leaves" else join(second))
    world.responses.clear()
    assert world.group.state.value == "PreparingRebalance"
    assert holders(metadata) == before


def test_names_that_all_members_share_are_parsed_once() -> None:
    names = [f"topic-{number}" for number in range(100)]
    members = [metadata_of(*names) + bytes([number % 256]) for number in range(COUNT)]
    with counting_calls() as calls:
        topics = topics_of(members)
    assert topics == frozenset(names)
    assert calls.count < 4 * COUNT + 10 * len(names)


def test_different_names_are_all_found() -> None:
    members = [metadata_of(f"t{number}", "t") for number in range(20)] * 2
    assert topics_of(members) == frozenset(["t", *(f"t{number}" for number in range(20))])


def test_prefix_of_another_list_is_not_mistaken_for_it() -> None:
    assert topics_of([metadata_of("a", "b"), metadata_of("a"), metadata_of()]) == frozenset("ab")
    assert topics_of([metadata_of(), metadata_of("a")]) == frozenset("a")


def test_negative_version_is_not_a_subscription() -> None:
    assert topics_of([metadata_of("a"), b"\xff\xff" + metadata_of("a")[2:]]) is None


def test_more_names_than_the_limit_count_as_every_topic() -> None:
    names = [str(number) for number in range(NAMES_MAX + 1)]
    assert topics_of([metadata_of(*names[:-1])]) == frozenset(names[:-1])
    assert topics_of([metadata_of(*names)]) is None
    assert topics_of([metadata_of(*names[:-1]), metadata_of(names[-1])]) is None


def test_subscription_follows_the_current_members() -> None:
    world = World()
    first, _ = world.stable("A", "B", protocols=(("range", metadata_of("t")),))
    assert world.group.subscribed_among(["t", "u"]) == {"t"}
    world.submit(join(first, protocols=(("range", metadata_of("u")),)))
    assert world.group.subscribed_among(["t", "u"]) == {"t", "u"}
    world.pass_ms(SESSION_MS)
    assert world.group.subscribed_among(["t", "u"]) == {"u"}
