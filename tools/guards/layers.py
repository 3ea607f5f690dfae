"""Imports that point up: from a module to one of a higher layer, as `tools/layers.toml` lists it.

An import is counted once for each pair of files, however many names it takes. Imports within a
layer are free; the guards of import cycles cover them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.guards.figures import Finding, Measure
from tools.guards.imports import Graph, Import
from tools.guards.layer_list import LAYERS, Layer, LayerList, LayerTable, layer_list
from tools.guards.python_modules import python_code
from tools.guards.rust_modules import rust_crates
from tools.guards.tree import Tree


def measure(tree: Tree) -> list[Measure]:
    """Count the imports that point up in each table of layers.

    Raises:
        LayersError: A module is in no layer or in several, or an entry of the list covers no file.
        UnresolvedError: The graph of a Rust crate is incomplete.
    """
    layers = layer_list(tree)
    python = python_code(tree)
    crates = rust_crates(tree).values()
    layers.check(python.files.union(*(crate.files for crate in crates)))
    findings: dict[str, list[Finding]] = {table.key: [] for table in layers.tables}
    for graph in (python.graph, *(crate.graph for crate in crates)):
        for key, finding in _upward(layers, graph):
            findings[key].append(finding)
    counts = {key: len(found) for key, found in findings.items()}
    return [Measure("upward_imports", counts, findings)]


def _upward(layers: LayerList, graph: Graph) -> Iterator[tuple[str, Finding]]:
    for targets in graph.values():
        for found in targets.values():
            table = layers.table_of(found.source, found.target)
            own = table and table.layer_of(found.source)
            above = table and table.layer_of(found.target)
            if table and own and above and above.height > own.height:
                yield table.key, _finding(table, found, own, above)


def _finding(table: LayerTable, found: Import, own: Layer, above: Layer) -> Finding:
    source, target = (path.removeprefix(table.folder) for path in (found.source, found.target))
    advice = (
        f"`{source}` is in layer `{own.name}`, and `{target}` is in `{above.name}` above it: move "
        f"{found.described()} down to a module that both may import, pass it in from above, or correct {LAYERS}"
    )
    text = f"upward import of {found.described()} from {target}"
    return Finding(found.source, found.line, text, advice)
