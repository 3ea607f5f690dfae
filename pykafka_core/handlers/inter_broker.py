"""The listener by which brokers talk to each other: where another one is reached, and who is trusted to be one.

Nothing authenticates a connection yet, so the listener stands for the broker, as for a fetch of a replica
(`rust/broker/src/api/replica.rs`): whoever reaches the one that ``inter.broker.listener.name`` names is trusted.
"""

from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.context import Context
from pykafka_core.metadata.image.image import Endpoint, MetadataImage

_SETTING = "inter.broker.listener.name"
_DEFAULT = "PLAINTEXT"
"""The listener of Kafka's default ``security.inter.broker.protocol``."""


def listener_name(settings: BrokerConfigs) -> str:
    """The listener by which brokers reach each other, in capitals."""
    return (settings.string(_SETTING) or _DEFAULT).upper()


def endpoint_of(image: MetadataImage, settings: BrokerConfigs, node_id: int) -> Endpoint | None:
    """Where a broker is reached by other brokers; None if it is not registered, fenced, or has no such listener."""
    broker = image.brokers.get(node_id)
    if broker is None or broker.fenced:
        return None
    name = listener_name(settings)
    found = (endpoint for endpoint in broker.endpoints if endpoint.name.upper() == name)
    return next(found, None)


def is_from_broker(context: Context) -> bool:
    """Whether a request came by the listener for brokers. Without a name of it, or another broker, none did."""
    name = context.settings.string(_SETTING)
    has_others = any(node_id != context.node.node_id for node_id in context.image.brokers)
    return bool(name) and has_others and context.caller.listener.upper() == str(name).upper()
