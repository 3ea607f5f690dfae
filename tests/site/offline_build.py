"""Build the site without a network: `python -m tests.site.offline_build ARGUMENTS OF MKDOCS`."""

import runpy
import socket
import sys
from typing import NoReturn


def _refuse(*arguments: object) -> NoReturn:
    raise AssertionError(f"the build of the site connects to another host: {arguments}")


if __name__ == "__main__":
    socket.getaddrinfo = _refuse  # type: ignore[assignment]
    socket.socket.connect = _refuse  # type: ignore[method-assign]
    sys.argv[0] = "mkdocs"
    runpy.run_module("mkdocs", run_name="__main__")
