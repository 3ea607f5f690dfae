"""The classes in which a core takes its image: the extension's, or a simulator's own."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_core._core import BrokerEndpoint, ImageDelta, PartitionImage, TopicImage


class CoreTypes(Protocol):
    """The module ``_core``, or the simulator's."""

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
