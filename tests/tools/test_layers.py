"""Imports that point up are counted by the list of layers, which must fit the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.module_trees import FolderTree, repository, write_tree
from tools.guards import layers, python_modules
from tools.guards.layer_list import LayersError
from tools.guards.python_modules import UnreadModuleError

RUST = {
    "rust/sample/src/lib.rs": "mod base; mod room;",
    "rust/sample/src/base.rs": "pub struct Base;",
    "rust/sample/src/room.rs": "mod door; pub struct Room;",
    "rust/sample/src/room/door.rs": "use super::Room; use crate::base::Base; pub struct Door;",
}
PYTHON = {
    "sample_kafka/__init__.py": "from sample_kafka.high import Serve\n",
    "sample_kafka/_core.pyi": "class Core: ...\n",
    "sample_kafka/high.py": "from sample_kafka import low\n\nclass Serve: ...\n",
    "sample_kafka/low.py": "from sample_kafka import _core\nfrom sample_kafka._core import Core\n",
    "sample_spark/__init__.py": "",
}
LAYERS = """
[packages]
layers = [{ name = "top", modules = ["sample_spark"] }, { name = "engine", modules = ["sample_kafka"] }]
["rust/sample"]
layers = [
  { name = "facade", modules = ["lib"] },
  { name = "rooms", modules = ["room"] },
  { name = "values", modules = ["base"] },
]
[sample_kafka]
layers = [
  { name = "public", modules = ["__init__"] },
  { name = "commands", modules = ["high"] },
  { name = "values", modules = ["low"] },
]
"""


def _tree(root: Path, changed: dict[str, str] | None = None, text: str = LAYERS) -> FolderTree:
    return write_tree(root, {**RUST, **PYTHON, "tools/layers.toml": text, **(changed or {})})


def test_imports_that_point_down_or_stay_in_their_layer_are_free(tmp_path: Path) -> None:
    (found,) = layers.measure(_tree(tmp_path))
    assert found.name == "upward_imports"
    assert found.counts == {"packages": 0, "rust/sample": 0, "sample_kafka": 0}


def test_an_upward_import_in_rust_has_its_place_names_and_advice(tmp_path: Path) -> None:
    text = "pub struct Base;\n\nfn f(_: crate::room::Room) {}\nuse crate::room::Room as R;"
    (found,) = layers.measure(_tree(tmp_path, {"rust/sample/src/base.rs": text}))
    assert found.counts == {"packages": 0, "rust/sample": 1, "sample_kafka": 0}
    (finding,) = found.findings["rust/sample"]
    assert (finding.path, finding.line) == ("rust/sample/src/base.rs", 3)
    assert finding.text == "upward import of Room from room.rs"
    assert finding.advice.startswith(
        "`base.rs` is in layer `values`, and `room.rs` is in `rooms` above it: move Room down"
    )


def test_a_longer_entry_places_a_module_apart_from_its_folder(tmp_path: Path) -> None:
    text = LAYERS.replace('["base"]', '["base", "room/door"]')
    (found,) = layers.measure(_tree(tmp_path, text=text))
    (finding,) = found.findings["rust/sample"]
    assert (finding.path, finding.line) == ("rust/sample/src/room/door.rs", 1)
    assert finding.text == "upward import of Room from room.rs"


def test_an_upward_import_in_python_counts_for_types_too(tmp_path: Path) -> None:
    text = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from sample_kafka.high import (\n"
        "        Serve,  # (a comment)\n"
        "        Stop,\n"
        "    )\n"
    )
    (found,) = layers.measure(_tree(tmp_path, {"sample_kafka/low.py": text}))
    assert found.counts == {"packages": 0, "rust/sample": 0, "sample_kafka": 1}
    (finding,) = found.findings["sample_kafka"]
    assert (finding.path, finding.line) == ("sample_kafka/low.py", 3)
    assert finding.text == "upward import of Serve, Stop from high.py"


@pytest.mark.parametrize(
    "source",
    [
        "from sample_kafka.high import (  # a comment (with brackets)\n    Serve,\n)\n",
        "from sample_kafka.high \\\n    import Serve\n",
        "try:\n    pass\nexcept ValueError: from sample_kafka.high import Serve\n",
        "import os; from sample_kafka.high import Serve\n",
        "import os; import sys; from sample_kafka.high import (\n    Serve as S)\n",
        "A = '''\x0c'''\nfrom sample_kafka.high import Serve\n",
        "# a\u2028b\nA = (\n    1,\n)\nfrom sample_kafka.high import Serve\n",
        "\x0cfrom sample_kafka.high import Serve\n",
    ],
)
def test_an_import_is_read_however_it_is_written(tmp_path: Path, source: str) -> None:
    (found,) = layers.measure(_tree(tmp_path, {"sample_kafka/low.py": source}))
    (finding,) = found.findings["sample_kafka"]
    assert finding.text == "upward import of Serve from high.py"
    start = source[: source.index("from sample_kafka")]
    assert finding.line == start.count("\n") + 1


def test_imports_between_packages_have_a_separate_table(tmp_path: Path) -> None:
    (found,) = layers.measure(_tree(tmp_path, {"sample_kafka/low.py": "import sample_spark\n"}))
    assert found.counts == {"packages": 1, "rust/sample": 0, "sample_kafka": 0}
    (finding,) = found.findings["packages"]
    assert finding.text == "upward import of sample_spark from sample_spark/__init__.py"


def test_a_module_may_be_in_a_higher_layer_than_its_package(tmp_path: Path) -> None:
    top = 'modules = ["sample_spark"] }'
    text = LAYERS.replace(top, f'modules = ["sample_kafka/high"] }}, {{ name = "spark", {top}', 1)
    changed = {
        "sample_kafka/high.py": "import sample_spark\n\nclass Serve: ...\n",
        "sample_kafka/low.py": "import sample_spark\n",
    }
    (found,) = layers.measure(_tree(tmp_path, changed, text))
    (finding,) = found.findings["packages"]
    assert finding.path == "sample_kafka/low.py"


def test_file_in_a_folder_without_an_init_file_is_an_error(tmp_path: Path) -> None:
    tree = _tree(tmp_path, {"sample_kafka/part/values.py": ""})
    with pytest.raises(UnreadModuleError, match=r"sample_kafka/part/values.py: .*__init__.py"):
        layers.measure(tree)


def test_a_compiled_module_is_not_its_package(tmp_path: Path) -> None:
    text = "from sample_kafka import Serve, _core\n"
    (found,) = layers.measure(_tree(tmp_path, {"sample_kafka/low.py": text}))
    (finding,) = found.findings["sample_kafka"]
    assert finding.text == "upward import of Serve from __init__.py"


@pytest.mark.parametrize(
    ("changed", "old", "new", "problem"),
    [
        (
            {
                "rust/sample/src/lib.rs": "mod base; mod room; mod new;",
                "rust/sample/src/new.rs": "",
            },
            "",
            "",
            "rust/sample/src/new.rs is in no layer: add `new` to a layer of [rust/sample]: "
            "facade, rooms, values",
        ),
        ({"sample_kafka/new.py": ""}, "", "", "sample_kafka/new.py is in no layer: add `new`"),
        (
            {},
            '["base"]',
            '["base", "room"]',
            "`room` of [rust/sample] is in the layers rooms and values: keep one",
        ),
        ({}, '["base"]', '["base", "gone"]', "`gone` of [rust/sample] covers no file: remove it"),
        ({}, '["rust/sample"]', '["rust/other"]', "rust/sample has no layers: add a table"),
        ({}, "[sample_kafka]", "[sample_kafka]\nlevels = []", "[sample_kafka] needs `layers`"),
        ({}, 'name = "facade"', 'nmae = "facade"', "[rust/sample] has a layer without `name`"),
    ],
)
def test_a_list_that_does_not_fit_the_files_is_an_error(
    changed: dict[str, str], old: str, new: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(LayersError) as raised:
        layers.measure(_tree(tmp_path, changed, LAYERS.replace(old, new, 1)))
    assert f"tools/layers.toml: {problem}" in str(raised.value)


def test_a_python_cycle_is_reported_with_the_import_to_remove(tmp_path: Path) -> None:
    text = "def f() -> None:\n    from sample_kafka.high import Serve\n"
    (found,) = python_modules.measure(_tree(tmp_path, {"sample_kafka/low.py": text}))
    assert found.counts == {"sample_kafka": 1, "sample_spark": 0}
    (finding,) = found.findings["sample_kafka"]
    assert (finding.path, finding.line) == ("sample_kafka/low.py", 2)
    assert finding.text == "cycle sample_kafka/low.py → sample_kafka/high.py → sample_kafka/low.py"
    assert "import of Serve from sample_kafka/high.py is the one to remove" in finding.advice


def test_the_layers_of_this_repository_fit_its_files() -> None:
    (found,) = layers.measure(repository())
    assert {"rust/broker", "rust/log", "pykafka_core/broker", "packages"} <= found.counts.keys()
    for key, count in found.counts.items():
        assert count == len(found.findings[key])
