"""Imports between source files, and the cycles that they form."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class Import:
    """One file imports names that another file defines."""

    source: str  # path of the importing file
    target: str  # path of the file that defines the names
    line: int  # of the first of these imports in `source`, from 1
    names: tuple[str, ...] = ()  # sorted, without duplicates

    def described(self) -> str:
        """The names that are imported, at most three of them."""
        more = len(self.names) - 3
        return ", ".join(self.names[:3]) + (f" and {more} more" if more > 0 else "")

    def advice(self, target: str) -> str:
        """How to do without this import; `target` is how to write the imported file."""
        return (
            f"this import of {self.described()} from {target} is the one to remove: move what both files need to a "
            "module below them, or pass it to the function or constructor that needs it"
        )


Graph: TypeAlias = Mapping[str, Mapping[str, Import]]
"""The imports of each file, by the file that they lead to."""


def graph_of(imports: Iterable[Import]) -> Graph:
    """Return the imports by source and target."""
    graph: dict[str, dict[str, Import]] = defaultdict(dict)
    for found in imports:
        graph[found.source][found.target] = found
    return graph


def within(graph: Graph, files: frozenset[str]) -> Graph:
    """Return the imports between `files` only."""
    return {
        source: {target: found for target, found in graph[source].items() if target in files}
        for source in sorted(files & graph.keys())
    }


def without(graph: Graph, removed: Import) -> Graph:
    """Return the graph without one of its imports."""
    kept = dict(graph[removed.source])
    del kept[removed.target]
    return {**graph, removed.source: kept}


def cycles(graph: Graph) -> list[frozenset[str]]:
    """Return the strongly connected components of two or more files, the largest first.

    Two files are in one component if each imports the other, directly or through further files.
    """
    order = _finish_order(graph)
    reverse: dict[str, list[str]] = defaultdict(list)
    for source, targets in graph.items():
        for target in targets:
            reverse[target].append(source)
    seen: set[str] = set()
    components = [_reach(start, reverse, seen) for start in reversed(order) if start not in seen]
    return sorted((c for c in components if len(c) > 1), key=lambda c: (-len(c), min(c)))


def _finish_order(graph: Graph) -> list[str]:
    """Every file, after the files that it imports as far as no cycle prevents that."""
    order: list[str] = []
    seen: set[str] = set()
    for root in sorted(graph):
        stack = [(root, False)]
        while stack:
            file, is_finished = stack.pop()
            if is_finished:
                order.append(file)
            elif file not in seen:
                seen.add(file)
                stack.append((file, True))
                stack.extend((target, False) for target in sorted(graph.get(file, ())))
    return order


def _reach(start: str, edges: Mapping[str, Iterable[str]], seen: set[str]) -> frozenset[str]:
    """The files that can be reached from `start` and are not in `seen`, which then holds them."""
    found = {start}
    seen.add(start)
    pending = [start]
    while pending:
        new = set(edges.get(pending.pop(), ())) - seen
        seen |= new
        found |= new
        pending.extend(sorted(new))
    return frozenset(found)


def shortest_cycle(graph: Graph, through: Import) -> list[str]:
    """Return the files of a shortest cycle that contains one import.

    The first file is `through.source`, and so is the last. Raises ValueError if there is none.
    """
    previous = {through.target: through.source}
    pending = deque([through.target])
    while pending:
        file = pending.popleft()
        for target in sorted(graph.get(file, ())):
            if target == through.source:
                return [through.source, *_path_back(previous, file, through.source), target]
            if target not in previous:
                previous[target] = file
                pending.append(target)
    raise ValueError(f"{through} is in no cycle")


def _path_back(previous: Mapping[str, str], last: str, first: str) -> list[str]:
    """The files between `first`, exclusive, and `last`, inclusive."""
    path = [last]
    while previous[path[-1]] != first:
        path.append(previous[path[-1]])
    return path[::-1]


def imports_to_remove(
    graph: Graph, cycle: frozenset[str], rise: Callable[[str, str], int]
) -> list[Import]:
    """Return imports without which `cycle` holds no cycle, the most effective one first.

    Imports that point up (`rise` of source and target is positive) are chosen before all others.
    Each choice leaves the smallest possible largest component; ties prefer the import with the
    fewest names.
    """
    removed = []
    rest = within(graph, cycle)
    while components := cycles(rest):
        part = within(rest, components[0])
        candidates = [found for targets in part.values() for found in targets.values()]
        upward = [found for found in candidates if rise(found.source, found.target) > 0]
        best = min(upward or candidates, key=partial(_cost, part))
        removed.append(best)
        rest = without(rest, best)
    return removed


def _cost(graph: Graph, removed: Import) -> tuple[int, int, int, Import]:
    """Sizes of the cycles without an import, the largest and all together, and its names."""
    sizes = [len(component) for component in cycles(without(graph, removed))]
    return (max(sizes, default=0), sum(sizes), len(removed.names), removed)
