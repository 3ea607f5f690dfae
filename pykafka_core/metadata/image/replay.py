"""From committed records to images: metadata transactions resolved, unknown types refused.

A start, a leader and a follower make their images here alone, so that the same batches give the same image.
"""

from collections.abc import Iterable

from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image import mutators
from pykafka_core.metadata.image.draft import Changes, Draft
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import Message


class Replay:
    """Applies records in log order.

    Records between BeginTransactionRecord and EndTransactionRecord (KIP-868) are held back until
    the end is seen; AbortTransactionRecord drops them. A log may end inside a transaction: its
    records then never happened.
    """

    def __init__(self, base: MetadataImage | None = None) -> None:
        self._draft = Draft(base or MetadataImage())
        self._transaction: list[tuple[int, Message]] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether the log so far ends inside a transaction; a new leader has to abort it."""
        return self._transaction is not None

    def apply(self, records: Iterable[tuple[int, Message]]) -> None:
        """Take in records with their offsets.

        Raises:
            MetadataError: A record's type is unknown to this version, or it contradicts those
                before it; the message names type and offset.
        """
        for offset, record in records:
            self._apply(offset, record)
            self._draft.image.offset = offset

    def apply_snapshot(self, records: Iterable[Message], end_offset: int) -> None:
        """Take in a snapshot's records, which stand for the log up to ``end_offset`` (exclusive)."""
        self.apply((end_offset - 1, record) for record in records)

    def apply_batch(self, first_offset: int, last_offset: int, records: Iterable[Message]) -> None:
        """Take in a batch of the log; one of the quorum's own has offsets, both inclusive, and no records.

        Raises:
            MetadataError: As of `apply`.
        """
        self.apply(enumerate(records, first_offset))
        self._draft.image.offset = last_offset

    def image(self) -> MetadataImage:
        """The image after all records so far; not to be kept while more are applied."""
        return self._draft.image

    def take(self) -> tuple[MetadataImage, Changes]:
        """The image after all records so far, never to be changed, and what differs from the one taken before."""
        taken = self._draft
        self._draft = Draft(taken.image)
        return taken.image, taken.changes

    def _apply(self, offset: int, record: Message) -> None:
        name = type(record).__name__
        if name == "BeginTransactionRecord":
            self._transaction = []
        elif name == "AbortTransactionRecord":
            self._transaction = None
        elif name == "EndTransactionRecord":
            held, self._transaction = self._transaction or [], None
            for held_offset, held_record in held:
                self._apply_now(held_offset, held_record)
        elif self._transaction is not None:
            self._transaction.append((offset, record))
        else:
            self._apply_now(offset, record)

    def _apply_now(self, offset: int, record: Message) -> None:
        try:
            mutators.apply(self._draft, record)
        except MetadataError as error:
            raise MetadataError(f"metadata record at offset {offset}: {error}") from None
        if type(record).__name__ == "FeatureLevelRecord":
            self._draft.image.features_epoch = offset
