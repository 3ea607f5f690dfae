"""Environments that contain only a wheel and its dependencies, and the wheel's programs."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.costs import charge
from tests.support.patience import seconds
from tests.support.processes.ports import free_ports
from tests.support.spark.drivers import clean_environment

INSTALL_S = seconds(600)


def make_environment(folder: Path, *requirements: str) -> Path:
    """Create an environment with these requirements and their dependencies; return the folder of
    its commands.
    """
    charge("wheel")
    venv.create(folder, symlinks=True, with_pip=False)
    pip = sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")
    run(*pip, "install", "-q", *requirements, folder=folder)
    return folder / "bin"


def run(*command: str, folder: Path, scripts: Path | None = None, address: str = "") -> str:
    """Run a command; return its stdout. If it fails, its stderr is in the assertion."""
    environment = clean_environment()
    if scripts is not None:
        environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"
    if address:
        environment["PYKAFKA_BOOTSTRAP_SERVERS"] = address
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def serve(scripts: Path, folder: Path, command: str) -> tuple[subprocess.Popen[str], str]:
    """Start ``serve`` or ``cluster up`` on separate ports; return the process and its address."""
    if " cluster up " in command:
        command += f" --port {free_ports()}"
    program, *arguments = command.replace("127.0.0.1:9092", "127.0.0.1:0").split()
    server = subprocess.Popen(
        [scripts / program, *arguments],
        cwd=folder,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    word, address, *_ = server.stdout.readline().split()
    assert word == "ready"
    return server, address


def stop(server: subprocess.Popen[str] | None) -> None:
    """End the server, if there is one."""
    if server is not None:
        server.terminate()
        server.communicate(timeout=INSTALL_S)


@contextmanager
def serving(scripts: Path, folder: Path) -> Iterator[str]:
    """Run a broker with its data in ``folder``; yield its address."""
    server, address = serve(
        scripts, folder, "pykafka-core serve --listen 127.0.0.1:9092 --data data"
    )
    try:
        yield address
    finally:
        stop(server)
