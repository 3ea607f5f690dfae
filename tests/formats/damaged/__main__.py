"""Read damaged partitions: ``python -m tests.formats.damaged --first 0 --seeds 2000``.

Prints each broken rule and a table. ``--record`` stores Kafka's answers for `make test`.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.formats.damaged.campaign import OUTCOMES, Table, trials
from tests.formats.damaged.damage import KINDS, damaged
from tests.formats.damaged.judge import verdicts
from tests.formats.damaged.reference import Kafka, stored
from tests.formats.damaged.sample import FOUND, SAMPLE


def main() -> int:
    """Return 1 if a rule is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.formats.damaged")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Kafka() as kafka:
        if options.record:
            _record(kafka, Path(folder))
            return 0
        seeds = range(options.first, options.first + options.seeds)
        return _run(kafka, Path(folder), seeds)


def _run(kafka: Kafka, scratch: Path, seeds: range) -> int:
    table, broken = Table(), 0
    for trial in trials(seeds, scratch, lambda _, *paths: kafka.answers(*paths)):
        table.add(trial)
        for text in verdicts(trial):
            broken += 1
            print(f"{trial.damage}\n  {text}", flush=True)
    print(*table.lines(), sep="\n")
    print(f"\nKafka: no error/error; readers: {'/'.join(OUTCOMES)}.")
    print(f"{len(seeds)} damaged partitions, {broken} broken rules.")
    return 1 if broken else 0


def _record(kafka: Kafka, scratch: Path) -> None:
    """Store the answers for a seed of each kind, and for each seed that found something."""
    facts = {}
    for seed in sorted({*range(len(KINDS)), *FOUND}):
        folder = scratch / f"damaged{seed}-0"
        damage = damaged(seed, folder)
        facts[str(seed)] = {"damage": str(damage), **stored(kafka.answers(folder, scratch))}
    lines = ",\n".join(f"{json.dumps(seed)}: {json.dumps(row)}" for seed, row in facts.items())
    SAMPLE.write_text(f"{{{lines}}}\n")


if __name__ == "__main__":
    sys.exit(main())
