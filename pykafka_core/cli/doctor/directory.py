"""The checks of a data directory: its lock, its content and its file system.

The checks change nothing, except that they create a missing ``.lock``. This module never opens that
file: on a kernel without locks of open file descriptions, closing its descriptor would release the
lock of a broker in this process.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from pykafka_core._core import Repair
from pykafka_core.broker.start.lost_metadata import find_lost
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.identity import IdentityError
from pykafka_core.broker.storage.partition_identity import other_partition
from pykafka_core.cli.file_systems import READ_ONLY_ADVICE, is_read_only
from pykafka_core.cli.files.repair import (
    compacted_of,
    look_at,
    stored_metadata,
    what_is_wrong,
)
from pykafka_core.errors import LocalError, MetadataError, StorageLockedError
from pykafka_core.metadata.feature_levels import unsupported
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.types import id_text

from .finding import Finding, ok, problem, warning
from .processes import Holder, command_of, lock_holder

FREE_BYTES_LOW = 1024**3
"""The default size of one segment, ``log.segment.bytes``."""
FREE_BYTES_NONE = 64 * 1024**2
_RESTORE = "restore it from a backup, or start with another directory"


def check_directory(path: Path) -> Iterator[Finding]:
    """Yield the findings about a directory, which may not exist."""
    if not path.exists():
        yield from _check_parent(path)
        return
    if not path.is_dir():
        advice = "choose a directory with --data-dir"
        yield problem("directory", f"{path} is not a directory", advice)
        return
    if is_read_only(path):
        yield problem("permissions", f"{path} is on a read-only file system", READ_ONLY_ADVICE)
        return
    denied = _first_denied(path)
    if denied is not None:
        advice = f"run as its owner, or give it to this user: chown -R {_user()} {path}"
        yield problem("permissions", f"{denied} cannot be read and written by {_user()}", advice)
        return
    yield ok("permissions", f"{path} can be read and written")
    yield _check_space(path)
    identity = _check_identity(path)
    yield identity
    if identity.advice:
        yield from _check_registered(path)
        return
    yield from _check_content(path)


def _check_parent(path: Path) -> Iterator[Finding]:
    parent = next(one for one in path.absolute().parents if one.exists())
    if os.access(parent, os.W_OK | os.X_OK):
        yield ok("directory", f"{path} does not exist; a broker creates it")
        yield _check_space(parent)
    elif is_read_only(parent):
        text = f"{path} cannot be created: {parent} is on a read-only file system"
        yield problem("directory", text, READ_ONLY_ADVICE)
    else:
        advice = "create it as another user, or choose another one with --data-dir"
        yield problem("directory", f"{path} cannot be created: {parent} is not writable", advice)


def _first_denied(path: Path) -> Path | None:
    """Return the first directory or file without access for this user; there are two levels."""
    files = os.R_OK | os.W_OK
    if not os.access(path, files | os.X_OK):
        return path
    for entry in _entries(path):
        if _is_denied(entry, files | (os.X_OK if entry.is_dir() else 0)):
            return entry
        if entry.is_dir():
            denied = next((one for one in _entries(entry) if _is_denied(one, files)), None)
            if denied is not None:
                return denied
    return None


def _entries(directory: Path) -> list[Path]:
    """Return the sorted entries of a directory, or [] if a running broker has just deleted it."""
    with suppress(FileNotFoundError):
        return sorted(directory.iterdir())
    return []


def _is_denied(path: Path, wanted: int) -> bool:
    """Report whether access fails to a file that a running broker has not just replaced."""
    return not os.access(path, wanted) and os.path.lexists(path) and not os.access(path, wanted)


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may have no entry for the user
        return str(os.geteuid())


def _check_space(path: Path) -> Finding:
    usage = shutil.disk_usage(path)
    text = f"{usage.free / 1024**2:,.0f} MiB of {usage.total / 1024**2:,.0f} are free"
    advice = "delete topics or shorten their retention, or move the directory to a larger disk"
    if usage.free < FREE_BYTES_NONE:
        return problem("space", text, advice)
    if usage.free < FREE_BYTES_LOW:
        return warning("space", f"{text}: less than one segment of 1 GiB", advice)
    return ok("space", text)


def _check_identity(path: Path) -> Finding:
    try:
        identity = DataDirectory(path).identity()
    except IdentityError as error:
        return problem("identity", error.what, error.advice)
    except (LocalError, OSError) as error:
        return problem("identity", str(error), _RESTORE)
    if identity is None:
        return ok("identity", "new: a broker creates a new cluster")
    return ok("identity", f"cluster {identity.cluster_id}, node {identity.node_id}")


def _check_registered(path: Path) -> Iterator[Finding]:
    """Yield the ids that the metadata has registered: a lost meta.properties needs them."""
    with (
        suppress(LocalError, ValueError),
        closing(Repair(path)),
        stored_metadata(path) as (image, _),
    ):
        for node_id, broker in image.brokers.items():
            ids = ", ".join(id_text(directory) for directory in broker.directories) or "unknown"
            yield ok("metadata", f"node.id={node_id} is registered with directory.id={ids}")


def _check_content(path: Path) -> Iterator[Finding]:
    """Yield findings about the metadata and the logs, if no broker has them open."""
    try:
        with closing(Repair(path)) as core:
            yield ok("lock", "no broker has it open")
            yield from _check_logs(core, path)
    except StorageLockedError:
        yield _locked(path)
    except LocalError as error:
        yield problem("lock", str(error), "check the path and its permissions")


def _locked(path: Path) -> Finding:
    holder = lock_holder(path)
    who = "another process" if holder is None else str(holder)
    if holder == Holder(os.getpid()):
        who = "this process"
    elif holder is not None and holder.process is not None:
        who += f" ({command_of(holder.process)})"
    advice = "check it with --bootstrap-server, or stop it so that doctor can read every batch"
    return warning("lock", f"{path} is in use by {who}: its logs were not read", advice)


def _check_logs(core: Repair, path: Path) -> Iterator[Finding]:
    try:
        with stored_metadata(path) as (image, log):
            lost = find_lost(DataDirectory(path), image, log)
    except MetadataError as error:
        advice = "start the version that wrote it: another Kafka may write records that this one cannot read"
        yield problem("metadata", str(error), advice)
        return
    except LocalError as error:
        yield problem("metadata", str(error), f"see `pykafka-core repair {path}`")
        return
    if lost is None:
        yield ok("metadata", f"{len(image.topics.by_name):,} topics, which this version can read")
    else:
        yield problem("metadata", *lost)
    yield from _check_node(path, image)
    foreign = unsupported(image.features)
    if foreign is not None:
        text = (
            f"{foreign.text}: a node of a cluster cannot start; a single broker starts without them"
        )
        yield warning("features", text, foreign.advice)
    partitions = core.partitions()
    for partition in partitions:
        found = other_partition(partition)
        if found is not None:
            text = f"{partition.name} has the files of partition {found} of its topic"
            yield problem("logs", text, "restore its own files, or move it away")
    cuts = look_at(core, partitions, compacted_of(partitions, image))
    for cut in cuts:
        advice = f"see what `pykafka-core repair {cut.partition}` would cut"
        text = f"{cut.partition.name}: {what_is_wrong(cut)}"
        if cut.damage is None:
            yield warning("logs", text, "no action needed: the next start cuts it")
        else:
            yield problem("logs", text, advice)
    if len(cuts) < len(partitions) or not partitions:
        yield ok("logs", f"{len(partitions) - len(cuts):,} partitions are intact")


def _check_node(path: Path, image: MetadataImage) -> Iterator[Finding]:
    """Yield a problem if the metadata has registered this directory for another node."""
    identity = DataDirectory(path).identity()
    if identity is None:
        return
    for node_id, broker in image.brokers.items():
        if identity.directory_id in broker.directories and node_id != identity.node_id:
            text = (
                f"meta.properties has node.id={identity.node_id}, and the metadata has registered "
                f"this directory for node {node_id}"
            )
            yield problem("identity", text, f"set node.id={node_id} in {path / 'meta.properties'}")
