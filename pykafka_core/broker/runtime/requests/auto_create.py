"""Auto-creation of missing topics that Metadata requests named: contract/kafka.md#34."""

from collections.abc import Iterable, Sequence
from itertools import islice

from pykafka_core.broker.runtime.requests.calls import create_topics
from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.config import BrokerConfigs
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import CreateTopicsResponse, Message
from pykafka_core.types import INTERNAL_TOPICS

TOPICS_MAX = 1000
"""Maximum number of topics that are created at once; clients request the others again."""
NAMES_LOGGED_MAX = 10
"""Clients choose the names, so they must not fill the log."""

_log = GuardedLogger(__name__)


def missing_topics(
    image: MetadataImage, settings: BrokerConfigs, names: Iterable[str]
) -> LocalRequest | None:
    """Return a request that creates the topics with the broker's defaults, or None if there is
    nothing to do.

    Args:
        image: A topic may have been created since it was missed.
        settings: Provides ``auto.create.topics.enable``.
        names: The names that clients requested; the request itself rejects invalid names. Internal
            topics are created by the coordinators.
    """
    if not settings.boolean("auto.create.topics.enable"):
        return None
    missing = (
        name
        for name in dict.fromkeys(names)
        if name not in image.topics.by_name and name not in INTERNAL_TOPICS
    )
    wanted = list(islice(missing, TOPICS_MAX))
    return create_topics(wanted, -1, {}, on_response=_report) if wanted else None


def _report(response: Message) -> None:
    assert isinstance(response, CreateTopicsResponse), "the response fits the request"
    made = [topic.name for topic in response.topics if not topic.error_code]
    failed = [topic for topic in response.topics if topic.error_code]
    if made:
        _log.info("%d topics were auto-created: %s", len(made), _some(made))
    if failed:
        names, reason = [topic.name for topic in failed], failed[0].error_message
        _log.warning("%d topics were not auto-created: %s: %s", len(failed), _some(names), reason)


def _some(names: Sequence[str]) -> str:
    rest = len(names) - NAMES_LOGGED_MAX
    return ", ".join(names[:NAMES_LOGGED_MAX]) + (f" and {rest} more" if rest > 0 else "")
