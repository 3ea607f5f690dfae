"""Subscriptions by regular expression: finds the topics that the members' expressions match.

Kafka matches them on another thread and uses the result later. Here, the first heartbeat with an
expression matches it, so its topics are known at once. All expressions of a group are matched again
after topics have changed, but at most once per `group.REFRESH_INTERVAL_MS`.
"""

from pykafka_core.coordinator.group.consumer.group import (
    ConsumerGroup,
    RegexesSeen,
    ResolvedRegex,
)
from pykafka_core.coordinator.group.consumer.group_update import Draft
from pykafka_core.coordinator.group.consumer.records import regex_record, regex_tombstone
from pykafka_core.coordinator.group.consumer.topics import TopicsView
from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.errors import InvalidRegularExpressionError

REGEXES_MAX = 10
"""Maximum number of different expressions in a group, so that one turn can match all of them. Kafka
has no limit."""


def check_regex(regex: str | None, member_id: str, group: ConsumerGroup) -> None:
    """Refuse a new expression if the group already has the maximum number.

    Raises:
        InvalidRegularExpressionError: The group would have more than `REGEXES_MAX` expressions.
    """
    if not regex or group.has_regex(regex):
        return
    member = group.members.get(member_id)
    gives_up = member is not None and group.is_only_one_with(member.topic_regex)
    if sum(1 for _ in group.own_regexes()) - gives_up >= REGEXES_MAX:
        raise InvalidRegularExpressionError


def unused_regexes(group: ConsumerGroup) -> list[KeyValue]:
    """Return the records that remove expressions which no member has."""
    return [
        regex_tombstone(group.group_id, regex)
        for regex in group.regexes
        if not group.has_regex(regex)
    ]


def resolve_regexes(draft: Draft, view: TopicsView, now_ms: int) -> bool:
    """Match new expressions, and all of them if a refresh is due; return whether the topics of any
    expression have changed.
    """
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
