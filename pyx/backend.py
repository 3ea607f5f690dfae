"""The in-tree build backend: compile `pyx/` with Cython, then let maturin build the rest.

`python pyx/backend.py` compiles in place; `CYTHON_CHECKS=1` turns bounds checks on.
"""

import os
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import maturin
from maturin import (  # noqa: F401  (the hooks that pass through unchanged)
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parent.parent


def switch_mode(mode: str) -> bool:
    """Return whether the last build was of another mode; file times cannot."""
    stamp = ROOT / "build" / "cython-mode"
    changed = not stamp.exists() or stamp.read_text() != mode
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(mode)
    return changed


def compile_pyx() -> None:
    """Compile every `pyx/NAME.pyx` into `pykafka_core/_NAME.*.so`, in place."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    os.chdir(ROOT)
    checked = os.environ.get("CYTHON_CHECKS") == "1"
    extensions = [
        Extension(f"pykafka_core._{p.stem}", [str(p)], extra_compile_args=["-O2", "-g0"])
        for p in sorted(Path("pyx").glob("*.pyx"))
    ]
    if not extensions:
        return
    modules = cythonize(
        extensions,
        build_dir="build/cython-checked" if checked else "build/cython",
        include_path=[".", "pyx"],
        compiler_directives={"boundscheck": checked, "wraparound": False},
    )
    command: Any = Distribution({"name": "pykafka_core", "ext_modules": modules}).get_command_obj(
        "build_ext"
    )
    command.inplace, command.build_temp = True, "build/cython-objects"
    command.force = switch_mode("checked" if checked else "fast")
    command.ensure_finalized()
    command.run()


@contextmanager
def only_this_interpreter() -> Iterator[None]:
    """Hide the modules compiled for other interpreters: maturin would pack them too."""
    package, suffix = ROOT / "pykafka_core", sysconfig.get_config_var("EXT_SUFFIX")
    foreign = [file for file in package.glob("_*.so") if not file.name.endswith(suffix)]
    with TemporaryDirectory(dir=ROOT / "build") as aside:
        for file in foreign:
            file.rename(Path(aside, file.name))
        try:
            yield
        finally:
            for file in foreign:
                Path(aside, file.name).rename(file)


def build_wheel(directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """PEP 517: Cython's modules first, then maturin packs everything."""
    compile_pyx()
    with only_this_interpreter():
        return str(maturin.build_wheel(directory, config_settings, metadata_directory))


def build_editable(
    directory: str, config_settings: Any = None, metadata_directory: Any = None
) -> str:
    """PEP 660: like `build_wheel`, in place."""
    compile_pyx()
    return str(maturin.build_editable(directory, config_settings, metadata_directory))


if __name__ == "__main__":
    compile_pyx()
