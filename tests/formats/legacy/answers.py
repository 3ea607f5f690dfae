"""Ask Apache Kafka 4.2.1 about the corpus: fetches, lookups, recovery, compaction, retention.

Three lives of one broker, each with fresh copies of the partition directories:

1. after a clean stop, with files of 2014: Kafka trusts the files;
2. without marker and recovery points, with files of today: Kafka recovers every segment and
   rebuilds its indexes;
3. topics that are compacted, and topics whose records are past `retention.ms`.

The time of a file counts: to Kafka it is the largest timestamp of a segment without timestamps.
"""

import base64
import contextlib
import hashlib
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.peers.brokers import QUICK_TO_START as BROKER_JVM
from bench.peers.brokers import ApacheKafka
from tests.formats.legacy.plans import FIRST_MS
from tests.formats.legacy.write import HERE
from tests.support.java import QUICK_TO_START, classpath
from tests.support.patience import eventually, seconds

Json = dict[str, Any]

BROKER: Final = {
    "log.initial.task.delay.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.cleaner.dedupe.buffer.size": "16777216",
}
KEPT: Final = {"retention.ms": "-1", "index.interval.bytes": "150"}
COMPACTED: Final = KEPT | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
EXPIRED: Final = KEPT | {"retention.ms": "86400000"}
OLD_S: Final = 1_400_000_000
"""The time of files that are older than their records, in seconds."""
NEVER_CLEANED: Final = {"v0-none", "v1-none"}
"""Kafka 4.2.1 fails: the last batch below the active segment is of an old format, and no record of
it stays. `MemoryRecords.filterTo` would write an empty batch, which only format 2 has."""
FETCH_VERSIONS: Final = (4, 12, 16)
BYTES_MAX: Final = 1 << 20


