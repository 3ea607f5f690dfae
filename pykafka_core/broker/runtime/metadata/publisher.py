"""The committed image, and the only place where it is replaced: by applying committed batches.

The proposer of a batch does not matter. The images of a leader, of a follower and of the next start
all result from the same log.
"""

from collections.abc import Callable, Mapping
from functools import partial

from pykafka_core._core import Core
from pykafka_core.broker.core_bridge.projection import Projection
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.safe_logging import SURVIVED
from pykafka_core.broker.storage.snapshots import Snapshots
from pykafka_core.config import BrokerConfigs
from pykafka_core.errors import MetadataError
from pykafka_core.handlers.outcome import Work, run_to_end
from pykafka_core.metadata.image.delta import Delta, delta_in_slices, whole, with_all_topics
from pykafka_core.metadata.image.draft import Changes
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.proposed import ProposedImage
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.quorum.quorum import Committed


class Publisher:
    """Applies committed batches to the image, and the same steps to the core.

    Args:
        core: Applies the steps.
        projection: Creates the steps.
        node_id: This broker, whose settings are used.
        replay: All records committed so far; owned by the publisher from now on.
        faults: Records faults of single items.
        snapshots: Writes the image to snapshots; None for a broker in memory.
    """

    def __init__(
        self,
        *,
        core: Core,
        projection: Projection,
        node_id: int,
        replay: Replay,
        faults: Faults,
        snapshots: Snapshots | None,
    ) -> None:
        self._core = core
        self._projection = projection
        self._node_id = node_id
        self._replay = replay
        self._image, _ = replay.take()
        self._faults = faults
        self._snapshots = snapshots
        self._settings = projection.settings(self._image)
        self._unsaved_bytes = 0
        self.is_begun = False
        """Whether the core has the whole image; batches before that are only replayed."""
        self.followers: list[Callable[[MetadataImage, Mapping[str, bytes]], object]] = []
        """Called with each committed image that the core has applied, and the ids of deleted topics
        by name."""

    @property
    def image(self) -> MetadataImage:
        """The committed image. Any thread may read it: it is replaced, never changed."""
        return self._image

    @property
    def in_transaction(self) -> bool:
        """Whether the committed records end inside a metadata transaction (KIP-868)."""
        return self._replay.in_transaction

    @property
    def settings(self) -> BrokerConfigs:
        """The broker's settings, with the changes in the committed image."""
        return self._settings

    def publish_whole(self) -> None:
        """Apply the whole image to the core: the first step.

        Raises:
            MetadataError: The metadata has values that the core cannot use.
        """
        self.is_begun = True
        delta = whole(self._image)
        run_to_end(self._projection.report_ignored(delta, self._settings))
        try:
            self._core.apply(self._projection.whole(delta, self._settings))
        except (ValueError, OverflowError) as error:
            raise MetadataError(f"the metadata says what cannot be served: {error}") from error

    def publish(self, committed: Committed) -> Work[None]:
        """Apply a committed batch to the last image. Exceptions end the broker.

        A large step is applied in pieces: the core serves each piece at once, and this process sees
        the new image after all.
        """
        for place, record in enumerate(committed.records, committed.first_offset):
            self._replay.apply([(place, record)])
            yield
        self._replay.apply_batch(committed.first_offset, committed.last_offset, ())
        image, changes = self._replay.take()
        yield from self._step(image, changes)

    def replace(self, replay: Replay) -> Work[None]:
        """Continue with the image of a snapshot.

        The difference is one step, for the core and for `followers`.
        """
        # Imported only here, because a single broker does not need it.
        from pykafka_core.metadata.image.difference import difference

        self._replay = replay
        image, _ = replay.take()
        changes = yield from difference(self._image, image)
        yield from self._step(image, changes)

    def _step(self, image: MetadataImage, changes: Changes) -> Work[None]:
        if not self.is_begun:
            self._image, self._settings = image, self._projection.settings(image)
            return
        changes.features |= self._projection.has_new_kraft_version
        delta = yield from delta_in_slices(image, changes, self._node_id)
        inherited = yield from self._inherited(delta, image)
        yield from self._projection.report_ignored(delta, self._settings)
        for piece in inherited.pieces():
            self._core.apply(self._projection.step(piece, self._settings))
            yield
        before, self._image = self._image, image
        known = (before.topics.by_id.get(topic_id) for topic_id in delta.deleted)
        deleted = {topic.name: topic.topic_id for topic in known if topic is not None}
        for follow in self.followers:
            self._faults.guard("an update after a metadata change", partial(follow, image, deleted))

    def _inherited(self, delta: Delta, image: MetadataImage) -> Work[Delta]:
        """Apply changed settings of the broker.

        Topics that inherit a changed setting are part of the step.
        """
        if not delta.settings_changed:
            return delta
        before, self._settings = self._settings, self._projection.settings(image)
        if before.log_defaults() == self._settings.log_defaults():
            return delta
        return (yield from with_all_topics(delta, image))

    def problems(self, proposed: ProposedImage) -> Work[list[str]]:
        """Return the problems that the core would have with a proposed image after its commit."""
        try:
            delta = yield from delta_in_slices(proposed.image, proposed.changes, self._node_id)
            settings = self._settings
            if delta.settings_changed:
                settings = self._projection.settings(proposed.image)
            problems: list[str] = []
            for piece in delta.pieces():
                step = self._projection.settings_of(piece, tuple(delta.deleted), settings)
                if step is not None:
                    problems += self._core.check(step)
                yield
            return problems
        except SURVIVED as fault:
            self._faults.caught("the check of a batch", fault)
            return [f"they cannot be checked: {fault}"]

    def note_size(self, size: int) -> None:
        """Add the bytes of a published batch, for the snapshots."""
        self._unsaved_bytes += size

    def note_commits(self) -> None:
        """Start a snapshot if enough was committed; after the responses, because no request waits
        for it.
        """
        if self.in_transaction:
            return  # the image lacks its records; a snapshot at this offset would lose them
        size, self._unsaved_bytes = self._unsaved_bytes, 0
        snapshots = self._snapshots
        if snapshots is not None and size:
            self._faults.guard("a snapshot", lambda: snapshots.committed(self._image, size))

    def write_snapshot_if_due(self) -> None:
        """Write a snapshot if one is due by time, even if nothing is committed for long."""
        if self._snapshots is not None and not self.in_transaction:
            self._snapshots.write_if_due(self._image)
