"""Subscriptions by regular expression: what the members' expressions match among the topics.

Kafka lets another thread match them and takes the result later. Here they are matched with the heartbeat that needs it,
so an expression has its topics at once; what is known of all of a group is looked at again when topics have changed,
but not more often than `group.REFRESH_INTERVAL_MS`.
"""

from pykafka_core.coordinator.group.consumer.draft import Draft
from pykafka_core.coordinator.group.consumer.group import (
    ConsumerGroup,
    RegexesSeen,
    ResolvedRegex,
)
from pykafka_core.coordinator.group.consumer.records import regex_record, regex_tombstone
from pykafka_core.coordinator.group.consumer.topics import TopicsView
from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.errors import InvalidRegularExpressionError

REGEXES_MAX = 10
"""Different ones in a group, so that a turn can match them all. Kafka has no limit."""


def check_regex(regex: str | None, member_id: str, group: ConsumerGroup) -> None:
    """Refuse one expression too many.

    Raises:
        InvalidRegularExpressionError: The group's other members have `REGEXES_MAX` others.
    """
    if not regex or group.has_regex(regex):
        return
    member = group.members.get(member_id)
    gives_up = member is not None and group.is_only_one_with(member.topic_regex)
    if sum(1 for _ in group.own_regexes()) - gives_up >= REGEXES_MAX:
        raise InvalidRegularExpressionError


def unused_regexes(group: ConsumerGroup) -> list[KeyValue]:
    """Records that remove what no member has any more."""
    return [
        regex_tombstone(group.group_id, regex)
        for regex in group.regexes
        if not group.has_regex(regex)
    ]


def resolve_regexes(draft: Draft, view: TopicsView, now_ms: int) -> bool:
    """Match what was not matched before, and all if topics have changed; whether any matches other topics now."""
    before = draft.group
    if not before.regexes and not any(before.own_regexes()):
        return False
    draft.add(unused_regexes(before))
    is_due = before.regexes_seen.is_due(view.version, now_ms)
    found = [
        (regex, ResolvedRegex(view.matching(regex), view.offset, now_ms))
        for regex in sorted(before.own_regexes())
        if is_due or regex not in before.regexes
    ]
    changed = [(regex, one) for regex, one in found if _is_news(before, regex, one)]
    draft.add([regex_record(before.group_id, *one) for one in changed])
    if is_due:
        draft.group.regexes_seen = RegexesSeen(view.version, now_ms)
    return bool(changed)


def _is_news(group: ConsumerGroup, regex: str, resolved: ResolvedRegex) -> bool:
    known = group.regexes.get(regex)
    return known is None or known.topics != resolved.topics
