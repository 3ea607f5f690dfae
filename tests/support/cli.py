"""The command line within this process."""

import pytest

from pykafka_core.cli import main


def run(*arguments: object) -> int:
    """Run ``pykafka-core ARGUMENTS``; return its exit code."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code
