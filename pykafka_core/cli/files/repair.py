"""``repair``: cut logs where they are damaged, as Apache Kafka does without a question.

A broker that finds valid batches after damage, or that misses synced records, serves the log up to
that place and refuses writes. This command shows what a cut removes, waits for a confirmation, and
then cuts. It keeps the directory locked until it ends.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pykafka_core._core import Repair
from pykafka_core.broker.start.loading import apply_snapshot
from pykafka_core.broker.start.lost_metadata import Lost, MetadataLog, find_lost
from pykafka_core.broker.storage.data_directory import METADATA_DIRECTORY, DataDirectory
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.file_systems import lock_advice
from pykafka_core.cli.output import is_terminal, print_json
from pykafka_core.errors import LocalError, StorageLockedError
from pykafka_core.log import Log
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.records.codec import decoded
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC

from .batches import last_offset_behind


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """The part of a partition's log that is cut: from ``position`` of ``segment`` to the end.

    Attributes:
        offset: The remaining log end offset (exclusive).
        last_offset: The last removed offset, as far as batch headers can be found; -1 if there is
        none.
        bytes: The removed bytes, without zeros at the ends of files.
        log_start: The new start of the log if its checkpointed log start is above its end; then no
            record is removed.
        gap_end: The end of a gap (exclusive), if the damage is a gap; records after it may be kept.
        damage: The damage, in a broker's words; None for a torn tail, which any open of the log
        cuts.
    """

    partition: Path
    offset: int
    last_offset: int
    segment: int
    position: int
    bytes: int
    removed_segments: Sequence[int]
    log_start: int | None
    gap_end: int | None
    damage: str | None

    @property
    def count(self) -> int:
        """Return the number of removed offsets, as far as it is known."""
        first = self.offset if self.gap_end is None else self.gap_end
        return max(0, self.last_offset + 1 - first)


def repair(directory: Path, *, yes: bool, keep: bool, as_json: bool) -> None:
    """Show the cut, wait for a confirmation, and cut; ``keep`` keeps the records after gaps.

    Raises:
        CliError: Another process has the directory open, it cannot be read, the answer was no, or a
            second check finds damage.
    """
    # A partition's directory may be missing: checkpoints of its data directory still contain its
    # offsets.
    if not directory.is_dir() and not (directory.absolute().parent / "meta.properties").exists():
        raise CliError(f"{directory} is not a directory", exit_code=USAGE)
    try:
        with closing(Repair(directory)) as core:
            _repair(core, directory, yes=yes, keep=keep, as_json=as_json)
    except StorageLockedError as error:
        raise CliError(str(error), lock_advice(directory)) from error
    except LocalError as error:
        raise CliError(str(error)) from error


def _repair(core: Repair, directory: Path, *, yes: bool, keep: bool, as_json: bool) -> None:
    partitions = core.partitions()
    if not partitions:
        advice = "name a data directory, or a partition's directory in one"
        raise CliError(f"{directory} does not contain a partition", advice, exit_code=USAGE)
    data = partitions[0].absolute().parent
    with stored_metadata(data) as (image, log):
        compacted = compacted_of(partitions, image)
        cuts = look_at(core, partitions, compacted)
        is_metadata_cut = any(cut.partition.name == METADATA_DIRECTORY for cut in cuts)
        lost = find_lost(DataDirectory(data), image, log) if is_metadata_cut else None
    strays = _unknown(data, image) if is_metadata_cut and lost is None else []
    if as_json:
        print_json([_as_json(cut, strays, lost) for cut in cuts])
    else:
        _show(cuts, len(partitions), strays, lost)
    if not cuts:
        return
    has_gap = any(cut.gap_end is not None for cut in cuts)
    answer = "y" if yes else _answer(may_keep=has_gap and not keep)
    if answer not in ("y", "k"):
        raise CliError("nothing was cut", "" if is_terminal() else "--yes cuts without asking")
    for cut in cuts:
        is_kept = cut.gap_end is not None and (keep or answer == "k")
        act = core.keep if is_kept else core.cut
        act(cut.partition, cut.partition in compacted)
    _check_repaired(look_at(core, [cut.partition for cut in cuts], compacted))
    if not as_json:
        print(f"repaired {_counted(len(cuts), 'partition')}")


def _check_repaired(left: Sequence[Cut]) -> None:
    """Raise if a second check finds damage; after a kept gap there may be another one."""
    if left:
        shown = "\n".join(
            f"{cut.partition} is not intact yet: {what_is_wrong(cut)}" for cut in left
        )
        raise CliError(shown, "run the command again")


def look_at(core: Repair, partitions: Sequence[Path], compacted: frozenset[Path]) -> list[Cut]:
    """Read every batch, and return the necessary cuts; change nothing."""
    from rich.console import Console
    from rich.progress import track

    shown = track(
        partitions,
        "reading every batch",
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    found = ((partition, core.look(partition, partition in compacted)) for partition in shown)
    return [_cut(partition, *look) for partition, look in found if look is not None]


def _cut(
    partition: Path,
    offset: int,
    segment: int,
    position: int,
    size: int,
    removed: Sequence[int],
    log_start: int | None,
    gap_end: int | None,
    damage: str | None,
) -> Cut:
    places = [(segment, position), *((base, 0) for base in removed)]
    files = [(partition / _name(base), position) for base, position in places]
    there = [(path, position) for path, position in files if path.exists()]
    return Cut(
        partition=partition,
        offset=offset,
        last_offset=max((last_offset_behind(path, at) for path, at in there), default=offset - 1),
        segment=segment,
        position=position,
        bytes=size,
        removed_segments=removed,
        log_start=log_start,
        gap_end=gap_end,
        damage=damage,
    )


def _show(
    cuts: Sequence[Cut], partitions_count: int, strays: Sequence[str], lost: Lost | None
) -> None:
    for cut in cuts:
        print(f"{cut.partition}: {what_is_wrong(cut)}")
        if cut.partition.name == METADATA_DIRECTORY and lost is not None:
            print(f"  WARNING: the next start will fail: {lost.text}")
            print(f"    {lost.advice}")
        elif cut.partition.name == METADATA_DIRECTORY:
            _warn_of_strays(strays)
        if cut.log_start is not None:
            print(
                f"  would remove nothing; the log start returns to offset {cut.log_start}, the first record"
            )
            continue
        if not cut.bytes and not cut.removed_segments:
            print(f"  would remove nothing; the log continues at offset {cut.offset}")
            continue
        print(f"  would remove: {_offsets(cut)}{cut.bytes:,} bytes")
        print(f"    {_name(cut.segment)} from position {cut.position:,}")
        for segment in cut.removed_segments:
            print(f"    {_name(segment)}, the whole file")
        if cut.gap_end is not None:
            print(f"  with --keep, would keep: {_counted(cut.count, 'offset')} from {cut.gap_end}")
    whole = partitions_count - len(cuts)
    if whole:
        print(f"{_counted(whole, 'partition')} {'is' if whole == 1 else 'are'} intact")


def _warn_of_strays(strays: Sequence[str]) -> None:
    print(
        "  WARNING: topics created after the cut will be unknown. The next start sets their directories"
    )
    print("    aside under names that end in -stray; they are kept with all their records")
    for name in strays:
        print(f"    {name} would be set aside")


def what_is_wrong(cut: Cut) -> str:
    """Return the damage in words."""
    return f"damaged: {cut.damage}" if cut.damage else f"torn tail at offset {cut.offset}"


def _offsets(cut: Cut) -> str:
    return f"offsets {cut.offset} to {cut.last_offset}, " if cut.last_offset >= cut.offset else ""


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _answer(*, may_keep: bool) -> str:
    """Return the first letter of yes, keep or no; no without a terminal."""
    if not is_terminal():
        return "n"
    choices = "[y/k/N; k keeps the records after missing offsets]" if may_keep else "[y/N]"
    try:
        answer = input(f"Cut? Removed records cannot be restored. {choices} ")
    except (EOFError, KeyboardInterrupt):
        print()
        return "n"
    known = {"y": "y", "yes": "y", "k": "k", "keep": "k"} if may_keep else {"y": "y", "yes": "y"}
    return known.get(answer.strip().lower(), "n")


def _as_json(cut: Cut, strays: Sequence[str], lost: Lost | None) -> dict[str, object]:
    is_metadata = cut.partition.name == METADATA_DIRECTORY
    return {
        "partition": cut.partition.name,
        "damaged": cut.damage is not None,
        "damage": cut.damage,
        "log_end_offset": cut.offset,
        "last_offset": cut.last_offset,
        "segment": cut.segment,
        "position": cut.position,
        "bytes": cut.bytes,
        "removed_segments": list(cut.removed_segments),
        "offsets": cut.count,
        "log_start": cut.log_start,
        "kept_from": cut.gap_end,
        "strays": list(strays) if is_metadata else [],
        "start_refused": lost.text if lost is not None and is_metadata else None,
    }


def _name(segment: int) -> str:
    return f"{segment:020}.log"


def _unknown(data: Path, image: MetadataImage) -> list[str]:
    """Return the directories of partitions that the metadata before its cut does not contain."""
    names = (path.name for path in data.iterdir() if path.is_dir())
    places = ((name, *name.rpartition("-")) for name in names if name != METADATA_DIRECTORY)
    partitions = ((name, topic, index) for name, topic, _, index in places if topic)
    return sorted(
        name
        for name, topic, index in partitions
        if index.isdecimal() and image.partition(topic, int(index)) is None
    )


def compacted_of(partitions: Sequence[Path], image: MetadataImage) -> frozenset[Path]:
    """Return the partitions of compacted topics.

    Their logs may end with a gap and an empty segment.
    """
    everywhere = image.configs.of(RESOURCE_BROKER, "").get("log.cleanup.policy", "delete")

    def policy(topic: str) -> str:
        return image.configs.of(RESOURCE_TOPIC, topic).get("cleanup.policy", everywhere)

    return frozenset(
        path for path in partitions if "compact" in policy(path.name.rpartition("-")[0])
    )


class StoredMetadata(NamedTuple):
    """The metadata of a data directory that no broker has open.

    Attributes:
        image: The state at the end of the log, or at its damage.
        log: The metadata log, including the records that a snapshot replaces.
    """

    image: MetadataImage
    log: MetadataLog


@contextmanager
def stored_metadata(data: Path) -> Iterator[StoredMetadata]:
    """Read the metadata of a data directory; its log is open while the block runs."""
    path = data / METADATA_DIRECTORY
    if not path.is_dir():
        yield StoredMetadata(_snapshot(data)[0].image(), MetadataLog(0, ()))
        return
    with Log.open(path, read_only=True, on_damage="stop") as log:
        start = log.log_start_offset
        yield StoredMetadata(_image(data, log), MetadataLog(start, decoded(log.read, start)))


def _image(data: Path, log: Log) -> MetadataImage:
    replay, end = _snapshot(data)
    for batches in decoded(log.read, max(log.log_start_offset, end)):
        replay.apply((at, record) for at, record in batches.records if at >= end)
    return replay.image()


def _snapshot(data: Path) -> tuple[Replay, int]:
    """Return a replay of the newest snapshot, and the end offset of that snapshot."""
    replay = Replay()
    snapshot = DataDirectory(data).latest_snapshot()
    if snapshot is None:
        return replay, 0
    apply_snapshot(replay, snapshot)
    return replay, snapshot.end_offset
