"""The folder of a `dedup_stream`: its settings, its query and its buckets of ids. Without Spark.

    settings.json                  the meaning of the ids; written by the driver, checked on start
    query                          the id of the streaming query, as in the checkpoint
    batch-00000000000000000041...  a task of micro-batch 41 started (`spark_udfs.dedup.attempts`)
    start-000003                   an empty file: the folder is used by its third dedup_stream
    layout-0002-0007/              the second layout, with 7 buckets
        bucket-0000/ ...           the files of a bucket: `spark_udfs.dedup.increments`

**Changing the number of buckets.** The bucket of an id is computed from its stored fingerprint, so
the driver can rewrite all ids into a new layout. It first renames the current layout to
``closed-layout-...``, so that no task of a query that still runs can add ids that would be lost.
Then it builds the new layout as ``new-layout-...``, renames it, which is the switch, and deletes
the closed one. After a crash before the switch, the next start continues from the closed layout;
after a crash past the switch, it deletes the remains.

The newest micro-batch may run again and then needs the state before it, so its additions stay in a
separate file. Earlier micro-batches never run again, so their additions are merged into one file.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from spark_udfs.dedup.attempts import Attempt, Note, begin, noted
from spark_udfs.dedup.disk import StoreError, create, delete_half_written, sync_folder
from spark_udfs.dedup.increments import (
    NOTHING,
    Span,
    listed,
    load,
    read_chain,
    supersede,
    write_span,
)
from spark_udfs.dedup.memory import UNKNOWN, Memory, split, union

__all__ = ["Layout", "Store", "prepare"]

SPLIT_BYTES_MAX: Final = 2**29
"""Limit of ids that the driver holds in a rewrite; above it, the old layout is read repeatedly."""

_VERSION: Final = 3
_COPIED: Final = Attempt(0, 0, "0" * 8)
"""Placeholder attempt for ids that were copied to a new layout; all real attempts are later."""

_START: Final = re.compile(r"start-(\d{6,})")
_LAYOUT: Final = re.compile(r"(closed-|new-|)layout-(\d{4,})-(\d{4})")


class Layout(NamedTuple):
    """A layout; later ones have greater numbers, from 1."""

    number: int
    buckets: int

    def name(self) -> str:
        """Return the name of its folder."""
        return f"layout-{self.number:04}-{self.buckets:04}"


@dataclass(frozen=True)
class Store:
    """A folder that the driver and all executors share under one path, as the driver prepared it.

    Attributes:
        folder: Its path.
        layout: The current one.
        application: Id of the driver's application.
        start: Number of this `dedup_stream` among all that were created with the folder.
    """

    folder: Path
    layout: Layout
    application: str
    start: int

    def bucket(self, number: int) -> Path:
        """Return the folder of a bucket's files."""
        return _bucket(self.folder / self.layout.name(), number)

    def open(self, query: str, batch: int, execution: int) -> Attempt:
        """Bind the folder to a streaming query, in one of the tasks of its micro-batch ``batch``.

        On return, additions of earlier attempts of the micro-batch are invalid.

        Args:
            query: The query id in the checkpoint.
            batch: Number of the micro-batch.
            execution: Number of Spark's SQL execution of it.

        Raises:
            StoreError: The folder is missing on this host, belongs to another query, has another
                layout, was used by a later micro-batch or attempt, or is used by another
                `dedup_stream` of the query.
        """
        if not (self.folder / "settings.json").exists():
            raise StoreError(
                f"{self.folder} is not what the driver made: all executors must see the same folder"
            )
        if not (self.folder / self.layout.name()).exists():
            raise StoreError(
                f"{self.folder} has no {self.layout.name()} any more: only one dedup_stream may use it, and another "
                "one was started with another number of buckets"
            )
        before = create(self.folder / "query", query)
        if before != query:
            raise StoreError(
                f"{self.folder} remembers the ids of query {before}, and this is {query}: "
                "a new checkpoint needs a new folder"
            )
        attempt = Attempt.of(self.start, execution, self.application)
        earlier = begin(self.folder, Note(batch, attempt))
        if any(note.batch == batch for note in earlier):
            for number in range(self.layout.buckets):
                supersede(self.bucket(number), batch, attempt)
        for note in earlier:
            (self.folder / note.name()).unlink(missing_ok=True)
        return attempt


