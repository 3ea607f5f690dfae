"""The committed partitions of format 2, with the records that Apache Kafka 4.2.1 reads in them."""

import json
from pathlib import Path
from typing import Final

from tests.formats.damaged.reference import of_text
from tests.formats.damaged.results import Rows

HERE: Final = Path(__file__).resolve().parent
DATA: Final = HERE / "data"
EXPECTED: Final = HERE / "expected.json"


def expected() -> dict[str, Rows]:
    """The records of each partition, by the name of its directory."""
    facts: dict[str, str] = json.loads(EXPECTED.read_text())
    return {name: of_text(text) for name, text in facts.items()}
