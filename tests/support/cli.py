"""The command line within this process."""

import pytest

from pykafka_core.cli import main


def run(*arguments: object) -> int:
    """Exit code of ``pykafka-core ARGUMENTS``."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code
