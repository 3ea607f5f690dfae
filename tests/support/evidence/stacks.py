"""Stacks of all threads at the moment of a hang, of this process and of its children.

py-spy reads Python children, jcmd reads JVMs. Where py-spy may not trace (some kernels allow ptrace
to root only), the report has what the kernel says of the child's threads.
"""

import functools
import os
import subprocess
import sys
import sysconfig
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

CHILDREN_MAX = 12
BYTES_MAX = 64 * 1024
COMMAND_MAX = 120
"""Characters of a command line in the title of a section."""
NO_PY_SPY = "py-spy does not read it: is ptrace allowed (/proc/sys/kernel/yama/ptrace_scope)?"
PY_SPY = Path(sysconfig.get_path("scripts")) / "py-spy"


class Process(NamedTuple):
    """A process that descends from this one.

    Attributes:
        state: The letter of ``/proc``: T for a stopped one, Z for one that ended.
    """

    pid: int
    state: str
    command: str
    program: str


_taken: list[tuple[str, str]] = []


def take(bound_s: float) -> None:
    """Keep all stacks for the report of this test; later calls during the test change nothing.

    Never raises: the failure that the stacks explain must be reported in any case.

    Args:
        bound_s: The time limit for all dumps together, in seconds.
    """
    if _taken:
        return
    deadline = time.monotonic() + bound_s
    try:
        _take_all(deadline)
    except Exception:
        _taken.append(("Stacks are incomplete", traceback.format_exc()))


def _take_all(deadline: float) -> None:
    _taken.append(("Stacks of this process", f"{own_stacks()}\n\n{kernel_threads(os.getpid())}"))
    for child in descendants()[:CHILDREN_MAX]:
        title = f"Stacks of process {child.pid} ({child.state}): {child.command[:COMMAND_MAX]}"
        left_s = max(deadline - time.monotonic(), 0.0)
        _taken.append((title, stacks_of(child, left_s)[-BYTES_MAX:]))


def take_on_timeouts(bound_s: float, *, from_s: float) -> None:
    """From now on, take the stacks whenever a wait of `subprocess` for a child times out.

    Args:
        bound_s: See `take`.
        from_s: A shorter timeout is part of a test's scenario and takes nothing; in seconds.
    """
    for name in ("wait", "communicate"):
        _wrap(name, bound_s, from_s)


def _wrap(name: str, bound_s: float, from_s: float) -> None:
    method: Callable[..., object] = getattr(subprocess.Popen, name)

    @functools.wraps(method)
    def taking(*given: object, **named: object) -> object:
        try:
            return method(*given, **named)
        except subprocess.TimeoutExpired as error:
            if error.timeout >= from_s:
                take(bound_s)
            raise

    setattr(subprocess.Popen, name, taking)


def sections() -> list[tuple[str, str]]:
    """Return a title and a text for each process whose stacks were taken during this test."""
    return list(_taken)


def clear() -> None:
    """Forget all stacks at the start of another test."""
    _taken.clear()


def own_stacks() -> str:
    """Return the Python stack of each thread, the calling one's included."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = (
        f"Thread {names.get(ident, '(not started by threading)')}\n"
        + "".join(_without_pytest(traceback.extract_stack(frame)).format())
        for ident, frame in sys._current_frames().items()
    )
    return "\n".join(stacks)


def _without_pytest(stack: traceback.StackSummary) -> traceback.StackSummary:
    """Return the last call of pytest and the calls below it."""
    places = (place for place, frame in enumerate(stack) if "/_pytest/" in frame.filename)
    return traceback.StackSummary.from_list(stack[max(places, default=0) :])


def kernel_threads(pid: int) -> str:
    """Return name, state and kernel function of each thread.

    Those of the Rust core have no Python stack.
    """
    found = [_kernel_thread(task) for task in Path(f"/proc/{pid}/task").glob("*")]
    return "\n".join(["Threads of the kernel (name, state, where it waits)", *sorted(found)])


def _kernel_thread(task: Path) -> str:
    try:
        name = (task / "comm").read_text(errors="replace").strip()
        state = _fields(task)[0]
        where = (task / "wchan").read_text()
        where = where.removeprefix("0")  # 0: it runs, or the kernel hides it.
        return f"  {name:16} {state} {where}".rstrip()
    except OSError as error:  # The thread has ended.
        return f"  {task.name}: {error}"


def descendants() -> list[Process]:
    """Return the children of this process, their children and so on, parents first (Linux)."""
    children = defaultdict[int, list[Process]](list)
    for parent, process in _processes():
        children[parent].append(process)
    found = list(children[os.getpid()])
    for process in found:  # The list grows on the way.
        found += children[process.pid]
    return found


def _processes() -> Iterator[tuple[int, Process]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = _fields(folder)
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            program = (folder / "exe").readlink().name if command else ""
        except OSError:  # It has ended, or belongs to another user.
            continue
        process = Process(int(folder.name), fields[0], " ".join(command.split()), program)
        yield int(fields[1]), process


def _fields(folder: Path) -> list[str]:
    """Return the fields of a process or thread: its state, its parent and so on.

    The name before them may be cut inside a character.
    """
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()


def stacks_of(process: Process, bound_s: float) -> str:
    """Return the stacks of a Python or Java process; for others, the waits of the threads."""
    if process.program.startswith("python"):
        dumped = _output([str(PY_SPY), "dump", "--nonblocking", "--pid", str(process.pid)], bound_s)
        return dumped or f"{NO_PY_SPY}\n{kernel_threads(process.pid)}"
    if process.program == "java":
        dumped = _output(["jcmd", str(process.pid), "Thread.print"], bound_s)
        return dumped or kernel_threads(process.pid)
    return kernel_threads(process.pid)


def _output(command: list[str], bound_s: float) -> str:
    """Return the output of a command; an empty string if it failed or took too long."""
    if bound_s <= 0:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, timeout=bound_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""
