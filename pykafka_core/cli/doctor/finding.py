"""What the doctor says: one line about one thing."""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How bad it is."""

    OK = "OK"
    WARNING = "WARNING"
    """A broker works; something about it is dangerous, or will not do for long."""
    PROBLEM = "PROBLEM"
    """A broker does not start, or does not serve all that it has."""


class Finding(NamedTuple):
    """One thing that was looked at; ``advice`` is what to do, empty where nothing is."""

    level: Level
    subject: str
    text: str
    advice: str = ""


def ok(subject: str, text: str) -> Finding:
    """Nothing is wrong with it."""
    return Finding(Level.OK, subject, text)


def warning(subject: str, text: str, advice: str) -> Finding:
    """It works, but somebody should know."""
    return Finding(Level.WARNING, subject, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(Level.PROBLEM, subject, text, advice)
