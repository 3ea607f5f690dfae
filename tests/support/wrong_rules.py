"""Wrong rules that tests plant: a model that finds none of them proves nothing."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]


class WrongRules(dict[str, Plant]):
    """By name."""

    def add(self, plant: Plant) -> Plant:
        """A decorator: the function's name is the rule's."""
        self[plant.__name__] = plant
        return plant
