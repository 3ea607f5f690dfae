"""The settings of a log that a library user may give; everything else has Kafka's default."""

from dataclasses import dataclass, fields

__all__ = ["LogConfig"]


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """Kafka's topic settings with underscores for dots; ``None`` leaves the default.

    Sizes are bytes, times are milliseconds; -1 is "no limit" for the two of retention. ``flush_messages`` and
    ``flush_ms`` override what the durability says. One default is not Kafka's: without ``retention_ms`` nothing goes
    for its age. Retention is enforced at every roll of a segment and by `Log.enforce_retention`.
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
        """The settings that are given, under Kafka's names."""
        values = (
            (field.name.replace("_", "."), getattr(self, field.name)) for field in fields(self)
        )
        return [(name, str(value)) for name, value in values if value is not None]
