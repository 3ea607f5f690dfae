"""Replaces a node's metadata log by a snapshot of the leader.

Theory of operation. The control thread writes the parts to a file as they arrive, without waiting
for the disk. The rest consists of steps; a start can continue after each of them:

1. On a separate thread, the file is validated, read and synced, and gets the name of a snapshot. A
   start that finds a snapshot ahead of the log, or in conflict with it, continues with the next
   step.
2. The log is emptied; it starts at the snapshot's end.
3. Older snapshots are removed.
4. The image from step 1 replaces the previous image.

An invalid snapshot, or one that cannot be written, changes nothing: the error is logged, and it is
fetched again.
"""

from collections.abc import Callable
from functools import partial

from pykafka_core._core import Core
from pykafka_core.broker import native
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.safe_logging import GuardedLogger, never_raise_here
from pykafka_core.broker.storage.snapshot_parts import LoadedSnapshot, SnapshotParts
from pykafka_core.errors import MetadataError, StorageError, error_of
from pykafka_core.quorum.events import StorePart
from pykafka_core.quorum.values import OffsetAndEpoch

_log = GuardedLogger(__name__)


class Installation:
    """Executes the snapshot commands of a replica.

    Used only by the control thread, except `finish`.

    Args:
        core: Has the log.
        completions: Pending restarts of the log.
        parts: The files.
        installed: Called with the snapshot's content once the log is replaced; with None if nothing
            changed.
    """

    def __init__(
        self,
        core: Core,
        completions: Completions,
        parts: SnapshotParts,
        installed: Callable[[OffsetAndEpoch, LoadedSnapshot | None], object],
    ) -> None:
        self._core = core
        self._completions = completions
        self._parts = parts
        self._installed = installed
        self._lost: OffsetAndEpoch | None = None
        """A snapshot with a part that could not be written; its later parts are skipped until the
        download restarts."""
        self._thread: native.Thread | None = None
        self._loaded: tuple[OffsetAndEpoch, LoadedSnapshot | BaseException] | None = None
        """Result of the thread that the control thread has not handled yet."""

    def store(self, command: StorePart) -> None:
        """Write a part; `installed` is called if that fails."""
        snapshot_id, position, part = command
        if position == 0:
            self._lost = None
        elif self._lost == snapshot_id:
            return
        try:
            self._parts.store(snapshot_id, position, part)
        except StorageError as error:
            self._lost = snapshot_id
            self._give_up(snapshot_id, error)

    def install(self, snapshot_id: OffsetAndEpoch) -> None:
        """Replace the log with a fully downloaded snapshot, unless a part of it was reported
        missing.
        """
        if self._lost == snapshot_id:
            return
        self._thread = native.Thread(
            target=self._load, args=(snapshot_id,), name="pykafka-core-snapshot", daemon=True
        )
        self._thread.start()

    def advance(self) -> None:
        """Handle the result of the thread.

        Raises:
            BaseException: A bug in the thread's work.
        """
        if self._loaded is None:
            return
        (snapshot_id, loaded), self._loaded = self._loaded, None
        if isinstance(loaded, LoadedSnapshot):
            token = self._completions.open(partial(self._on_restarted, snapshot_id, loaded))
            self._core.restart_log(token, METADATA_PARTITION, snapshot_id.offset)
        elif isinstance(loaded, MetadataError | StorageError):
            self._give_up(snapshot_id, loaded)
        else:
            raise loaded

    def finish(self) -> None:
        """Wait for the thread; no more work is started."""
        if self._thread is not None:
            self._thread.join()

    def _load(self, snapshot_id: OffsetAndEpoch) -> None:
        """Runs on a new thread for each snapshot."""
        never_raise_here()
        loaded: LoadedSnapshot | BaseException
        try:
            loaded = self._parts.load(snapshot_id)
        except BaseException as error:
            loaded = error
        self._loaded = snapshot_id, loaded
        self._core.wake()

    def _give_up(self, snapshot_id: OffsetAndEpoch, error: BaseException) -> None:
        end, epoch = snapshot_id
        text = "the leader's metadata snapshot %d-%d was not installed, and is fetched again: %s"
        _log.error(text, end, epoch, error)
        self._installed(snapshot_id, None)

    def _on_restarted(
        self, snapshot_id: OffsetAndEpoch, loaded: LoadedSnapshot, completed: Completed
    ) -> None:
        end, epoch = snapshot_id
        if completed.error_code:
            name = error_of(completed.error_code).name
            raise StorageError(f"the metadata log cannot begin at {end} after a snapshot: {name}")
        self._parts.remove_before(end)
        _log.info("the metadata log begins at %d: snapshot %d-%d was installed", end, end, epoch)
        self._installed(snapshot_id, loaded)
