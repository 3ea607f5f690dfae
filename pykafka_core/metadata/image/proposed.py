"""The image as it would be: what requests are judged by whose predecessors are not committed yet.

A proposed image never becomes the committed one. When its records are committed, the publisher applies them to the
committed image, as every other node does; when they are not, it is dropped. So nothing that is only proposed can be
served, and what this node serves is what a replay of its log gives.
"""

from collections.abc import Generator, Sequence

from pykafka_core.metadata.image import mutators
from pykafka_core.metadata.image.draft import Changes, Draft
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import Message


class ProposedImage:
    """A committed image with proposed records upon it.

    Args:
        committed: The base; it is not changed.
    """

    __slots__ = "_committed", "_draft", "records"

    def __init__(self, committed: MetadataImage) -> None:
        self._committed = committed
        self._draft: Draft | None = (
            None  # most batches of a busy broker propose nothing: a draft costs 5 us
        )
        self.records: list[Message] = []
        """All that were added, in order."""

    @property
    def image(self) -> MetadataImage:
        """Read only, and not to be kept: it changes with the next record."""
        return self._committed if self._draft is None else self._draft.image

    @property
    def changes(self) -> Changes:
        """What differs from the committed image."""
        return Changes() if self._draft is None else self._draft.changes

    def add(self, records: Sequence[Message]) -> Generator[None, None, None]:
        """Apply records, all of them or none, yielding after each.

        Raises:
            MetadataError: They contradict those before them.
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
