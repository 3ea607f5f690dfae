"""The tests of this folder need no real syncs.

A crash is an exception, and `files.Power` simulates a power cut from the calls of ``os.fsync``.
"""

import os

import pytest


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace ``os.fsync``: on a busy disk, thousands of syncs take minutes."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