def ask(questions: Json) -> Json:
    """Return the answers of `Ask` about some files or topics."""
    done = subprocess.run(
        ["java", *QUICK_TO_START, "-cp", classpath(HERE / "kafka-4.2.1"), "Ask"],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        timeout=seconds(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: Json = json.loads(done.stdout)
    return answers


def answers(data: Path, scratch: Path) -> dict[str, Json]:
    """Return the JSON that README.md describes, for each partition directory in a folder."""
    names = sorted(path.name.removesuffix("-0") for path in data.iterdir())
    segments = described(data, names)
    questions = {name: _questions(segments[name]) for name in names}
    kafka = ApacheKafka(scratch, BROKER, jvm=BROKER_JVM)
    try:
        _create_topics(kafka, names)
        with _stopped(kafka):
            for name in names:
                _replace(kafka, name, data / f"{name}-0", OLD_S)
        trusted = ask({"bootstrap": kafka.bootstrap, "topics": questions})
        with _stopped(kafka):
            kept = described(kafka.data, names)
            for name in names:
                _replace(kafka, name, data / f"{name}-0")
            (kafka.data / ".kafka_cleanshutdown").unlink()
            (kafka.data / "recovery-point-offset-checkpoint").unlink()
        recovered = ask({"bootstrap": kafka.bootstrap, "topics": questions})
        with _stopped(kafka):
            rebuilt = described(kafka.data, names)
            for name in names:
                _replace(kafka, f"compacted.{name}", data / f"{name}-0")
                _replace(kafka, f"old.{name}", data / f"{name}-0", OLD_S)
                _replace(kafka, f"young.{name}", data / f"{name}-0")
        _wait_until_cleaned(kafka, segments)
        retained = _wait_until_deleted(kafka, names)
        compacted = ask({"bootstrap": kafka.bootstrap, "topics": _plainly(_compacted(names))})
        kafka.halt()
        cleaned = described(kafka.data, _compacted(names))
    finally:
        kafka.stop()
    return {
        name: _facts(
            data / f"{name}-0",
            questions[name]["fetches"],
            trusted[name],
            recovered[name],
            segments=segments[name],
            kept=kept[name],
            rebuilt=rebuilt[name],
        )
        | {
            "after_compaction": None
            if name in NEVER_CLEANED
            else {
                "records": compacted[f"compacted.{name}"]["records"],
                "segments": _without_sizes(cleaned[f"compacted.{name}"]),
            },
            "first_offset_after_retention": {
                age: retained[f"{age}.{name}"] for age in ("old", "young")
            },
        }
        for name in names
    }


def _facts(
    directory: Path,
    fetches: list[list[int]],
    trusted: Json,
    recovered: Json,
    *,
    segments: list[Json],
    kept: list[Json],
    rebuilt: list[Json],
) -> Json:
    """Return the fields that come from the first two lives."""
    return {
        "segments": segments,
        "records": trusted["records"],
        "committed_offsets": [row[0] for row in trusted["committed"]],
        "list_offsets": {
            "old": _without_epochs(trusted["list_offsets"]),
            "young": _without_epochs(recovered["list_offsets"]),
        },
        "fetches": _fetches(directory, fetches, trusted),
        "same_after_recovery": _served(trusted) == _served(recovered),
        "indexes_after_clean_start": _indexes(kept),
        "indexes_after_recovery": _indexes(rebuilt),
    }


def _create_topics(kafka: ApacheKafka, names: list[str]) -> None:
    topics = dict.fromkeys(names, KEPT) | dict.fromkeys(_compacted(names), COMPACTED)
    topics |= dict.fromkeys(_expired(names), EXPIRED)
    ask({"bootstrap": kafka.bootstrap, "create": topics})


def _compacted(names: Iterable[str]) -> list[str]:
    return [f"compacted.{name}" for name in names]


def _expired(names: Iterable[str]) -> list[str]:
    return [f"{age}.{name}" for age in ("old", "young") for name in names]


def _plainly(topics: Iterable[str]) -> Json:
    """Questions without lookups by time and fetches."""
    return {topic: {} for topic in topics}


@contextlib.contextmanager
def _stopped(kafka: ApacheKafka) -> Iterator[None]:
    """Files may be replaced inside; then the broker starts again."""
    kafka.halt()
    yield
    kafka.start()


def _replace(
    kafka: ApacheKafka, topic: str, directory: Path, modified_s: float | None = None
) -> None:
    """Give a topic the files of a directory; keep what names the partition."""
    theirs = kafka.data / f"{topic}-0"
    identity = (theirs / "partition.metadata").read_bytes()
    shutil.rmtree(theirs)
    theirs.mkdir()
    (theirs / "partition.metadata").write_bytes(identity)
    for file in directory.iterdir():
        copy = Path(shutil.copyfile(file, theirs / file.name))
        if modified_s is not None:
            os.utime(copy, (modified_s, modified_s))


def described(folder: Path, names: Iterable[str]) -> dict[str, list[Json]]:
    """The segments of partitions: batches as Kafka's reader finds them, both indexes."""
    logs = {name: sorted((folder / f"{name}-0").glob("*.log")) for name in names}
    batches = ask({"files": [str(log) for some in logs.values() for log in some]})
    return {name: [_segment(log, batches[str(log)]) for log in some] for name, some in logs.items()}


def _segment(log: Path, batches: list[Json]) -> Json:
    base = int(log.stem)
    return {
        "base_offset": base,
        "size": log.stat().st_size,
        "batches": batches,
        "offset_index": [
            [base + relative, position]
            for relative, position in _entries(log.with_suffix(".index"), ">ii")
        ],
        "time_index": [
            [timestamp, base + relative]
            for timestamp, relative in _entries(log.with_suffix(".timeindex"), ">qi")
        ],
        "has_time_index": log.with_suffix(".timeindex").exists(),
    }


def _entries(index: Path, layout: str) -> list[tuple[int, ...]]:
    """The entries of an index file; empty if the file is missing."""
    if not index.exists():
        return []
    data = index.read_bytes()
    return list(struct.iter_unpack(layout, data))


def _indexes(segments: list[Json]) -> list[Json]:
    kept = ("base_offset", "offset_index", "time_index")
    return [{key: segment[key] for key in kept} for segment in segments]


def _without_sizes(segments: list[Json]) -> list[Json]:
    """Compressed sizes depend on what the cleaner's thread compressed before."""
    sizes = ("position", "size")
    return [
        {
            "base_offset": segment["base_offset"],
            "batches": [
                {key: value for key, value in batch.items() if key not in sizes}
                for batch in segment["batches"]
            ],
        }
        for segment in segments
    ]


def _questions(segments: list[Json]) -> Json:
    """Times around those of the records; fetches from the start, inside wrappers, past the end."""
    batches = [batch for segment in segments for batch in segment["batches"]]
    times = sorted({batch["max_timestamp"] for batch in batches} - {-1}) or [FIRST_MS]
    middle = times[len(times) // 2]
    end = batches[-1]["last_offset"] + 1
    inside = [batch["offsets"][-1] for batch in batches if len(batch["offsets"]) > 2]
    sizes = [batches[0]["size"], sum(batch["size"] for batch in batches[:2])]
    fetches = [[version, batches[0]["base_offset"], BYTES_MAX] for version in FETCH_VERSIONS]
    fetches += [[16, 0, 1], [16, 0, sizes[0] + 5], [16, 0, sizes[1]]]
    fetches += [[16, offset, BYTES_MAX] for offset in inside[:2] + inside[-2:]]
    fetches += [[16, offset, 1] for offset in inside[:1]]
    fetches += [[16, end - 1, BYTES_MAX], [16, end, BYTES_MAX], [16, end + 1, BYTES_MAX]]
    return {
        "committed": True,
        "timestamps": [
            *(0, times[0] - 1, times[0], times[0] + 1, times[1 % len(times)]),
            *(middle - 20_000, middle, middle + 1, times[-1], times[-1] + 1),
        ],
        "fetches": fetches,
    }


def _fetches(directory: Path, questions: list[list[int]], answered: Json) -> list[Json]:
    """Which bytes of which file a Fetch returned."""
    rows = []
    for (version, offset, bytes_max), answer in zip(questions, answered["fetches"], strict=True):
        data = base64.b64decode(answer["bytes"])
        row = {"version": version, "offset": offset, "max_bytes": bytes_max, **answer}
        del row["bytes"]
        rows.append(row | {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()})
        rows[-1] |= _place(directory, data)
    return rows


def _place(directory: Path, data: bytes) -> Json:
    """Where in the partition's files these bytes are."""
    for log in sorted(directory.glob("*.log")):
        position = log.read_bytes().find(data)
        if data and position >= 0:
            return {"segment": int(log.stem), "position": position}
    return {"segment": None, "position": None}


def _without_epochs(list_offsets: list[list[Any]]) -> list[list[Any]]:
    """Each start of a broker is another leader epoch."""
    return [row[:3] for row in list_offsets]


def _served(answered: Json) -> Json:
    """The answers that do not depend on the time of the files."""
    return {key: answered[key] for key in ("records", "committed", "fetches")}


def _wait_until_cleaned(kafka: ApacheKafka, segments: Mapping[str, list[Json]]) -> None:
    """The cleaner passed every segment but the active one."""
    wanted = {
        f"compacted.{name}": 0 if name in NEVER_CLEANED else some[-1]["base_offset"]
        for name, some in segments.items()
        if len(some) > 1
    }

    def cleaned() -> bool:
        checkpoint = kafka.data / "cleaner-offset-checkpoint"
        lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
        found = {topic: int(offset) for topic, _, offset in map(str.split, lines)}
        return wanted.items() <= found.items()

    eventually(cleaned, f"the cleaner reached {wanted}")


def _wait_until_deleted(kafka: ApacheKafka, names: list[str]) -> dict[str, int]:
    """The first offsets once two questions agree; retention runs several times between them."""
    before: dict[str, int] = {}
    while True:
        found = ask({"bootstrap": kafka.bootstrap, "topics": _plainly(_expired(names))})
        now = {topic: answer["list_offsets"][0][1] for topic, answer in found.items()}
        if now == before:
            return now
        before = now
