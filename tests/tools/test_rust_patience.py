"""The guard of waits and sleeps in tests in Rust."""

from pathlib import Path

import pytest

from tests.tools.module_trees import write_tree
from tools.guards.figures import Measure
from tools.guards.rust_patience import measure

WAITS = {  # a wait for a number, and the same wait without a fault
    "gate.recv_timeout(Duration::from_secs(5))": "gate.recv_timeout(PATIENCE)",
    "assert_eq!(gate.recv_timeout(Duration::from_secs(20)), Ok(1))": "assert_eq!(gate.recv(), Ok(1))",
    "timeout(Duration::from_secs(60), future).await": "timeout(PATIENCE, future).await",
    "tokio::time::timeout(\n        Duration::from_secs(60), future)": "timeout_of(future)",
    "changed.wait_timeout(guard, SECOND)": "changed.wait_timeout(guard, 2 * PATIENCE)",
    "stream.set_read_timeout(Some(Duration::new(5, 0)))": "stream.set_read_timeout(None)",
    "let limit = Duration::from_secs(5); gate.recv_timeout(limit)": (
        "let limit = given.wait; gate.recv_timeout(limit)"
    ),
    "let end = Instant::now() + Duration::from_secs(5)": "let end = Instant::now() + PATIENCE",
    "assert!(begun.elapsed() < Duration::from_secs(5))": "assert!(begun.elapsed() >= SECOND)",
    "assert!(begun.elapsed() <= SECOND)": "assert!(begun.elapsed() < PATIENCE)",
    "gate.recv_timeout(std::time::Duration::from_millis(5))": "options.timeout = SECOND",
}

HEAD = """\
const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
fn timeout(wait: Duration) {} // recv_timeout(SECOND)
fn f() {
    """


def _measures(root: Path, **files: str) -> dict[str, Measure]:
    tree = write_tree(root, {f"rust/log/{name}.rs": text for name, text in files.items()})
    return {found.name: found for found in measure(tree)}


@pytest.mark.parametrize("source", WAITS)
def test_a_wait_for_a_number_is_found(tmp_path: Path, source: str) -> None:
    found = _measures(tmp_path, **{"tests/a": f"{HEAD}{source};\n}}\n"})["rust_timeouts"]
    assert found.counts == {"tests/rust/log": 1}
    assert [(one.path, one.line) for one in found.findings["tests/rust/log"]] == [
        ("rust/log/tests/a.rs", 5)
    ]


@pytest.mark.parametrize(
    "source", [*WAITS.values(), "timeout(PATIENCE, async { pause(SECOND).await; })"]
)
def test_a_wait_for_patience_is_accepted(tmp_path: Path, source: str) -> None:
    found = _measures(tmp_path, **{"tests/a": f"{HEAD}{source};\n}}\n"})
    assert [one.counts for one in found.values()] == [{}, {}]


@pytest.mark.parametrize(
    "source",
    [
        "thread::sleep(Duration::from_millis(5))",
        "sleep(pause).await",
        "timeout(PATIENCE, async { sleep(SECOND).await; })",
        "thread::park_timeout(PATIENCE)",
    ],
)
def test_a_sleep_is_found(tmp_path: Path, source: str) -> None:
    found = _measures(tmp_path, **{"tests/a": f"{HEAD}{source};\n}}\n"})
    assert found["rust_sleeps"].counts == {"tests/rust/log": 1}
    assert found["rust_timeouts"].counts == {}


def test_waits_of_the_product_are_accepted_and_those_of_its_tests_are_found(tmp_path: Path) -> None:
    wait = "fn f() { gate.recv_timeout(Duration::from_secs(5)); sleep(SECOND); }\n"
    files = {
        "src/a": f"{wait}#[cfg(test)]\nmod tests {{\n{wait}}}\n",
        "src/b_tests": wait,
        "src/lib": "#[cfg(test)]\nmod model;\n",
        "src/model": wait,
    }
    found = _measures(tmp_path, **files)
    assert {name: one.counts for name, one in found.items()} == {
        "rust_timeouts": {"tests/rust/log": 3}, "rust_sleeps": {"tests/rust/log": 3},
    }  # fmt: skip
    lines = {(one.path, one.line) for one in found["rust_sleeps"].findings["tests/rust/log"]}
    assert ("rust/log/src/a.rs", 4) in lines
