"""Damage to partition directories: a seed chooses a partition and what happens to it."""

import random
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.formats.legacy import corpus as legacy
from tests.formats.releases import corpus as releases

HEAD: Final = struct.Struct(">qi")
"""The first bytes of each batch: its base offset, and the size of the bytes after these."""
HEADER_BYTES: Final = 61
STRANGE: Final = b"\x03"
"""A message format that no release has written."""


@dataclass(frozen=True)
class Damage:
    """The damage of a seed to a copy of a partition."""

    seed: int
    kind: str
    source: str
    detail: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.kind} in {self.source}: {self.detail}"


def sources() -> list[Path]:
    """The partitions of all formats and releases."""
    found = [*legacy.DATA.iterdir(), *releases.DATA.iterdir()]
    return sorted(found, key=lambda path: path.name)


def kind_of(seed: int) -> str:
    """Return the kind of damage of a seed; one of seven seeds adds a second kind."""
    return list(KINDS)[seed % len(KINDS)]


def damaged(seed: int, folder: Path) -> Damage:
    """Write a damaged copy of a partition into ``folder``."""
    dice = random.Random(seed)
    source, foreign = dice.sample(sources(), 2)
    shutil.copytree(source, folder, copy_function=shutil.copyfile)
    scene, kind = Scene(dice, folder, foreign), kind_of(seed)
    details = [KINDS[kind](scene)]
    if dice.randrange(7) == 0:
        second = dice.choice(list(KINDS))
        details.append(f"{second}: {KINDS[second](scene)}")
    return Damage(seed, kind, source.name, "; ".join(details))


@dataclass(frozen=True)
class Scene:
    """A copy of a partition, and another partition."""

    dice: random.Random
    folder: Path
    foreign: Path

    def log(self) -> Path:
        """The file of a segment, often of the last one, and rarely an empty file."""
        files = logs(self.folder)
        files = [file for file in files if file.stat().st_size] or files
        return files[-1] if self.dice.random() < 0.3 else self.dice.choice(files)

    def foreign_log(self) -> Path:
        return self.dice.choice([file for file in logs(self.foreign) if file.stat().st_size])

    def span(self, size: int, length_max: int = 200) -> tuple[int, int]:
        start = self.dice.randrange(max(size, 1))
        return start, min(size, start + self.dice.randint(1, length_max))

    def place(self, data: bytes) -> int:
        """Where a batch begins or the last one ends."""
        return self.dice.choice(boundaries(data))


def logs(folder: Path) -> list[Path]:
    """The files of the segments, in order. A directory that lost all of them gets an empty one."""
    found = sorted(folder.glob("*.log"))
    if not found:
        found = [folder / f"{0:020}.log"]
        found[0].touch()
    return found


def boundaries(data: bytes) -> list[int]:
    """The positions at which batches begin or end, as far as their sizes lead."""
    places = [0]
    while places[-1] + HEAD.size <= len(data):
        size = HEAD.unpack_from(data, places[-1])[1]
        if size <= 0 or places[-1] + HEAD.size + size > len(data):
            break
        places.append(places[-1] + HEAD.size + size)
    return places


def _cut(scene: Scene) -> str:
    log = scene.log()
    size = scene.dice.randrange(log.stat().st_size + 1)
    log.write_bytes(log.read_bytes()[:size])
    return f"{log.name} to {size} bytes"


def _cut_between(scene: Scene) -> str:
    log = scene.log()
    data = log.read_bytes()
    place = scene.place(data)
    log.write_bytes(data[:place])
    return f"{log.name} to {place} bytes, between two batches"


def _flip(scene: Scene) -> str:
    log = scene.log()
    return _flipped(scene, log, 0, log.stat().st_size)


def _flip_header(scene: Scene) -> str:
    log = scene.log()
    data = log.read_bytes()
    place = scene.place(data)
    return _flipped(scene, log, place, min(len(data), place + HEADER_BYTES))


def _flipped(scene: Scene, file: Path, start: int, end: int) -> str:
    data = bytearray(file.read_bytes())
    count = scene.dice.choice((1, 1, 3)) if start < end else 0
    places = [scene.dice.randrange(start, end) for _ in range(count)]
    for place in places:
        data[place] ^= 1 << scene.dice.randrange(8)
    file.write_bytes(data)
    return f"{file.name} at {places}"


def _zero(scene: Scene) -> str:
    log = scene.log()
    data = bytearray(log.read_bytes())
    start, end = scene.span(len(data))
    data[start:end] = bytes(end - start)
    log.write_bytes(data)
    return f"{log.name} from {start} to {end}"


def _zero_end(scene: Scene) -> str:
    log = scene.log()
    data = log.read_bytes()
    start = scene.dice.randrange(len(data) + 1)
    log.write_bytes(data[:start] + bytes(len(data) - start))
    return f"{log.name} from {start} on"


