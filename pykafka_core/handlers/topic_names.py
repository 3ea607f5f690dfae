"""The topic names that Kafka allows."""

from pykafka_core.errors import InvalidTopicError
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.topics import topic_name_problem


def check_topic_name(name: str) -> None:
    """Refuse a name that Kafka does not allow.

    Raises:
        InvalidTopicError: The name breaks a rule; the text names the rule.
    """
    problem = topic_name_problem(name)
    if problem is not None:
        raise InvalidTopicError(f"Topic name is invalid: {problem}.")


class Collisions:
    """Refuses names that differ only in ``.`` and ``_``: their metrics would have one name.

    Args:
        image: The existing topics; they are searched only if a new name contains either.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._taken: dict[str, str] | None = None

    def check(self, name: str) -> None:
        """Refuse ``name`` if it collides with an existing topic or an added one.

        Raises:
            InvalidTopicError: It collides; the text names the other topic.
        """
        other = self._table().get(_folded(name), name) if _ambiguous(name) else name
        if other != name:
            raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")

    def add(self, name: str) -> None:
        """Add ``name`` to the names with which later names may collide."""
        if self._taken is not None and _ambiguous(name):
            self._taken[_folded(name)] = name

    def _table(self) -> dict[str, str]:
        if self._taken is None:
            names = self._image.topics.by_name
            self._taken = {_folded(name): name for name in names if _ambiguous(name)}
        return self._taken


def _ambiguous(name: str) -> bool:
    return "." in name or "_" in name


def _folded(name: str) -> str:
    return name.replace(".", "_")
