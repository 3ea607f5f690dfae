"""A small repository with the folders of this one, and the command that chooses its tests."""

import os
import subprocess
import sys
from pathlib import Path

from tools.guards.tree import ROOT

BROKER = """\
[package]
name = "pykafka-broker"
[dependencies]
wire = { package = "pykafka-wire" }
"""

FILES = {
    "pykafka_core/__init__.py": "",
    "pykafka_core/offsets.py": "START = 0\n",
    "pykafka_core/groups.py": "from pykafka_core.offsets import START\n",
    "spark_udfs/__init__.py": "",
    "pykafka_core/groups_api.py": "from pykafka_core.joins import join\n",
    "pykafka_core/joins.py": "from pykafka_core.sessions import open_session\n",
    "pykafka_core/sessions.py": "",
    "pykafka_core/handlers/__init__.py": "",
    "pykafka_core/handlers/unused.py": "",
    "tests/test_groups_api.py": "import pykafka_core.groups_api\n",
    "tests/test_offsets.py": "from pykafka_core.offsets import START\n",
    "tests/test_groups.py": "import pykafka_core.groups\n",
    "tests/support/world.py": "from pykafka_core import groups\n",
    "tests/handlers/test_join.py": "from tests.support import world\n",
    "tests/handlers/conftest.py": "",
    "tests/handlers/seeds.toml": "",
    "tests/docs/test_pages.py": "",
    "docs/SEEDS.md": "",
    "setup.cfg": "",
    "tests/handlers/seeds/join/recorded.json": "",
    "tests/support/only_conftest.py": "",
    "tests/commands/conftest.py": "from tests.support import only_conftest\n",
    "tests/commands/test_cli.py": "",
    "tests/pyx/test_records.py": "",
    "tests/tools/test_changed.py": "",
    "Cargo.toml": "",
    "pyproject.toml": "",
    "rust/log/Cargo.toml": '[package]\nname = "pykafka-log"\n',
    "rust/log/src/lib.rs": "",
    "rust/log/src/old.rs": "",
    "rust/wire/Cargo.toml": '[package]\nname = "pykafka-wire"\n[dependencies]\nlibc = "1"\n',
    "rust/wire/src/lib.rs": "",
    "rust/server/Cargo.toml": BROKER,
    "rust/bindings/Cargo.toml": '[package]\nname = "pykafka-bindings"\n',
    "rust/bindings/src/lib.rs": "",
    "README.md": "# A project\n",
}


def changed(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "tools.changed", *arguments],
        cwd=root, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def commands(root: Path) -> list[str]:
    """Return what runs for the changes since the newest commit."""
    done = changed(root, "HEAD")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
