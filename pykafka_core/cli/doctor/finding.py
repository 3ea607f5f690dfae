"""A finding of the doctor: one line about one subject."""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """The severity of a finding."""

    OK = "OK"
    WARNING = "WARNING"
    """The broker works, but there is a risk, or a limit that it will reach."""
    PROBLEM = "PROBLEM"
    """The broker does not start, or does not serve all its data."""


class Finding(NamedTuple):
    """The result of one check; ``advice`` is empty if no action is needed."""

    level: Level
    subject: str
    text: str
    advice: str = ""


def ok(subject: str, text: str) -> Finding:
    """Return a finding that everything is right."""
    return Finding(Level.OK, subject, text)


def warning(subject: str, text: str, advice: str) -> Finding:
    """Return a finding of a risk in a working broker."""
    return Finding(Level.WARNING, subject, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    """Return a finding of something that does not work."""
    return Finding(Level.PROBLEM, subject, text, advice)
