"""The committed image, and the only place where it is replaced."""

from pykafka_core.broker.guarded_log import SURVIVED
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.seam.core import Core
from pykafka_core.broker.seam.projection import Projection
from pykafka_core.broker.storage.snapshots import Snapshots
from pykafka_core.config import BrokerConfigs
from pykafka_core.metadata.image.delta import delta_of
from pykafka_core.metadata.image.draft import Draft
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.quorum.quorum import Committed


class Publisher:
    """Makes committed records the image, and has the core make the same step.

    Args:
        core: Makes the steps.
        projection: Their form.
        node_id: This broker, whose settings count.
        image: As loaded; the core has it.
        faults: Takes note of snapshots that failed.
        snapshots: Writes the image now and then; None where nothing outlives the process.
    """

    def __init__(
        self,
        *,
        core: Core,
        projection: Projection,
        node_id: int,
        image: MetadataImage,
        faults: Faults,
        snapshots: Snapshots | None,
    ) -> None:
        self._core = core
        self._projection = projection
        self._node_id = node_id
        self._image = image
        self._faults = faults
        self._snapshots = snapshots
        self._settings = projection.settings(image)
        self._unsaved_bytes = 0

    @property
    def image(self) -> MetadataImage:
        """The committed image. May be read from any thread: it is replaced, never changed."""
        return self._image

    @property
    def settings(self) -> BrokerConfigs:
        """The broker's settings, as the committed image has altered them."""
        return self._settings

    def publish(self, draft: Draft, committed: Committed, size: int) -> None:
        """Make a draft of the committed image the next one. What this raises ends the broker."""
        image, changes = draft.image, draft.changes
        image.offset = committed.last_offset
        if changes.features:
            image.features_epoch = committed.last_offset
        delta = delta_of(image, changes, self._node_id)
        if delta.settings_changed:
            self._settings = self._projection.settings(image)
        self._projection.report_ignored(delta, self._settings)
        self._core.apply(self._projection.step(delta, self._settings))
        self._image = image
        self._unsaved_bytes += size

    def problems(self, draft: Draft) -> list[str]:
        """What the core could not carry out of a draft if it were committed."""
        try:
            delta = delta_of(draft.image, draft.changes, self._node_id)
            settings = self._settings
            if delta.settings_changed:
                settings = self._projection.settings(draft.image)
            step = self._projection.settings_of(delta, settings)
            return [] if step is None else self._core.check(step)
        except SURVIVED as fault:
            self._faults.caught("the check of a batch", fault)
            return [f"they cannot be checked: {fault}"]

    def note_commits(self) -> None:
        """Let a snapshot begin if enough was committed; after the answers, as nobody waits for it."""
        size, self._unsaved_bytes = self._unsaved_bytes, 0
        snapshots = self._snapshots
        if snapshots is not None and size:
            self._faults.guard("a snapshot", lambda: snapshots.committed(self._image, size))

    def write_snapshot_if_due(self) -> None:
        """What has to be done now and then, when nothing is committed for long."""
        if self._snapshots is not None:
            self._snapshots.write_if_due(self._image)
