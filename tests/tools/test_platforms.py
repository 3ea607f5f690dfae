"""The guard of conditions on the operating system."""

from pathlib import Path

import pytest

from tests.tools.module_trees import write_tree
from tools.guards.figures import Measure
from tools.guards.platforms import measure


def _measured(root: Path, path: str, line: str) -> Measure:
    (found,) = measure(write_tree(root, {path: f"//! A module.\n\n{line}\nfn work() {{}}\n"}))
    return found


@pytest.mark.parametrize(
    "line",
    [
        '#[cfg(target_os = "linux")]',
        '#[cfg(all(test, not(target_env = "gnu")))]',
        '#[cfg_attr(target_os = "macos", expect(dead_code))]',
        "#[cfg(unix)]",
        'const IS_LINUX: bool = cfg!(target_os = "linux");',
    ],
)
def test_a_condition_outside_of_the_module_is_found(tmp_path: Path, line: str) -> None:
    found = _measured(tmp_path, "rust/log/src/disk/real.rs", line)
    assert found.counts == {"rust/log": 1}
    assert [(one.path, one.line) for one in found.findings["rust/log"]] == [
        ("rust/log/src/disk/real.rs", 3)
    ]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("rust/log/src/disk/platform.rs", '#[cfg(target_os = "linux")]'),
        ("rust/log/src/disk/platform/linux.rs", '#[cfg(target_os = "linux")]'),
        ("rust/log/tests/log.rs", '#[cfg(target_os = "linux")]'),
        ("rust/record/src/lanes.rs", '#[cfg(target_arch = "x86_64")]'),
        ("rust/log/src/disk/real.rs", '// #[cfg(target_os = "linux")]'),
        ("rust/log/src/disk/real.rs", "use std::os::unix::fs::FileExt;"),
    ],
)
def test_other_lines_are_accepted(tmp_path: Path, path: str, line: str) -> None:
    assert _measured(tmp_path, path, line).counts == {}
