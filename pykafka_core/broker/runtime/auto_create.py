"""Topics that Metadata requests named and nobody made: contract/kafka.md#34."""

from collections.abc import Iterable

from pykafka_core.broker.guarded_log import GuardedLogger
from pykafka_core.broker.runtime.calls import create_topics
from pykafka_core.broker.runtime.requests import LocalRequest
from pykafka_core.config import BrokerConfigs
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import CreateTopicsResponse, Message
from pykafka_core.types import INTERNAL_TOPICS

_log = GuardedLogger(__name__)


def missing_topics(
    image: MetadataImage, settings: BrokerConfigs, names: Iterable[str]
) -> LocalRequest | None:
    """The request that makes them with the broker's defaults, or None if there is nothing to do.

    Args:
        image: A topic may have been made since it was missed.
        settings: ``auto.create.topics.enable``.
        names: As clients asked; illegal ones are refused by the request itself. Topics of the
            coordinators are theirs to make.
    """
    if not settings.boolean("auto.create.topics.enable"):
        return None
    wanted = [
        name
        for name in dict.fromkeys(names)
        if name not in image.topics.by_name and name not in INTERNAL_TOPICS
    ]
    return create_topics(wanted, -1, {}, answered=_report) if wanted else None


def _report(answer: Message) -> None:
    assert isinstance(answer, CreateTopicsResponse), "the answer fits the request"
    for topic in answer.topics:
        if topic.error_code:
            _log.warning("topic %r was not auto-created: %s", topic.name, topic.error_message)
        else:
            _log.info("topic %r was auto-created", topic.name)
