"""A program whose forked child ends with the interpreter: `exiting_program.py WHAT PATH`.

WHAT is ``broker``, ``log`` or ``cluster``. It prints whether the child changed a file.
"""

import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from pykafka_core import Broker, Cluster
from pykafka_core.log import Log


def opened(what: str, path: Path) -> tuple[AbstractContextManager[object], Path]:
    """Return an open object, and the folder of its files."""
    if what == "broker":
        broker = Broker(path)
        broker.create_topic("orders", partitions=1)
        return broker, path
    if what == "log":
        log = Log.open(path, durability="os")
        log.append([(None, b"value")])
        return log, path
    cluster = Cluster(1)
    folder = cluster.brokers[0].data_dir
    assert folder is not None
    return cluster, folder.parent


def contents(folder: Path) -> dict[Path, bytes]:
    """Return the files, without the checkpoints, which the parent writes periodically."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if "-checkpoint" not in path.name}


def main() -> None:
    """Fork within the block, so that the child also leaves the block."""
    owner, folder = opened(sys.argv[1], Path(sys.argv[2]))
    with owner:
        before = contents(folder)
        child = os.fork()
        if child == 0:
            print("child", flush=True)
            return
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        now = contents(folder)
        changed = [
            str(path) for path in before.keys() | now.keys() if before.get(path) != now.get(path)
        ]
        print(*changed or ["unchanged"], flush=True)


main()
