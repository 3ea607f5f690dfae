"""A context with one topic, ``t``, on node 1, and with given configs, for tests of handlers."""

from collections.abc import Mapping, MutableMapping

from pykafka_core.broker.runtime.requests.pending_request import Call
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.context import Context, Node, ProducerIds
from pykafka_core.metadata.health import Replicas
from pykafka_core.metadata.image.image import Broker, Configs, MetadataImage, Topic, Topics
from pykafka_core.quorum.single_voter import SingleVoter
from pykafka_core.types import ConfigResource


def new_context(
    configs: Mapping[tuple[int, str], dict[str, str]] | None = None,
    *,
    settings: BrokerConfigs | None = None,
    api_version: int = 1,
) -> Context:
    topic = Topic("t", bytes(16), {})
    node = Broker(1, 0, bytes(16), (), None, False, False, (), {})
    by_resource: dict[ConfigResource, MutableMapping[str, str]] = {
        ConfigResource(*key): value for key, value in (configs or {}).items()
    }
    image = MetadataImage(
        topics=Topics({topic.topic_id: topic}, {"t": topic}),
        configs=Configs(by_resource),
        brokers={1: node},
    )
    return Context(
        image=image,
        settings=settings or BrokerConfigs(),
        quorum=SingleVoter(1, 1, 0),
        producer_ids=ProducerIds(),
        node=Node(1, "c", bytes(16), "memory", lambda: bytes(16)),
        broker_epoch=0,
        next_offset=0,
        now_ms=0,
        caller=Call(api_version),
        replicas=Replicas(),
    )
