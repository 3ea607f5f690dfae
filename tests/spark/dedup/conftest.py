"""No test of the folder needs the disk's own syncs.

A crash is an exception, and `files.Power` simulates a power cut from the calls of ``os.fsync``.
"""

import os

import pytest


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace ``os.fsync``: thousands of syncs take minutes on a disk that others write to."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
