"""The producer of `kafka_producer`, which counts the records that are not delivered."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

_ERRORS_MAX = 20
_REPORTS_S = 30.0


class Undelivered:
    """Records that were not delivered, with the first errors."""

    def __init__(self) -> None:
        self.count = 0
        self._errors: list[str] = []

    def note(self, error: KafkaError | None, record: Message) -> None:
        """Handle a delivery report."""
        if error is not None:
            self.add(f"{record.topic()}-{record.partition()}", record.key(), error)

    def add(self, place: str, key: object, error: object) -> None:
        """Count a record."""
        self.count += 1
        if len(self._errors) < _ERRORS_MAX:
            self._errors.append(f"  to {place}, key {key!r}: {error}")

    def __str__(self) -> str:
        return "\n".join([f"{self.count} records were not delivered", *self._errors])


class CheckedProducer(Producer):  # type: ignore[misc]
    """A producer whose `finish` returns the records that were not delivered.

    For a rejected record, `produce_batch` neither raises an exception nor calls ``on_delivery``: it
    adds ``_error`` to the record's dictionary.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._undelivered = Undelivered()
        self._refused: dict[int, tuple[str, dict[str, Any]]] = {}
        """Rejected records with their topics, by the identity of the record's dictionary."""
        super().__init__({**config, "on_delivery": self._undelivered.note})

    def produce_batch(
        self, topic: str, messages: list[dict[str, Any]], *args: Any, **kwargs: Any
    ) -> int:
        """Keep the rejected records until a later call accepts them."""
        for record in messages:
            record.pop("_error", None)
        accepted: int = super().produce_batch(topic, messages, *args, **kwargs)
        for record in messages:
            self._refused.pop(id(record), None)
            if "_error" in record:
                self._refused[id(record)] = topic, record
        return accepted

    def finish(self, timeout: float) -> Undelivered:
        """Flush, unless the test has closed the producer, which also flushes; return the records
        that were not delivered.
        """
        with suppress(RuntimeError):
            self._flush(timeout)
        for topic, record in self._refused.values():
            self._undelivered.add(topic, record.get("key"), record["_error"])
        return self._undelivered

    def _flush(self, timeout: float) -> None:
        """Count the records that are left after the timeout; a purge causes their reports."""
        left = self.flush(timeout)
        if left:
            count = self._undelivered.count + left
            self.purge()
            self.flush(_REPORTS_S)
            self._undelivered.count = max(count, self._undelivered.count)
