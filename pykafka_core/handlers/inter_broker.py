"""The listener for requests between brokers: endpoints of other brokers, and trust.

No connection is authenticated yet. So the listener identifies a broker, as for a replica's fetch
(`rust/broker/src/api/replica_authorization.rs`): every client of the listener in
``inter.broker.listener.name`` is trusted.
"""

from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.context import Context
from pykafka_core.metadata.image.image import Endpoint, MetadataImage

_SETTING = "inter.broker.listener.name"
_DEFAULT = "PLAINTEXT"
"""The listener of Kafka's default ``security.inter.broker.protocol``."""


def listener_name(settings: BrokerConfigs) -> str:
    """Return the name of the listener between brokers, in capitals."""
    return (settings.string(_SETTING) or _DEFAULT).upper()


def endpoint_of(image: MetadataImage, settings: BrokerConfigs, node_id: int) -> Endpoint | None:
    """Return the endpoint at which other brokers reach a broker.

    None if the broker is not registered, is fenced, or has no such listener.
    """
    broker = image.brokers.get(node_id)
    if broker is None or broker.fenced:
        return None
    name = listener_name(settings)
    found = (endpoint for endpoint in broker.endpoints if endpoint.name.upper() == name)
    return next(found, None)


def is_from_broker(context: Context) -> bool:
    """Return whether a request arrived through the listener between brokers.

    False without a configured name, or without another broker.
    """
    name = context.settings.string(_SETTING)
    has_others = any(node_id != context.node.node_id for node_id in context.image.brokers)
    return bool(name) and has_others and context.caller.listener.upper() == str(name).upper()
