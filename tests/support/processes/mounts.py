"""Commands that run with a small file system of their own, in a mount namespace that ends with them.

Root mounts as it is, anybody else as root of a user namespace. Where neither is allowed the command
fails, and with it the test: a machine that cannot mount a tmpfs cannot show what a full disk does.
"""

import os
from pathlib import Path

_MOUNT = 'mount -t "$0" -o "$1" "$2" "$3"; shift 3; exec "$@"'


def tmpfs(directory: Path, size: str) -> list[str]:
    """Run what follows with a tmpfs of ``size`` (as ``mount`` takes it) at ``directory``."""
    return mounted(directory, "tmpfs", f"size={size}", "tmpfs")


def mounted(directory: Path, kind: str, options: str, source: str) -> list[str]:
    """Run what follows with ``source`` mounted at ``directory``."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    return [*unshare, "sh", "-ec", _MOUNT, kind, options, source, str(directory)]
