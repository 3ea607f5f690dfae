"""The pages of the Python interface: one for each public module, which mkdocstrings fills in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = "reference/python"
OTHER_MODULES = ("pykafka_core", "pykafka_core.errors", "spark_udfs")
"""Public modules besides those of `pykafka_core` that list their names in ``__all__``."""

_NAMES = re.compile(r"^__all__ = ", re.MULTILINE)


def public_modules(root: Path) -> list[str]:
    """Return the public modules, sorted: their names are the interface of the package."""
    return sorted({*OTHER_MODULES, *_listing_names(root / "pykafka_core")})


def api_page(module: str) -> str:
    """Return the page of a module."""
    return f"# {module}\n\n::: {module}\n"


def _listing_names(package: Path) -> Iterator[str]:
    for path in sorted([*package.glob("[!_]*.py"), *package.glob("*/__init__.py")]):
        if _NAMES.search(path.read_text(encoding="utf-8")):
            name = path.parent.name if path.name == "__init__.py" else path.stem
            yield f"{package.name}.{name}"
