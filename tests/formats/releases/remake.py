"""``python -m tests.formats.releases.remake``: Kafka writes and reads the partitions again."""

import json
import shutil
import tempfile
from pathlib import Path

from tests.formats.damaged.reference import Kafka, as_text
from tests.formats.legacy.write import carry_out
from tests.formats.releases.corpus import DATA, EXPECTED, HERE
from tests.formats.releases.plans import plans


def read(data: Path) -> dict[str, str]:
    """The records that Kafka reads in each partition directory."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch, Kafka() as kafka:
        for folder in sorted(data.iterdir()):
            clean, recovered = kafka.answers(folder, Path(scratch))
            assert clean.error is None
            assert clean.rows == recovered.rows
            found[folder.name] = as_text(clean.rows)
    return found


def main() -> None:
    """Replace ``data`` and ``expected.json``."""
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    carry_out(HERE, DATA, plans())
    EXPECTED.write_text(json.dumps(read(DATA), indent=1) + "\n")


if __name__ == "__main__":
    main()