def prepare(
    folder: Path,
    settings: Mapping[str, Any],
    buckets: int | None,
    default: int,
    application: str = "",
) -> Store:
    """Create the folder, or change its layout, on the driver, before anything runs.

    Args:
        folder: An absolute path.
        settings: The meaning of the ids, including ``horizon_ms``.
        buckets: New number of buckets. None: keep the number; ``default`` in a new folder.
        default: At least 1.
        application: The id of Spark's application.

    Raises:
        StoreError: The folder was created with other settings or by another version, or a part of
            it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _agree(folder, {"version": _VERSION, **settings})
    current = _current(folder)
    for name in ("settings.json", "query"):
        delete_half_written(folder / name)
    if current is None:
        layout = Layout(1, buckets or default)
        _build(folder, layout)
    elif buckets in (None, current.buckets):
        layout = current
        closed = folder / f"closed-{layout.name()}"
        if closed.exists():
            closed.rename(folder / layout.name())
    else:
        assert buckets is not None, "None was above"
        layout = Layout(current.number + 1, buckets)
        closed = folder / f"closed-{current.name()}"
        if not closed.exists():
            (folder / current.name()).rename(closed)
        _build(folder, layout, closed, current, settings["horizon_ms"])
    sync_folder(folder)
    for name in os.listdir(folder):
        if _LAYOUT.fullmatch(name) and name != layout.name():
            shutil.rmtree(folder / name)
    return Store(folder, layout, application, _count_start(folder))


def _agree(folder: Path, settings: Mapping[str, Any]) -> None:
    path = folder / "settings.json"
    before = json.loads(create(path, json.dumps(settings, sort_keys=True)))
    if before.get("version") != _VERSION:
        raise StoreError(
            f"{folder} was made by another version of dedup_stream: use a new folder and a new checkpoint"
        )
    if before != settings:
        raise StoreError(
            f"{folder} remembers ids under the settings {before}, and this query has {settings}: "
            "continue with those, or use a new folder and a new checkpoint"
        )


def _current(folder: Path) -> Layout | None:
    """Return the layout that holds the ids, even if it is closed; None in a new folder.

    Raises:
        StoreError: The folder had a layout, which is missing.
    """
    found = [match for match in map(_LAYOUT.fullmatch, os.listdir(folder)) if match]
    for kind in ("", "closed-"):  # with a layout in use, a closed one is a remnant
        layouts = [Layout(int(match[2]), int(match[3])) for match in found if match[1] == kind]
        if layouts:
            return max(layouts)
    if (folder / "query").exists() or noted(folder):
        raise StoreError(
            f"{folder} no longer contains the ids: restore it together with the checkpoint, or use both new"
        )
    return None


def _build(
    folder: Path,
    layout: Layout,
    source: Path | None = None,
    old: Layout | None = None,
    horizon_ms: int | None = None,
) -> None:
    """Create the folder of ``layout`` atomically, with the ids of ``source``, of layout ``old``."""
    new = folder / f"new-{layout.name()}"
    if new.exists():
        shutil.rmtree(new)
    new.mkdir()
    for number in range(layout.buckets):
        _bucket(new, number).mkdir()
    if source is not None and old is not None:
        buckets = [_bucket(source, number) for number in range(old.buckets)]
        _copy(
            buckets,
            [_bucket(new, number) for number in range(layout.buckets)],
            horizon_ms,
            [note.batch for note in noted(folder)],
        )
    sync_folder(new)
    new.rename(folder / layout.name())


def _copy(
    old: Sequence[Path], new: Sequence[Path], horizon_ms: int | None, noted_batches: Iterable[int]
) -> None:
    """Copy the ids of the buckets ``old`` to ``new``, a range of new buckets at a time."""
    spans = [spans[-1].last for spans in map(listed, old) if spans]
    top = max([*spans, *noted_batches], default=-1)  # the micro-batch that may run again
    size = sum(path.stat().st_size for bucket in old for path in bucket.iterdir())
    step = max(1, len(new) * SPLIT_BYTES_MAX // max(1, size))
    for start in range(0, len(new), step):
        chosen = range(start, min(start + step, len(new)))
        before, added = _remembered(old, len(new), chosen, top, horizon_ms)
        for number in chosen:
            _write_bucket(new[number], top, before.get(number), added.get(number))


def _remembered(
    old: Sequence[Path], buckets: int, chosen: range, top: int, horizon_ms: int | None
) -> tuple[dict[int, Memory], dict[int, Memory]]:
    """Return the ids of the ``chosen`` buckets before the micro-batch ``top``, and its additions.

    Each old bucket has its own newest time. The new ones get the earliest of them, so that all
    remembered ids stay and a replay of ``top`` has the same result. Later times count as now. That
    micro-batch ran no later than now, so at worst an id is dropped that it remembered.
    """
    now_ms = time.time_ns() // 1_000_000
    before: dict[int, list[Memory]] = {number: [] for number in chosen}
    added: dict[int, list[Memory]] = {number: [] for number in chosen}
    times, times_after = [], []
    for bucket in old:
        known = load(bucket, top, horizon_ms, now_ms)
        own = [span for span in listed(bucket) if span.is_of(top)]
        _, news = read_chain(bucket, known.chain, own)
        if known.last >= 0:
            times.append(known.memory.newest)
        if known.last >= 0 or news:
            times_after.append(max(one.newest for one in [known.memory, *news]))
        for memory, parts in [(known.memory, before), *((one, added) for one in news)]:
            for number, part in split(memory, buckets).items():
                if number in parts:
                    parts[number].append(part)
    return _joined(before, times), _joined(added, times_after)


def _joined(parts: Mapping[int, Sequence[Memory]], times: Sequence[int]) -> dict[int, Memory]:
    """Return one memory for each bucket, at the earliest of ``times``; empty without times."""
    if not times:
        return {}
    empty = Memory(min(times), {})
    return {
        number: replace(union([empty, *found]), newest=min(times))
        for number, found in parts.items()
    }


def _write_bucket(bucket: Path, top: int, before: Memory | None, added: Memory | None) -> None:
    chain = NOTHING
    if before is not None and (before.count() or before.newest != UNKNOWN):
        chain = write_span(bucket, Span(0, top - 1), chain, before)
    if added is not None and added.count():
        write_span(bucket, Span.of(top, _COPIED), chain, added)
    sync_folder(bucket)


def _count_start(folder: Path) -> int:
    """Claim and return the number of this start, one more than earlier ones."""
    before = [int(match[1]) for match in map(_START.fullmatch, os.listdir(folder)) if match]
    number = max(before, default=0) + 1
    while True:
        try:
            (folder / f"start-{number:06}").touch(exist_ok=False)
        except FileExistsError:  # claimed by another driver
            number += 1
            continue
        sync_folder(folder)
        for older in before:
            (folder / f"start-{older:06}").unlink(missing_ok=True)
        return number


def _bucket(layout: Path, number: int) -> Path:
    return layout / f"bucket-{number:04}"
