"""The classes of the image that a core accepts: those of the extension, or of a simulator."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_core._core import BrokerEndpoint, ImageDelta, PartitionImage, TopicImage


class CoreTypes(Protocol):
    """The module ``_core``, or that of the simulator."""

    @property
    def BrokerEndpoint(self) -> "type[BrokerEndpoint]":
        """The address of a broker for one listener."""

    @property
    def PartitionImage(self) -> "type[PartitionImage]":
        """One partition of a topic image."""

    @property
    def TopicImage(self) -> "type[TopicImage]":
        """The image of a topic with its partitions."""

    @property
    def ImageDelta(self) -> "type[ImageDelta]":
        """One step of the image."""
