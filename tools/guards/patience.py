"""Guard: tests take the bounds of their waits from tests/support/patience.py, and do not sleep.

A number chosen on a quiet machine makes a test fail on a busy one. Counted are numbers (literals,
arithmetic of them, and constants, local variables and parameters made of them) in these places:

* keyword arguments, parameters and variables with a name of `KEYWORDS`, such as ``timeout=60``;
* positional bounds of the calls in `POSITIONS`, such as ``thread.join(5)`` and
  ``pytest.mark.timeout(300)``;
* deadlines, such as ``time.monotonic() + 30`` and ``begun + 30``;
* upper limits of a measured time, such as ``assert time.monotonic() - begun < 5``. A clock that was
  read before, and a difference of such readings, may have names.

Tests in Rust have separate measures, see `rust_patience`.

A number 0 does not wait. ``patience.exactly(0.05, "reason")`` marks a time that belongs to the
scenario.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from tools.guards.figures import Finding, Measure
from tools.guards.literals import Literals, Module, Number, Scope, assigned, defaults, is_literal
from tools.guards.tree import Tree, area

EXEMPT = "tests/support/patience.py"

KEYWORDS = frozenset(
    {
        "timeout",
        "timeout_s",
        "patience",
        "patience_s",
        "deadline",
        "operation_timeout",
        "request_timeout",
        "request_timeout_s",
        "timeout_seconds",
    }
)

POSITIONS = {
    "abort_transaction": (0,),
    "acquire": (1,),
    "alarm": (0,),
    "awaitTermination": (0,),
    "commit_transaction": (0,),
    "committed": (1,),
    "communicate": (1,),
    "consume": (1,),
    "create_connection": (1,),
    "flush": (0,),
    "get_watermark_offsets": (1,),
    "init_transactions": (0,),
    "join": (0,),
    "list_topics": (0, 1),
    "offsets_for_times": (1,),
    "poll": (0,),
    "result": (0,),
    "select": (0, 3),
    "send_offsets_to_transaction": (2,),
    "settimeout": (0,),
    "timeout": (0,),  # pytest.mark.timeout, asyncio.timeout
    "wait": (0,),
    "wait_for": (1,),
}
"""Function → places of its bounds among the positional arguments."""

MILLISECOND_POLLS = frozenset({"poll", "getmany"})
"""Functions whose `timeout_ms` is a wait; elsewhere the name is a field of a request."""

CLOCKS = frozenset(
    {
        "monotonic",
        "monotonic_ns",
        "now_ns",
        "perf_counter",
        "perf_counter_ns",
        "process_time",
        "process_time_ns",
        "thread_time",
        "thread_time_ns",
        "time",
        "time_ns",
    }
)

ADVICE = (
    "use PATIENCE_S, ATTEMPT_S, POLL_S or seconds(...) from tests/support/patience.py,"
    " or exactly(..., 'reason') for a time of the scenario"
)

SLEEP_ADVICE = "wait for an event or a state, e.g. eventually(...) from tests/support/patience.py"


def measure(tree: Tree) -> list[Measure]:
    """Return the measures `literal_timeouts` and `sleeps`, by area of the tests."""
    literals = Literals(tree, ("tests/",), EXEMPT)
    timeouts: list[Finding] = []
    sleeps: list[Finding] = []
    for module in literals.modules.values():
        for node, scope in Scope(module).nodes():
            timeouts += _timeouts(node, scope, literals)
            sleeps += _sleeps(node, module)
    return [_measure("literal_timeouts", timeouts), _measure("sleeps", sleeps)]


def _measure(name: str, found: Iterable[Finding]) -> Measure:
    """Count each place once: a constant with ten uses is one finding."""
    places = {(finding.path, finding.line, finding.text): finding for finding in found}
    by_area: defaultdict[str, list[Finding]] = defaultdict(list)
    for place in sorted(places):
        by_area[area(places[place].path)].append(places[place])
    return Measure(name, {key: len(findings) for key, findings in by_area.items()}, by_area)


def _timeouts(node: ast.AST, scope: Scope, literals: Literals) -> Iterator[Finding]:
    for expression in _bounds(node, scope):
        if number := literals.number(expression, scope):
            yield _finding(number)


def _finding(number: Number) -> Finding:
    path, line = number.place
    return Finding(path, line, f"the bound of a wait is a number: {number.text}", ADVICE)


def _bounds(node: ast.AST, scope: Scope) -> Sequence[ast.expr]:
    """The expressions by which a node bounds a wait."""
    match node:
        case ast.Call():
            return [*_keywords(node), *_positional(node)]
        case ast.Assign() | ast.AnnAssign():
            return [
                value
                for name, value in assigned(node)
                if name in KEYWORDS and not _is_deadline(value, scope)
            ]
        case ast.arguments():
            return [value for name, value in defaults(node) if value and name in KEYWORDS]
        case ast.BinOp(left=left, right=right) if _is_deadline(node, scope):
            return [right] if _reads_clock(left, scope) else [left]
        case ast.Compare():
            return list(_limits(node, scope))
    return []


def _limits(comparison: ast.Compare, scope: Scope) -> Iterator[ast.expr]:
    """Yield the upper limits of measured times, in ``a < limit`` and ``limit > a``."""
    sides = [comparison.left, *comparison.comparators]
    for left, sign, right in zip(sides, comparison.ops, sides[1:], strict=False):
        if isinstance(sign, ast.Lt | ast.LtE) and _is_elapsed(left, scope):
            yield right
        elif isinstance(sign, ast.Gt | ast.GtE) and _is_elapsed(right, scope):
            yield left


def _keywords(call: ast.Call) -> Iterator[ast.expr]:
    is_poll = called(call) in MILLISECOND_POLLS
    for keyword in call.keywords:
        if keyword.arg in KEYWORDS or (is_poll and keyword.arg == "timeout_ms"):
            yield keyword.value


def _positional(call: ast.Call) -> Iterator[ast.expr]:
    places = POSITIONS.get(called(call), ())
    if called(call) == "get" and call.args and _is_true(call.args[0]):
        places = (1,)  # of a queue: get(block, timeout)
    return (call.args[place] for place in places if place < len(call.args))


def _is_true(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and expression.value is True


def _reads_clock(expression: ast.expr, scope: Scope) -> bool:
    if isinstance(expression, ast.Call):
        return called(expression) in CLOCKS
    return _is_named(expression, scope, _reads_clock)


def _is_deadline(expression: ast.expr, scope: Scope) -> bool:
    match expression:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _reads_clock(left, scope) or _reads_clock(right, scope)
    return False


def _is_elapsed(expression: ast.expr, scope: Scope) -> bool:
    match expression:
        case ast.BinOp(left=left, op=ast.Sub()):
            return _reads_clock(left, scope)
        case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv() | ast.Mult()):
            return _is_elapsed(left, scope)
    return _is_named(expression, scope, _is_elapsed)


def _is_named(
    expression: ast.expr, scope: Scope, is_kind: Callable[[ast.expr, Scope], bool]
) -> bool:
    """Return whether an expression is a local name, and each of its values is of a kind."""
    if not isinstance(expression, ast.Name):
        return False
    values, inside = scope.values_of(expression.id), scope.without(expression.id)
    return bool(values) and all(is_kind(value, inside) for value in values or ())


def _sleeps(node: ast.AST, module: Module) -> Iterator[Finding]:
    """A call of ``sleep``, of time or asyncio; ``sleep(0)`` only yields the processor."""
    if not isinstance(node, ast.Call) or _original(node, module) != "sleep":
        return
    times = [*node.args, *(keyword.value for keyword in node.keywords)]
    if any(is_literal(time) or not is_literal(time, zero=True) for time in times):
        yield Finding(module.path, node.lineno, ast.unparse(node), SLEEP_ADVICE)


def _original(call: ast.Call, module: Module) -> str:
    """Return the name of the called function in the module that defines it."""
    name = called(call)
    is_imported = isinstance(call.func, ast.Name) and name in module.imports
    return module.imports[name][1] if is_imported else name


def called(call: ast.Call) -> str:
    """Return the last part of the called function's name, or an empty string."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