def _garbage(scene: Scene) -> str:
    log = scene.log()
    size = scene.dice.randint(1, 300)
    log.write_bytes(log.read_bytes() + scene.dice.randbytes(size))
    return f"{size} bytes behind {log.name}"


def _strange(scene: Scene) -> str:
    """A batch of an unknown format at a boundary."""
    log = scene.log()
    data = log.read_bytes()
    place = scene.place(data)
    offset = HEAD.unpack_from(data, place)[0] if place + HEAD.size <= len(data) else int(log.stem)
    batch = HEAD.pack(offset, 80) + bytes(4) + STRANGE + scene.dice.randbytes(75)
    log.write_bytes(data[:place] + batch + data[place:])
    return f"{log.name} at {place}"


def _mix(scene: Scene) -> str:
    """Batches of another partition between those of this one."""
    log, foreign = scene.log(), scene.foreign_log()
    data, other = log.read_bytes(), foreign.read_bytes()
    place = scene.place(data)
    start, end = sorted((scene.place(other), scene.place(other)))
    log.write_bytes(data[:place] + other[start:end] + data[place:])
    return f"{log.name} at {place}: {end - start} bytes of {scene.foreign.name}/{foreign.name}"


def _foreign(scene: Scene) -> str:
    """A segment of another partition replaces one of this partition."""
    log, foreign = scene.log(), scene.foreign_log()
    log.write_bytes(foreign.read_bytes())
    return f"{log.name} is {scene.foreign.name}/{foreign.name}"


def _added(scene: Scene) -> str:
    """A segment of another partition is added."""
    foreign = scene.foreign_log()
    for file in scene.foreign.glob(f"{foreign.stem}.*"):
        if not (scene.folder / file.name).exists():
            shutil.copyfile(file, scene.folder / file.name)
    return f"{foreign.name} of {scene.foreign.name}"


def _swap(scene: Scene) -> str:
    one, two = scene.log(), scene.log()
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    return f"{one.name} and {two.name}"


def _lose(scene: Scene) -> str:
    log = scene.log()
    log.unlink()
    return log.name


def _lose_segment(scene: Scene) -> str:
    log = scene.log()
    for file in scene.folder.glob(f"{log.stem}.*"):
        file.unlink()
    return f"{log.stem}.*"


def _repeat(scene: Scene) -> str:
    """Batches that are there twice."""
    log = scene.log()
    data = log.read_bytes()
    start, end = sorted((scene.place(data), scene.place(data)))
    log.write_bytes(data[:end] + data[start:])
    return f"{log.name} from {start} to {end}"


def _remove(scene: Scene) -> str:
    log = scene.log()
    data = log.read_bytes()
    start, end = scene.span(len(data))
    log.write_bytes(data[:start] + data[end:])
    return f"{log.name} from {start} to {end}"


def _remove_batches(scene: Scene) -> str:
    log = scene.log()
    data = log.read_bytes()
    start, end = sorted((scene.place(data), scene.place(data)))
    log.write_bytes(data[:start] + data[end:])
    return f"{log.name} from {start} to {end}"


def _lose_index(scene: Scene) -> str:
    gone = [file for file in _derived(scene) if scene.dice.random() < 0.6]
    for file in gone:
        file.unlink()
    return ", ".join(file.name for file in gone)


def _damage_index(scene: Scene) -> str:
    files = [file for file in _derived(scene) if file.stat().st_size]
    if not files:
        return "no index"
    file = scene.dice.choice(files)
    size = file.stat().st_size
    if scene.dice.random() < 0.5:
        file.write_bytes(file.read_bytes()[: scene.dice.randrange(size)])
        return f"{file.name} is cut"
    return _flipped(scene, file, 0, size)


def _swap_index(scene: Scene) -> str:
    files = sorted(file for file in _derived(scene) if file.suffix in (".index", ".timeindex"))
    if not files:
        return "no index"
    one = scene.dice.choice(files)
    two = scene.dice.choice([file for file in files if file.suffix == one.suffix])
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    return f"{one.name} and {two.name}"


def _derived(scene: Scene) -> Iterator[Path]:
    kept = (".log", ".metadata")
    return (file for file in sorted(scene.folder.iterdir()) if file.suffix not in kept)


KINDS: Final[dict[str, Callable[[Scene], str]]] = {
    "cut": _cut,
    "cut between batches": _cut_between,
    "flip": _flip,
    "flip in a header": _flip_header,
    "zero": _zero,
    "zero to the end": _zero_end,
    "garbage behind": _garbage,
    "unknown format": _strange,
    "mix batches": _mix,
    "foreign segment": _foreign,
    "added segment": _added,
    "swap segments": _swap,
    "lose a log file": _lose,
    "lose a segment": _lose_segment,
    "repeat batches": _repeat,
    "remove bytes": _remove,
    "remove batches": _remove_batches,
    "lose indexes": _lose_index,
    "damage an index": _damage_index,
    "swap indexes": _swap_index,
}
"""The kinds of damage."""
