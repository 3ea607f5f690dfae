"""Seeds with Kafka's answers, which `make test` compares with our readers without a JVM."""

import json
from pathlib import Path
from typing import Final

from tests.formats.damaged.reference import Answers, loaded

SAMPLE: Final = Path(__file__).resolve().parent / "sample.json"
FOUND: Final = (68, 114)
"""Seeds that found a defect."""


def sample() -> dict[int, Answers]:
    """Kafka's answers by seed."""
    return {int(seed): loaded(facts) for seed, facts in json.loads(SAMPLE.read_text()).items()}
