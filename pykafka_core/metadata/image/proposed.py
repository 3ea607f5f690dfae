"""The image with uncommitted records, against which later requests are checked.

A proposed image never becomes the committed one. When its records are committed, the publisher
applies them to the committed image, as on every other node; otherwise it is dropped. So uncommitted
state is never served, and the served state always equals a replay of the log.
"""

from collections.abc import Generator, Sequence

from pykafka_core.metadata.image import mutators
from pykafka_core.metadata.image.draft import Changes, Draft
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import Message


class ProposedImage:
    """A committed image with proposed records applied.

    Args:
        committed: The base; it is not changed.
    """

    __slots__ = "_committed", "_draft", "records"

    def __init__(self, committed: MetadataImage) -> None:
        self._committed = committed
        self._draft: Draft | None = (
            None  # created late: most batches of a busy broker propose nothing, and it costs 5 us
        )
        self.records: list[Message] = []
        """All added records, in order."""

    @property
    def image(self) -> MetadataImage:
        """Read-only, and not to be kept: it changes with the next record."""
        return self._committed if self._draft is None else self._draft.image

    @property
    def changes(self) -> Changes:
        """The changes since the committed image."""
        return Changes() if self._draft is None else self._draft.changes

    def add(self, records: Sequence[Message]) -> Generator[None, None, None]:
        """Apply records atomically, and yield after each.

        Raises:
            MetadataError: They contradict earlier records.
        """
        draft = self._draft or Draft(self._committed)
        self._draft = draft
        try:
            for record in records:
                mutators.apply(draft, record)
                yield
        except Exception:
            self._draft = mutators.draft_of(self._committed, self.records)
            raise
        self.records += records
