"""docs/SETTINGS.md has the content of the table."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_page_is_generated_from_the_table() -> None:
    spec = importlib.util.spec_from_file_location("settings_page", ROOT / "tools" / "settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "SETTINGS.md").read_text(encoding="utf-8")
    assert page == module.render(), "run: python tools/settings.py"
