"""The settings of a log that users of the library can set; all others have Kafka's defaults."""

from dataclasses import dataclass, fields

__all__ = ["LogConfig"]


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """Kafka's topic settings with underscores for dots; ``None`` leaves the default.

    Sizes are in bytes, times in milliseconds; -1 means "no limit" for ``retention_bytes`` and
    ``retention_ms``. ``flush_messages`` and ``flush_ms`` override the durability. One default
    differs from Kafka's: without ``retention_ms``, no records are deleted because of their age.
    Retention is enforced at each roll of a segment and by `Log.enforce_retention`.
    """

    segment_bytes: int | None = None
    segment_ms: int | None = None
    segment_index_bytes: int | None = None
    index_interval_bytes: int | None = None
    max_message_bytes: int | None = None
    retention_bytes: int | None = None
    retention_ms: int | None = None
    cleanup_policy: str | None = None
    compression_type: str | None = None
    message_timestamp_type: str | None = None
    message_timestamp_before_max_ms: int | None = None
    message_timestamp_after_max_ms: int | None = None
    flush_messages: int | None = None
    flush_ms: int | None = None
    file_delete_delay_ms: int | None = None

    def settings(self) -> list[tuple[str, str]]:
        """Return the given settings with Kafka's names."""
        values = (
            (field.name.replace("_", "."), getattr(self, field.name)) for field in fields(self)
        )
        return [(name, str(value)) for name, value in values if value is not None]
