"""Checks of files with Kafka's DumpLogSegments."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.java import java

FILES_AT_ONCE = 500
"""Number of files in one command, whose list must stay below the 128 KiB of one argument."""


def assert_files_are_sound(folders: Sequence[Path]) -> None:
    """Check that Kafka's own reader finds no fault in any file of logs that were closed cleanly."""
    logs = [str(path) for folder in folders for path in sorted(folder.glob("*.log"))]
    indexes = [
        str(path)
        for folder in folders
        for path in sorted(folder.glob("*index"))
        if path.suffix in {".index", ".timeindex"}
    ]
    assert len(indexes) == 2 * len(logs)
    for files in _batched(logs):
        printed = _dump("--deep-iteration", files)
        assert printed.count("isvalid: true") > 0
        assert "isvalid: false" not in printed
    for files in _batched(indexes):
        printed = _dump("--verify-index-only", files)
        assert "ismatch" not in printed.lower(), printed
        assert "rror" not in printed, printed


def _batched(items: Sequence[str]) -> Iterator[Sequence[str]]:
    return (items[start : start + FILES_AT_ONCE] for start in range(0, len(items), FILES_AT_ONCE))


def _dump(option: str, files: Sequence[str]) -> str:
    return java("kafka.tools.DumpLogSegments", option, "--files", ",".join(files))
