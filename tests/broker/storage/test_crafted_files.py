"""Files of any type at the paths of the control plane's files lead to a typed error with the path,
and nothing outside the directory is changed.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka_core import Broker
from pykafka_core.broker.start.loading import apply_snapshot, formatted_records
from pykafka_core.broker.storage.data_directory import (
    BOOTSTRAP,
    METADATA_DIRECTORY,
    DataDirectory,
)
from pykafka_core.broker.storage.identity import Identity, StoredIdentity, encode_identity
from pykafka_core.broker.storage.reserve import RESERVE_FILE
from pykafka_core.errors import LocalError, MetadataError, StorageError
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.records.bootstrap import bootstrap_records
from pykafka_core.metadata.records.snapshot import encode_snapshot
from pykafka_core.protocol.messages import Message, PartitionRecord, TopicRecord
from pykafka_core.quorum.values import ElectionState
from tests.support.patience import seconds

QUORUM_STATE = f"{METADATA_DIRECTORY}/quorum-state"
SNAPSHOT = f"{METADATA_DIRECTORY}/{0:020}-{0:010}.checkpoint"
READ = ["meta.properties", QUORUM_STATE, SNAPSHOT, BOOTSTRAP]
SECRET = b"somebody else's"
IDENTITY = Identity("2EmZYW-FRB2ZlZqcy_R5Fw", 1, bytes(range(16)))
STATE = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,"data_version":0}'
)
WHOLE = {
    "meta.properties": encode_identity(IDENTITY),
    QUORUM_STATE: STATE,
    SNAPSHOT: encode_snapshot(bootstrap_records(), 1, 1000),
    BOOTSTRAP: encode_snapshot(bootstrap_records(), 0, 1000),
}


def fifo(path: Path, _: Path) -> None:
    os.mkfifo(path)


def link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def directory(path: Path, _: Path) -> None:
    path.mkdir()


def listener(path: Path, _: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket must be short
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(path.name)
    os.chdir(here)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    (data / METADATA_DIRECTORY).mkdir(parents=True)
    DataDirectory(data).create(IDENTITY)
    return data


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A file that must not be changed."""
    file = tmp_path / "outside"
    file.write_bytes(SECRET)
    yield file
    assert file.read_bytes() == SECRET


@pytest.mark.timeout(seconds(300))
@pytest.mark.parametrize("put", [fifo, link, directory, listener])
@pytest.mark.parametrize("name", [*READ, RESERVE_FILE])
def test_special_file_in_place_of_a_file_is_an_error_with_its_path(
    data: Path, outside: Path, name: str, put: Callable[[Path, Path], None]
) -> None:
    (data / name).unlink(missing_ok=True)
    put(data / name, outside)
    with pytest.raises(StorageError, match=name):
        Broker(data)
    (data / name).rmdir() if put is directory else (data / name).unlink()
    Broker(data).close()


@pytest.mark.timeout(seconds(300))
@pytest.mark.parametrize("put", [fifo, link])
@pytest.mark.parametrize("name", ["meta.properties.tmp", f"{QUORUM_STATE}.tmp", f"{SNAPSHOT}.part"])
def test_special_file_in_place_of_a_temporary_file_is_replaced(
    data: Path, outside: Path, name: str, put: Callable[[Path, Path], None]
) -> None:
    put(data / name, outside)
    written = DataDirectory(data)
    written.create(IDENTITY)
    written.write_election(ElectionState(3, 1))
    written.write_snapshot(0, 0, WHOLE[SNAPSHOT])
    assert (written.identity(), written.election().epoch) == (StoredIdentity(*IDENTITY), 3)
    assert not os.path.lexists(data / name)


def test_metadata_is_not_written_through_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    data = tmp_path / "data"
    data.mkdir()
    (data / METADATA_DIRECTORY).symlink_to(elsewhere)
    with pytest.raises(StorageError, match=METADATA_DIRECTORY):
        Broker(data)
    assert list(elsewhere.iterdir()) == []


