"""Summaries of groups in pages, for periodic monitoring."""

from collections.abc import Sequence
from itertools import chain, islice
from typing import NamedTuple

from pykafka_core.coordinator.group.explain import OFFSETS_MAX
from pykafka_core.coordinator.group.offsets.deleted_topics import current_offsets
from pykafka_core.coordinator.group.state import GroupState


class GroupSummary(NamedTuple):
    """A group. ``offsets`` are (topic, partition, committed offset), at most `OFFSETS_MAX`."""

    group_id: str
    state: str
    members_count: int
    offsets: Sequence[tuple[str, int, int]]
    offsets_omitted: int


class Page(NamedTuple):
    """Some groups of a shard. ``next_start`` is the position of the next page; None at the end."""

    groups: Sequence[GroupSummary]
    next_start: int | None


def summarize(state: GroupState, start: int, weight_max: int) -> Page:
    """Return at least one group from position ``start``, until groups plus offsets reach
    ``weight_max``.

    A group that is created or deleted between two pages may appear in both pages or in neither.
    """
    found: list[GroupSummary] = []
    weight = 0
    for group_id in islice(chain(state.groups, state.consumer_groups), start, None):
        if weight >= weight_max:
            return Page(found, start + len(found))
        found.append(_summary(state, group_id))
        weight += 1 + len(found[-1].offsets)
    return Page(found, None)


def _summary(state: GroupState, group_id: str) -> GroupSummary:
    group = state.any_group(group_id)
    assert group is not None, "its id is one of theirs"
    topics = list(current_offsets(state, state.offsets.topics(group_id)))
    offsets = (
        (topic, partition, one.offset)
        for topic, partitions in topics
        for partition, one in partitions.items()
    )
    return GroupSummary(
        group_id,
        str(group.state.value),
        len(group.members),
        tuple(islice(offsets, OFFSETS_MAX)),
        offsets_omitted=max(0, sum(len(found) for _, found in topics) - OFFSETS_MAX),
    )
