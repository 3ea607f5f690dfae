"""The description of a condition that never held: its source, and its last values."""

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Iterable, Mapping

from tests.support.evidence.exchanges import described, shortened


def explain(condition: Callable[[], object]) -> str:
    """Return the source of a lambda with its operands' values, or a function's name and variables.

    Operands are evaluated again: the values are those of now, and one that raises is shown as its
    error.
    """
    if isinstance(condition, functools.partial):
        return _listed(_name(condition.func), [("arguments", condition.args)])
    if not inspect.isfunction(condition):
        return _name(condition)
    variables = inspect.getclosurevars(condition).nonlocals
    body = _body_of_lambda(condition.__code__.co_filename, condition.__code__.co_firstlineno)
    if condition.__name__ != "<lambda>" or body is None:
        return _listed(_name(condition), variables.items())
    names = {**condition.__globals__, **variables}
    values = ((ast.unparse(part), _value(part, names)) for part in _operands(body))
    return _listed(ast.unparse(body), values)


def _listed(what: str, values: Iterable[tuple[str, object]]) -> str:
    lines = (f"\n  {name} is {shortened(described(value))}" for name, value in values)
    return what + "".join(lines)


def _name(condition: Callable[..., object]) -> str:
    return str(getattr(condition, "__qualname__", condition))


def _body_of_lambda(file: str, line: int) -> ast.expr | None:
    """Return the body of the only lambda that starts on a line.

    None if there are several, or if the source is missing.
    """
    tree = ast.parse("".join(linecache.getlines(file)))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Lambda))
    bodies = [node.body for node in nodes if node.lineno == line]
    return bodies[0] if len(bodies) == 1 else None


def _operands(body: ast.expr) -> list[ast.expr]:
    if isinstance(body, ast.Compare):
        operands = [body.left, *body.comparators]
        return [part for part in operands if _names_in(part)]
    if isinstance(body, ast.BoolOp):
        return [part for value in body.values for part in _operands(value)]
    if isinstance(body, ast.UnaryOp):
        return _operands(body.operand)
    return [body]


def _names_in(part: ast.expr) -> list[ast.Name]:
    return [node for node in ast.walk(part) if isinstance(node, ast.Name)]


def _value(part: ast.expr, names: Mapping[str, object]) -> object:
    try:
        return eval(compile(ast.Expression(part), "<condition>", "eval"), dict(names))
    except Exception as error:
        return error
