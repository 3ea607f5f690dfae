"""Wall clocks of running nodes that jump, as after a manual correction; monotonic clocks do not.

Each process gets its own clock from a library that is loaded before libc (`shifted_clock.c`,
compiled here): it adds the current number in a file. Python, Rust's standard library and the JVM
all use libc.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("shifted_clock.c")
JUMP_S = 2700
"""Less than the hour that a record may be ahead of a broker's clock.

The limit is ``message.timestamp.after.max.ms``.
"""
NS_PER_S = 1_000_000_000


class Clocks:
    """One clock for each node.

    Args:
        folder: For the library and the files.
        nodes: All nodes.
    """

    def __init__(self, folder: Path, nodes: tuple[int, ...]) -> None:
        self._library = folder / "shifted_clock.so"
        command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        self._files = {node: folder / f"{node}.clock" for node in nodes}
        for node in nodes:
            self.shift(node, 0)

    def environment(self, node: int) -> Mapping[str, str]:
        """Return the environment variables of the node's process."""
        return {"LD_PRELOAD": str(self._library), "FAULTS_CLOCK": str(self._files[node])}

    def shift(self, node: int, seconds: float) -> None:
        """Shift a node's clock by this from now on, whether the node runs or not."""
        shift = int(seconds * NS_PER_S).to_bytes(8, "little", signed=True)
        # Written in place, because the file is mapped; eight bytes at once.
        file = os.open(self._files[node], os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, shift, 0)
        finally:
            os.close(file)
