"""``groups reset-offsets``: plans partitions and offsets, shows the plan, asks, and commits it."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pykafka_core.cli.arguments import INT64_MAX, time_ms
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.output import agree, print_json, print_table

from .clients import admin
from .groups_admin import (
    Group,
    Partition,
    check_has_no_members,
    commit,
    committed,
    described,
    exists,
    offsets,
)

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata

_NAMED_MAX = 5
_TARGETS = (
    "to_earliest",
    "to_latest",
    "to_offset",
    "to_datetime",
    "shift_by",
    "from_file",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ResetOptions:
    """The options of ``groups reset-offsets``; ``topics`` are TOPIC or TOPIC:P,P."""

    group: str
    bootstrap: str | None
    topics: Sequence[str]
    all_topics: bool
    to_earliest: bool
    to_latest: bool
    to_offset: int | None
    to_datetime: str | None
    shift_by: int | None
    from_file: Path | None
    dry_run: bool
    yes: bool
    as_json: bool


class Reset(NamedTuple):
    """The change of one partition.

    Attributes:
        log_start_offset: The lowest offset that can be committed.
        high_watermark: The highest offset that can be committed.
    """

    partition: Partition
    current_offset: int | None
    new_offset: int
    log_start_offset: int
    high_watermark: int


def reset_offsets(options: ResetOptions) -> None:
    """Show the plan, ask, and commit it.

    Raises:
        CliError: The options are invalid, the group has members, or the user declined.
    """
    _check(options)
    asked = {} if options.from_file is None else _read(options.from_file)
    what = f"cannot reset offsets of {options.group}"
    with admin(options.bootstrap, [options.group, *options.topics], what) as (client, cluster):
        group = described(client, cluster, options.group)
        check_has_no_members(group)
        plan = _plan(client, cluster, group, options, asked)
        _show(plan, options)
        if options.dry_run:
            return
        if not options.yes:
            agree(
                "Commit these offsets?",
                refused="nothing was committed",
                option="--yes commits without asking",
            )
        commit(client, options.group, {one.partition: one.new_offset for one in plan})
    if not options.as_json:
        count = f"{len(plan):,} partition{'' if len(plan) == 1 else 's'}"
        print(f"reset {options.group} in {count}")


def _check(options: ResetOptions) -> None:
    values = {name: getattr(options, name) for name in _TARGETS}
    given = [name for name, value in values.items() if value is not None and value is not False]
    if len(given) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in _TARGETS)
        raise CliError(
            "the options do not select one target", f"use one of {names}", exit_code=USAGE
        )
    scopes = [bool(options.topics), options.all_topics, options.from_file is not None]
    if scopes.count(True) != 1:
        advice = "use --topic TOPIC[:P,P], --all-topics, or the partitions of --from-file"
        raise CliError("the options do not select the partitions once", advice, exit_code=USAGE)


def _plan(
    client: "AdminClient",
    cluster: "ClusterMetadata",
    group: Group,
    options: ResetOptions,
    asked: Mapping[Partition, int],
) -> list[Reset]:
    from confluent_kafka.admin import OffsetSpec

    current = committed(client, group)
    partitions = sorted(_scope(cluster, options, asked.keys() or current.keys()))
    first = offsets(client, partitions, OffsetSpec.earliest())
    end = offsets(client, partitions, OffsetSpec.latest())
    wanted = asked or _wanted(client, options, partitions, current, first, end)
    return [
        Reset(
            one, current.get(one), clamped(wanted[one], first[one], end[one]), first[one], end[one]
        )
        for one in partitions
    ]


def clamped(offset: int, log_start_offset: int, high_watermark: int) -> int:
    """Return the offset nearest to ``offset`` at which a consumer can start."""
    return min(max(offset, log_start_offset), high_watermark)


def _scope(
    cluster: "ClusterMetadata", options: ResetOptions, found: AbstractSet[Partition]
) -> set[Partition]:
    """Return the partitions of ``--topic``, of the file, or those with a committed offset."""
    if options.topics:
        return {one for text in options.topics for one in _partitions(cluster, text)}
    missing = {one for one in found if not exists(cluster, one)}
    if missing and options.from_file is not None:
        raise _unknown(cluster, min(missing))
    if not found - missing:
        advice = "name topics with --topic"
        raise CliError(f"{options.group} has not committed an offset of an existing topic", advice)
    return set(found - missing)


def _partitions(cluster: "ClusterMetadata", text: str) -> Iterator[Partition]:
    name, colon, numbers = text.partition(":")
    if name not in cluster.topics:
        raise _unknown(cluster, Partition(name, 0))
    if not colon:
        yield from (Partition(name, number) for number in cluster.topics[name].partitions)
        return
    for number in numbers.split(","):
        if not number.isascii() or not number.isdigit():
            raise CliError(f"{text!r} is not TOPIC:P,P", exit_code=USAGE)
        one = Partition(name, int(number))
        if not exists(cluster, one):
            raise _unknown(cluster, one)
        yield one


def _unknown(cluster: "ClusterMetadata", one: Partition) -> CliError:
    if one.topic not in cluster.topics:
        return CliError(f"there is no topic {one.topic}", "see `pykafka-core topics list`")
    last = max(cluster.topics[one.topic].partitions)
    text = f"{one.topic} has no partition {one.partition}"
    return CliError(text, f"it has 0 to {last}", exit_code=USAGE)


def _wanted(
    client: "AdminClient",
    options: ResetOptions,
    partitions: Sequence[Partition],
    current: Mapping[Partition, int],
    first: Mapping[Partition, int],
    end: Mapping[Partition, int],
) -> Mapping[Partition, int]:
    """Return the target offset of each partition, before it is clamped."""
    if options.to_earliest:
        return first
    if options.to_latest:
        return end
    if options.to_offset is not None:
        return dict.fromkeys(partitions, options.to_offset)
    if options.to_datetime is not None:
        return _since(client, options.to_datetime, end)
    return _shifted(partitions, current, options.shift_by or 0)


def _since(client: "AdminClient", when: str, end: Mapping[Partition, int]) -> dict[Partition, int]:
    from confluent_kafka.admin import OffsetSpec

    try:
        timestamp = max(0, time_ms(when))  # negative timestamps have a special meaning
    except (ValueError, OverflowError):
        advice = "use a time such as 2026-01-31T12:00, or @MILLISECONDS"
        raise CliError(f"--to-datetime {when!r} is not a time", advice, exit_code=USAGE) from None
    found = offsets(client, end, OffsetSpec.for_timestamp(timestamp))
    return {one: end[one] if offset < 0 else offset for one, offset in found.items()}


def _shifted(
    partitions: Sequence[Partition], current: Mapping[Partition, int], by: int
) -> dict[Partition, int]:
    missing = [f"{one.topic}-{one.partition}" for one in partitions if one not in current]
    if missing:
        text = f"cannot shift without a committed offset: {', '.join(missing[:_NAMED_MAX])}"
        raise CliError(text, "use --to-earliest, --to-latest or --to-offset for these partitions")
    return {one: current[one] + by for one in partitions}


def _read(path: Path) -> dict[Partition, int]:
    """Read a file in the format of ``kafka-consumer-groups --export`` for one group."""
    asked: dict[Partition, int] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if row:
                    one, offset = _line(path, number, row)
                    if asked.setdefault(one, offset) != offset:
                        raise _bad_line(path, number, "repeats a partition with another offset")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise CliError(f"cannot read {path}: {reason}", exit_code=USAGE) from error
    if not asked:
        raise CliError(f"{path} is empty", "write lines of topic,partition,offset", exit_code=USAGE)
    return asked


def _line(path: Path, number: int, row: Sequence[str]) -> tuple[Partition, int]:
    try:
        topic, partition, offset = (text.strip() for text in row)
        one, value = Partition(topic, int(partition)), int(offset)
    except ValueError:
        raise _bad_line(path, number, "is not topic,partition,offset") from None
    if not topic or one.partition < 0 or not 0 <= value <= INT64_MAX:
        raise _bad_line(path, number, "is not topic,partition,offset")
    return one, value


def _bad_line(path: Path, number: int, what: str) -> CliError:
    return CliError(f"line {number} of {path} {what}", exit_code=USAGE)


def _show(plan: Sequence[Reset], options: ResetOptions) -> None:
    rows = [
        {
            "topic": one.partition.topic,
            "partition": one.partition.partition,
            "current_offset": one.current_offset,
            "new_offset": one.new_offset,
            "log_start_offset": one.log_start_offset,
            "high_watermark": one.high_watermark,
        }
        for one in plan
    ]
    if options.as_json:
        print_json(rows)
    else:
        print_table(rows, title=f"group {options.group}", empty="no partitions")
