"""Where a broker listens, and what it tells clients about it."""

from collections.abc import Iterable

from pykafka_core.broker.seam.core import Core
from pykafka_core.config import Listener
from pykafka_core.metadata.image.image import Endpoint

LOOPBACK = "127.0.0.1"


def bind(core: Core, listeners: Iterable[Listener]) -> tuple[Endpoint, ...]:
    """Bind each listener; nothing is served before the core serves.

    An empty host is the loopback address: a listener without encryption is open to the network
    only when its address says so.

    Returns:
        Name, host and the port that was bound.
    """
    bound = []
    for listener in listeners:
        host = listener.host or LOOPBACK
        address = Listener(listener.name, host, listener.port).address
        bound.append(Endpoint(listener.name, host, core.listen(listener.name, address)))
    return tuple(bound)


def advertised(
    bound: tuple[Endpoint, ...], advertised_listeners: Iterable[Listener]
) -> tuple[Endpoint, ...]:
    """What clients are told: as configured, else where we are bound.

    An advertised port 0 is the bound one. ``0.0.0.0`` and ``::`` are no addresses to connect to;
    without advertised listeners such a broker advertises the loopback address.
    """
    told = {listener.name: listener for listener in advertised_listeners}
    return tuple(_advertise(endpoint, told.get(endpoint.name)) for endpoint in bound)


def _advertise(endpoint: Endpoint, told: Listener | None) -> Endpoint:
    if told is None:
        everywhere = endpoint.host in ("0.0.0.0", "::")
        return endpoint._replace(host=LOOPBACK) if everywhere else endpoint
    return endpoint._replace(host=told.host or endpoint.host, port=told.port or endpoint.port)