def test_reserve_file_with_a_second_link_is_not_truncated(data: Path, outside: Path) -> None:
    os.link(outside, data / RESERVE_FILE)
    with pytest.raises(StorageError, match="second name"):
        Broker(data)


@pytest.mark.parametrize("name", READ)
def test_file_without_an_end_is_not_read(data: Path, name: str) -> None:
    with open(data / name, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StorageError, match="larger than"):
        Broker(data)


# Properties: every reader, with any bytes.


def read_all(data: Path) -> None:
    """Read all files of a start, in the same order."""
    found = DataDirectory(data)
    found.identity()
    found.election()
    found.snapshots()
    snapshot = found.latest_snapshot()
    if snapshot is not None:
        apply_snapshot(Replay(), snapshot)
    formatted_records(found)


def damaged(whole: bytes) -> st.SearchStrategy[bytes]:
    """Return ``whole`` with some bytes replaced, cut off or inserted."""

    def patched(at: int, size: int, patch: bytes) -> bytes:
        return whole[:at] + patch + whole[at + size :]

    places = st.integers(0, len(whole))
    return st.builds(patched, places, st.integers(0, 40), st.binary(max_size=40))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
states = st.builds(
    lambda epoch, rest: json.dumps({**rest, "leaderEpoch": epoch}).encode(),
    json_values,
    st.dictionaries(st.text(), json_values, max_size=2),
)
names = st.sampled_from(["version", "node.id", "broker.id", "cluster.id", "directory.id", "x"])
values = st.sampled_from(["0", "1", "7", "-1", "99999999999", "\\ud800", "a" * 22]) | st.text()
properties = st.lists(st.builds("{}={}\n".format, names, values), max_size=8).map(
    lambda lines: "".join(lines).encode(errors="surrogatepass")
)
ids = st.binary(min_size=16, max_size=16)
crafted_records: st.SearchStrategy[Message] = st.builds(
    TopicRecord, name=st.text(max_size=300) | st.just("../outside"), topic_id=ids
) | st.builds(PartitionRecord, topic_id=ids, partition_id=st.integers(-(2**31), 2**31 - 1))
contents = {
    "meta.properties": properties,
    QUORUM_STATE: states,
    SNAPSHOT: st.lists(crafted_records, max_size=3).map(lambda r: encode_snapshot(r, 1, 1000)),
    BOOTSTRAP: st.lists(crafted_records, max_size=3).map(lambda r: encode_snapshot(r, 0, 1000)),
}


@pytest.mark.parametrize("name", READ)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_any_bytes_are_read_or_rejected_with_the_path(
    data: Path, name: str, draw: st.DataObject
) -> None:
    content = draw.draw(contents[name] | damaged(WHOLE[name]) | st.binary(max_size=300))
    (data / name).write_bytes(content)
    refusal = None
    try:
        read_all(data)
    except (StorageError, MetadataError) as error:
        refusal = str(error)
    assert refusal is None or name in refusal


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("meta.properties", encode_identity(IDENTITY) + b"version=7\n", "version is '7'"),
        ("meta.properties", b"cluster.id=x\nnode.id=99999999999\n", "node id '99999999999'"),
        (QUORUM_STATE, b'{"leaderEpoch":1e400}', "leaderEpoch"),
        (QUORUM_STATE, b'{"leaderEpoch":9999999999999}', "leaderEpoch"),
        (QUORUM_STATE, b"[" * 60_000, "quorum-state of Kafka"),
        (SNAPSHOT, b"", "header to its footer"),
        (SNAPSHOT, WHOLE[SNAPSHOT][:-1], "header to its footer"),
        (BOOTSTRAP, encode_snapshot([], 0, 0), "no FeatureLevelRecord"),
    ],
)
def test_broker_does_not_start_on_invalid_files(
    data: Path, name: str, content: bytes, match: str
) -> None:
    (data / name).write_bytes(content)
    with pytest.raises(LocalError, match=match) as caught:
        Broker(data)
    assert isinstance(caught.value, StorageError | MetadataError)
    assert str(data / name) in str(caught.value)
