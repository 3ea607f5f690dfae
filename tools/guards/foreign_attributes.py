"""Guard: components of the broker get what they need from their constructors.

Counted are assignments to an attribute of another object, such as ``jobs.propose = send``, in files
below `FOLDER`. An attribute that a class of the same file declares or sets does not count: it is an
object that the file creates, such as a timer. So a hook that another component sets later is found,
and so is state that two components share without a method.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.guards.figures import Finding, Measure
from tools.guards.tree import Tree, area

FOLDER = "pykafka_core/broker/"

ADVICE = (
    "pass the value to the constructor, or create the object later; two objects that need each"
    " other share a third one, such as a queue"
)


def measure(tree: Tree) -> list[Measure]:
    """Return the measure `foreign_attributes`."""
    findings: dict[str, list[Finding]] = {}
    for path in tree.sources(".py", under=(FOLDER,)):
        for finding in _findings(path, ast.parse(tree.text(path), path)):
            findings.setdefault(area(path), []).append(finding)
    counts = {key: len(found) for key, found in findings.items()}
    return [Measure("foreign_attributes", counts, findings)]


def _findings(path: str, module: ast.Module) -> Iterator[Finding]:
    own = set(_own(module))
    for node in _assigned(module):
        if not _is_self(node.value) and node.attr not in own:
            text = f"assignment to {ast.unparse(node)}"
            yield Finding(path, node.lineno, text, ADVICE)


def _own(module: ast.Module) -> Iterator[str]:
    """Yield the attributes that the classes of a file declare, or set on `self`."""
    for node in _assigned(module):
        if _is_self(node.value):
            yield node.attr
    for of in ast.walk(module):
        if isinstance(of, ast.ClassDef):
            for statement in of.body:
                yield from _declared(statement)


def _declared(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case _:
            pass


def _assigned(module: ast.Module) -> Iterator[ast.Attribute]:
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")
