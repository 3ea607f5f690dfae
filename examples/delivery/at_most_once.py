"""At most once: first the position, then the effect. A crash between them loses records.

Run: python at_most_once.py HOST:PORT DIRECTORY [SECONDS]. It reads the topic "payments", appends
each record to DIRECTORY/payments.txt, and ends SECONDS (5) after the last one.
"""

import os
import sys
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition


def main(bootstrap: str, directory: Path, idle_s: float = 5) -> None:
    """Consume until nothing comes any more."""
    position, payments = directory / "position.txt", directory / "payments.txt"
    settings = {"bootstrap.servers": bootstrap, "group.id": "-", "enable.auto.commit": False}
    consumer = Consumer(settings)
    start = int(position.read_text()) if position.exists() else 0
    consumer.assign([TopicPartition("payments", 0, start)])
    while records := consumer.consume(2, timeout=idle_s):
        values = [value_of(record) for record in records]
        save(
            position, records[-1].offset() + 1
        )  # From here on these records are never read again …
        for value in values:
            append(payments, value)  # … and the ones not written yet when it dies here are lost.
    consumer.close()


def value_of(record) -> str:
    """The record's text; raises an error of the client."""
    if record.error():
        raise RuntimeError(record.error())
    return record.value().decode()


def save(path: Path, offset: int) -> None:
    """Replace the file as one step: after a crash it is the old one or the new one."""
    new = path.with_suffix(".new")
    new.write_text(str(offset))
    os.replace(new, path)


def append(path: Path, line: str) -> None:
    """The effect, in a world without transactions."""
    with path.open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(float, sys.argv[3:]))
