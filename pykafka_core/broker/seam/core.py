"""What the control plane needs of a core: the real one and the simulator's both are this."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pykafka_core._core import (
        BrokerEndpoint,
        Event,
        ImageDelta,
        LogOffsets,
        PartitionImage,
        ProducerState,
        TopicImage,
    )

PartitionId = tuple[bytes, int]


class Core(Protocol):
    """The calls of ``_core.Core`` that are made today; see ``_core.pyi`` for what each promises."""

    def wait(self, deadline_ns: int, events_max: int = 256) -> "list[Event]":
        """Block until events, the deadline or `wake`."""

    def wake(self) -> None:
        """Make `wait` return."""

    def now_ns(self) -> int:
        """The monotonic clock of deadlines."""

    def horizon_ns(self) -> int:
        """The time up to which every event was handed out, of `now_ns`."""

    def time_ms(self) -> int:
        """The wall clock."""

    def listen(self, name: str, address: str) -> int:
        """Bind; returns the port."""

    def serve(self) -> None:
        """Begin to answer."""

    def stop(self, grace_ms: int) -> None:
        """Drain, flush, write the clean marker."""

    def check(self, delta: "ImageDelta") -> list[str]:
        """What of a step could not be carried out."""

    def apply(self, delta: "ImageDelta") -> None:
        """Make one committed metadata step."""

    def respond(self, replies: Sequence[tuple[int, bytes]]) -> None:
        """Answer requests by id."""

    def close_connection(self, connection: int, reason: str) -> None:
        """End a connection."""

    def append(
        self,
        token: int,
        partition: PartitionId,
        leader_epoch: int,
        records: Sequence[tuple[bytes | None, bytes | None]],
        *,
        control: int | None = None,
    ) -> None:
        """One atomic batch; completes as ``Appended``."""

    def read(
        self,
        partition: PartitionId,
        offset: int,
        bytes_max: int,
        upto: Literal["log_end", "high_watermark"],
    ) -> bytes:
        """Whole batches from ``offset`` on."""

    def offsets(self, partition: PartitionId) -> "LogOffsets":
        """One consistent snapshot."""

    def delete_before(self, token: int, partition: PartitionId, offset: int) -> None:
        """Advance the log start; completes as ``Maintained``."""

    def enforce_retention(self, token: int) -> None:
        """Delete what is past its limits; completes as ``Maintained``."""

    def describe_log_dirs(self) -> list[tuple[bytes, int, int]]:
        """Sizes of logs."""

    def disk_space(self) -> tuple[int, int]:
        """(total, usable) bytes."""

    def describe_producers(self, partition: PartitionId) -> "list[ProducerState]":
        """Producers that a log remembers."""

    def statistics(self) -> bytes:
        """One snapshot of the counters."""

    def drain_log(self) -> list[tuple[int, int, str, str]]:
        """Log lines since the last call."""


class CoreTypes(Protocol):
    """The classes a core takes its image in: the module ``_core``, or the simulator's."""

    @property
    def BrokerEndpoint(self) -> "type[BrokerEndpoint]":
        """One broker's address for one listener."""

    @property
    def PartitionImage(self) -> "type[PartitionImage]":
        """One partition."""

    @property
    def TopicImage(self) -> "type[TopicImage]":
        """One topic with its partitions."""

    @property
    def ImageDelta(self) -> "type[ImageDelta]":
        """One step."""
