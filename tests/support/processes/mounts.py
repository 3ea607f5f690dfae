"""Commands that run with a separate small file system, in a mount namespace that ends with them.

Root mounts it directly, other users as root of a user namespace. If neither is allowed, the command
fails, and so does the test: a full disk cannot be tested on a machine without a tmpfs.
"""

import os
from pathlib import Path

_MOUNT = 'mount -t "$0" -o "$1" "$2" "$3"; shift 3; exec "$@"'


def tmpfs(directory: Path, size: str) -> list[str]:
    """Return a command prefix that mounts a tmpfs at ``directory``; ``size`` is for ``mount``."""
    return mounted(directory, "tmpfs", f"size={size}", "tmpfs")


def mounted(directory: Path, kind: str, options: str, source: str) -> list[str]:
    """Return a command prefix that mounts ``source`` at ``directory``."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    return [*unshare, "sh", "-ec", _MOUNT, kind, options, source, str(directory)]
