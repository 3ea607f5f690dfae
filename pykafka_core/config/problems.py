"""What is wrong with settings, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One setting that cannot be used.

    Attributes:
        name: Its Kafka name.
        text: What is wrong.
        advice: What to do.
    """

    name: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.text}: {self.advice}"


class InvalidSettingsError(ValueError):
    """Settings that a broker cannot start with; ``problems`` lists them all."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)
