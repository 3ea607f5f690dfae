"""Members that subscribe with a regular expression get the matching topics, also after topics were
created or deleted.
"""

from pykafka_core.coordinator.group.consumer.group import REFRESH_INTERVAL_MS
from pykafka_core.coordinator.group.consumer.regexes import REGEXES_MAX
from pykafka_core.errors import InvalidRegularExpressionError
from tests.coordinator.group.consumer.world import FIRST, Client, World, settle, topic_id

TOPICS = {"ta": 1, "tb": 2, "u": 1}
EMPTY: frozenset[str] = frozenset()


def owned(client: Client) -> dict[bytes, int]:
    return {topic: len(numbers) for topic, numbers in client.owned.items()}


def test_member_is_subscribed_to_matching_and_named_topics() -> None:
    a = Client(World(TOPICS), "a", "u", topic_regex="t.*")
    assert owned(a) == {topic_id("ta"): 1, topic_id("tb"): 2, topic_id("u"): 1}


def test_a_new_topic_that_matches_is_found_after_the_interval() -> None:
    world = World(TOPICS)
    a = Client(world, "a", topic_names=EMPTY, topic_regex="t.*")
    world.topics.set("tc", 1)
    a.beat()
    assert len(owned(a)) == 2
    world.pass_ms(REFRESH_INTERVAL_MS)
    settle([a])
    assert len(owned(a)) == 3
    assert a.epoch == FIRST + 1


def test_deleted_topic_is_removed_from_the_assignment() -> None:
    world = World(TOPICS)
    a = Client(world, "a", topic_names=EMPTY, topic_regex="t.*")
    world.topics.set("ta", 0)
    settle([a])
    assert owned(a) == {topic_id("tb"): 2}


def test_new_expression_replaces_the_old_one() -> None:
    world = World(TOPICS)
    a = Client(world, "a", topic_names=EMPTY, topic_regex="t.*")
    a.beat(topic_regex="u.*")
    settle([a])
    assert owned(a) == {topic_id("u"): 1}
    assert set(world.group.regexes) == {"u.*"}
    a.beat(topic_regex="")
    settle([a])
    assert owned(a) == {}
    assert world.group.regexes == {}


def test_expression_is_removed_with_its_last_member() -> None:
    world = World(TOPICS)
    a, b = (Client(world, name, topic_names=EMPTY, topic_regex="t.*") for name in "ab")
    settle([a, b])
    assert sum(owned(a).values()) + sum(owned(b).values()) == 3
    world.leave("a")
    assert set(world.group.regexes) == {"t.*"}
    assert world.group.is_subscribed("ta")
    world.leave("b")
    assert world.group.regexes == {}


def test_expression_of_another_member_is_not_resolved_again() -> None:
    world = World(TOPICS)
    a = Client(world, "a", topic_names=EMPTY, topic_regex="t.*")
    stored = len(world.records)
    b = Client(world, "b", topic_names=EMPTY, topic_regex="t.*")
    kinds = [int.from_bytes(key[:2], "big") for key, _ in world.records[stored:]]
    assert 16 not in kinds
    settle([a, b])
    assert b.owned


def test_number_of_expressions_in_a_group_is_limited() -> None:
    world = World(TOPICS)
    for number in range(REGEXES_MAX):
        Client(world, f"m{number}", topic_names=EMPTY, topic_regex=f"t{number}.*")
    refused = world.join("more", topic_regex="u.*")
    assert refused == InvalidRegularExpressionError.code
    assert world.join("more", topic_regex="t0.*").error_code == 0


def test_sole_owner_of_an_expression_may_replace_it_in_a_full_group() -> None:
    world = World(TOPICS)
    for number in range(REGEXES_MAX):
        Client(world, f"m{number}", topic_names=EMPTY, topic_regex=f"t{number}.*")
    Client(world, "shares", topic_names=EMPTY, topic_regex="t1.*")
    assert world.join("m0", topic_regex="u.*").error_code == 0
    assert world.join("m1", topic_regex="v.*") == InvalidRegularExpressionError.code
    assert len(world.group.regexes) == REGEXES_MAX
