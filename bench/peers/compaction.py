"""Compact a topic here and on Apache Kafka: `python -m bench.peers.compaction --help`.

Both brokers get the same batches, and then settings that make the topic dirty enough. The time is
measured until `cleaner-offset-checkpoint` shows that the topic is clean.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

from bench.data import CODECS, NOW_MS
from bench.peers import raw
from bench.peers.brokers import ApacheKafka, Ours, cpu_seconds, resident_bytes
from bench.peers.work import clock, create_topic, produce_error
from pykafka_core import _core

BATCH_RECORDS, VALUE_BYTES, DISTINCT_BATCHES = 1000, 100, 500
PATIENCE_S = 900
DIRTY = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "1",
    "segment.bytes": str(64 << 20),
}
OFTEN = {"log.cleaner.backoff.ms": "100"}
CHECKPOINT = "cleaner-offset-checkpoint"

Figures = dict[str, float]


def batches(keys: int, compression: str) -> list[bytes]:
    """Return batches of records, each with one of ``keys`` keys."""
    source = Random(1)
    values = [source.randbytes(VALUE_BYTES // 2).hex().encode() for _ in range(1000)]

    def records() -> Iterator[tuple[bytes, bytes]]:
        for _ in range(BATCH_RECORDS):
            yield b"key-%08d" % source.randrange(keys), source.choice(values)

    return [
        _core.build_batch(list(records()), compression=compression, timestamp_default=NOW_MS)
        for _ in range(DISTINCT_BATCHES)
    ]


def fill(bootstrap: str, topic: str, ready: list[bytes], count: int) -> None:
    """Append ``count`` batches, cycling through the encoded ones."""
    frames = [raw.frame(raw.PRODUCE, 1, raw.produce_body(topic, 0, batch)) for batch in ready]
    connection = raw.Raw(bootstrap)
    for begin in range(0, count, len(frames)):
        for response in connection.pipelined(frames[: count - begin], 5):
            assert produce_error(response, topic) == 0, response
    connection.close()


def configure(bootstrap: str, topic: str, settings: dict[str, str]) -> None:
    """Change settings of a topic by IncrementalAlterConfigs."""
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
    )

    entries = [
        ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        for setting, value in settings.items()
    ]
    resource = ConfigResource("topic", topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(30)


def clean_offset(data: Path, topic: str) -> int:
    """Return the end offset of the last compaction, 0 without one."""
    checkpoint = data / CHECKPOINT
    rows = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    return max((int(row.split()[2]) for row in rows if row.split()[0] == topic), default=0)


def segments(folder: Path) -> tuple[int, int]:
    """Return the base offset of the active segment, and the size of all sealed ones."""
    paths = sorted(folder.glob("*.log"))
    return int(paths[-1].stem), sum(path.stat().st_size for path in paths[:-1])


def compact(peer: Ours | ApacheKafka, data: Path, topic: str) -> Figures:
    """Make the topic dirty enough for the cleaner, and wait until it is clean."""
    active, before = segments(data / f"{topic}-0")
    cpu, peak, memory = cpu_seconds(peer.pid), 0, resident_bytes(peer.pid)
    with clock() as seconds:
        configure(peer.bootstrap, topic, {"min.cleanable.dirty.ratio": "0.01"})
        while clean_offset(data, topic) < active:
            assert seconds() < PATIENCE_S, f"{peer.name} has not compacted"
            peak = max(peak, resident_bytes(peer.pid))
            time.sleep(0.01)
    return {
        "MB/s": before / seconds() / 1e6,
        "s": seconds(),
        "CPU s": cpu_seconds(peer.pid) - cpu,
        "MB left": segments(data / f"{topic}-0")[1] / 1e6,
        "MB more resident": max(0, peak - memory) / 1e6,
    }


def show(ours: Figures, kafkas: Figures) -> None:
    """Print a row for each figure."""
    print(f"{'':20}{'pykafka_core':>16}{'Apache Kafka':>16}   ours / Kafka's")
    for name, mine in ours.items():
        ratio = f"{mine / kafkas[name]:.2f}" if kafkas[name] else ""
        print(f"{name:20}{mine:16.4g}{kafkas[name]:16.4g}   {ratio}")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--compression", choices=CODECS, default="none")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    ready = batches(options.keys, options.compression)
    with tempfile.TemporaryDirectory() as made, ExitStack() as running:
        folder = Path(made)
        ours = Ours(folder, "os", config=OFTEN)
        running.callback(ours.stop)
        kafka = ApacheKafka(folder, config=OFTEN)
        running.callback(kafka.stop)
        for number in range(options.rounds):
            figures = []
            for peer, data in ((ours, folder / "os"), (kafka, kafka.data)):
                topic = f"compacted-{number}"
                create_topic(peer.bootstrap, topic)
                configure(peer.bootstrap, topic, DIRTY)
                fill(peer.bootstrap, topic, ready, options.records // BATCH_RECORDS)
                print(f"{peer.name}: filled", file=sys.stderr, flush=True)
                figures.append(compact(peer, data, topic))
            show(*figures)


if __name__ == "__main__":
    main()
