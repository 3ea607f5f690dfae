"""A mapping whose copy costs what changed, not what it holds.

Theory of operation. A `ForkMap` is a base that is never changed and a small dict of what differs
from it. `fork` copies the latter alone; when that has grown to a 16th of the base, the two are merged
into a new base, so that a change costs a constant on average. What is written to a fork is not seen
by what it was forked from.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Generic, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

_CHANGED_MIN = 256
"""Below this a merge is not worth it, nor is it expensive."""


class _Gone:
    """In place of the value of a key that was deleted."""


_GONE = _Gone()


class ForkMap(MutableMapping[K, V], Generic[K, V]):
    """See the module; by value equal to a dict of the same items."""

    __slots__ = "_base", "_changed", "_size"

    def __init__(self, base: Mapping[K, V], changed: dict[K, V | _Gone], size: int) -> None:
        self._base = base
        self._changed = changed
        self._size = size

    def __getitem__(self, key: K) -> V:
        found = self._changed.get(key)
        if found is None:
            return self._base[key]
        if isinstance(found, _Gone):
            raise KeyError(key)
        return found

    def get(self, key: K, default: V | None = None) -> V | None:  # type: ignore[override]
        """As of a dict; the mixin's raises and catches for each key that is missing."""
        found = self._changed.get(key)
        if found is None:
            return self._base.get(key, default)
        return default if isinstance(found, _Gone) else found

    def __setitem__(self, key: K, value: V) -> None:
        found = self._changed.get(key)
        self._size += key not in self._base if found is None else found is _GONE
        self._changed[key] = value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._size -= 1
        if key in self._base:
            self._changed[key] = _GONE
        else:
            del self._changed[key]

    def __contains__(self, key: object) -> bool:
        found = self._changed.get(key)  # type: ignore[arg-type]
        return key in self._base if found is None else found is not _GONE

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        """In the order in which the keys came."""
        changed, base = self._changed, self._base
        yield from (key for key in base if changed.get(key) is not _GONE)
        yield from (key for key in changed if key not in base)

    def __repr__(self) -> str:
        return f"ForkMap({dict(self)!r})"

    def fork(self) -> "ForkMap[K, V]":
        """A copy to be changed; this one must not be changed any more."""
        if len(self._changed) > max(_CHANGED_MIN, len(self._base) // 16):
            return ForkMap(self._merged(), {}, self._size)
        return ForkMap(self._base, self._changed.copy(), self._size)

    def _merged(self) -> dict[K, V]:
        """As ``dict(self)``, but made by copies of dicts, which take 20 ns an item, and not item by item."""
        merged: dict[K, V | _Gone] = dict(self._base)
        merged.update(self._changed)
        for key in [key for key, value in self._changed.items() if value is _GONE]:
            del merged[key]
        return cast("dict[K, V]", merged)


def fork(source: Mapping[K, V]) -> ForkMap[K, V]:
    """A copy of ``source`` to be changed; ``source`` must not be changed any more."""
    return source.fork() if isinstance(source, ForkMap) else ForkMap(source, {}, len(source))
