"""Guard: only the module `platform` of a crate depends on the operating system.

Counted are conditions on the operating system or its C library, such as
``#[cfg(target_os = "linux")]``, in the sources of a crate outside of ``platform.rs`` and
``platform/``. Conditions on the processor do not count.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tools.guards.figures import Finding, Measure
from tools.guards.source import rust
from tools.guards.tree import Tree, area, is_test

MODULE = "platform"

CONDITION = re.compile(
    r"\bcfg(?:_attr)?!?\s*\([^\];{}]*?"
    r"\b(?:target_os|target_env|target_family|target_vendor|unix|windows)\b"
)

ADVICE = "move it to the crate's module platform, as a function that each system has"


def measure(tree: Tree) -> list[Measure]:
    """Return the measure `platform_conditions`."""
    findings: dict[str, list[Finding]] = {}
    for path in tree.sources(".rs", under=("rust/",)):
        if is_test(path) or MODULE in PurePosixPath(path).with_suffix("").parts:
            continue
        code = rust.code_of(tree.text(path))
        for match in CONDITION.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            finding = Finding(path, line, match[0].splitlines()[0], ADVICE)
            findings.setdefault(area(path), []).append(finding)
    counts = {key: len(found) for key, found in findings.items()}
    return [Measure("platform_conditions", counts, findings)]
