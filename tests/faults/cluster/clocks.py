"""Wall clocks of nodes that jump while they run; their monotonic clocks do not, as after a correction by hand.

A process gets its own by a library that is loaded before libc (`shifted_clock.c`, compiled here): it adds what a file
holds at that moment. Python, Rust's standard library and the JVM all ask libc.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("shifted_clock.c")
JUMP_S = 2700
"""Below the hour by which a record's timestamp may be ahead of a broker (``message.timestamp.after.max.ms``)."""
NS_PER_S = 1_000_000_000


class Clocks:
    """One for each node.

    Args:
        folder: Where the library and the files go.
        nodes: Those that there are.
    """

    def __init__(self, folder: Path, nodes: tuple[int, ...]) -> None:
        self._library = folder / "shifted_clock.so"
        command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        self._files = {node: folder / f"{node}.clock" for node in nodes}
        for node in nodes:
            self.shift(node, 0)

    def environment(self, node: int) -> Mapping[str, str]:
        """What its process is started with."""
        return {"LD_PRELOAD": str(self._library), "FAULTS_CLOCK": str(self._files[node])}

    def shift(self, node: int, seconds: float) -> None:
        """Have a node's clock be off by this from now on, whether it runs or not."""
        shift = int(seconds * NS_PER_S).to_bytes(8, "little", signed=True)
        # Written in place, as it is mapped; eight bytes at once.
        file = os.open(self._files[node], os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, shift, 0)
        finally:
            os.close(file)
