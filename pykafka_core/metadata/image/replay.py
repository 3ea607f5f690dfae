"""Applies committed records to images: resolves metadata transactions, rejects unknown types.

Startup, leaders and followers all build their images here, so that equal batches give equal images.
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
    the end; AbortTransactionRecord drops them. If a log ends inside a transaction, its records have
    no effect.
    """

    def __init__(self, base: MetadataImage | None = None) -> None:
        self._draft = Draft(base or MetadataImage())
        self._transaction: list[tuple[int, Message]] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether the log so far ends inside a transaction, which a new leader must abort."""
        return self._transaction is not None

    def apply(self, records: Iterable[tuple[int, Message]]) -> None:
        """Apply records with their offsets.

        Raises:
            MetadataError: A record's type is not supported, or it contradicts earlier records; the
                message contains type and offset.
        """
        for offset, record in records:
            self._apply(offset, record)
            self._draft.image.offset = offset

    def apply_snapshot(self, records: Iterable[Message], end_offset: int) -> None:
        """Apply a snapshot's records, which replace the log up to ``end_offset`` (exclusive)."""
        self.apply((end_offset - 1, record) for record in records)

    def apply_batch(self, first_offset: int, last_offset: int, records: Iterable[Message]) -> None:
        """Apply a batch with inclusive offsets; a control batch of the quorum has no records.

        Raises:
            MetadataError: See `apply`.
        """
        self.apply(enumerate(records, first_offset))
        self._draft.image.offset = last_offset

    def image(self) -> MetadataImage:
        """Return the current image; it changes with later records, so it must not be kept."""
        return self._draft.image

    def take(self) -> tuple[MetadataImage, Changes]:
        """Return the current image, which never changes, and the changes since the last call."""
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
