"""``python -m tests.formats.legacy.remake``: write the corpus again and ask Apache Kafka."""

import shutil
import tempfile
from pathlib import Path

from tests.formats.legacy.answers import answers
from tests.formats.legacy.corpus import DATA, EXPECTED, dumped
from tests.formats.legacy.write import write


def main() -> None:
    """Replace ``data`` and ``expected``."""
    for folder in (DATA, EXPECTED):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    write(DATA)
    with tempfile.TemporaryDirectory() as scratch:
        for name, facts in answers(DATA, Path(scratch)).items():
            (EXPECTED / f"{name}.json").write_text(dumped(facts))


if __name__ == "__main__":
    main()
