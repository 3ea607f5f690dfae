"""The listeners of a broker, and the addresses that it advertises to clients."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pykafka_core._core import Core
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.config import Listener, StartConfig
from pykafka_core.metadata.image.image import Endpoint

_log = GuardedLogger(__name__)

LOOPBACK = "127.0.0.1"


def bind(core: Core, listeners: Sequence[Listener], inter_broker: str = "") -> tuple[Endpoint, ...]:
    """Bind each listener; requests are only handled once the core serves.

    An empty host is the loopback address: a listener without encryption is open to the network only
    if its address requests that.

    Args:
        core: Binds the sockets.
        listeners: The listeners.
        inter_broker: The name of the inter-broker listener. As in Kafka, clients cannot use it if
            there is another listener.

    Returns:
        Name, host and bound port of each listener.
    """
    bound = []
    for listener in listeners:
        audience: Literal["clients", "nodes", "both"] = "clients"
        if listener.name == inter_broker:
            audience = "nodes" if len(listeners) > 1 else "both"
        port = core.listen(listener.name, address_of(listener), audience=audience)
        bound.append(Endpoint(listener.name, listener.host or LOOPBACK, port))
    return tuple(bound)


def listen(core: Core, start: StartConfig) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...]]:
    """Bind the listeners of a start and warn about exposed ones.

    Returns:
        The bound listeners, see `bind`, and the advertised listeners.
    """
    bound = bind(core, start.listeners, start.inter_broker_listener)
    endpoints = advertised(bound, start.advertised_listeners)
    for warning in exposures(bound, endpoints):
        _log.warning("%s", warning)
    return bound, endpoints


def address_of(listener: Listener) -> str:
    """Return ``HOST:PORT`` to bind; an empty host is the loopback address."""
    return Listener(listener.name, listener.host or LOOPBACK, listener.port).address


def exposures(bound: Iterable[Endpoint], endpoints: Iterable[Endpoint]) -> Iterator[str]:
    """Yield a warning for each listener that other machines can reach, and for each that they
    cannot use.

    Args:
        bound: The result of `bind`.
        endpoints: The advertised addresses of the same listeners, the result of `advertised`.
    """
    for listener, endpoint in zip(bound, endpoints, strict=True):
        if _is_loopback(listener.host):
            continue
        place = f"listener {_listener(listener)}"
        if _is_loopback(endpoint.host):
            address = Listener(listener.name, "HOST", listener.port)
            yield (
                f"{place} makes clients connect to {_listener(endpoint).address}, which other machines cannot "
                f"reach: set advertised.listeners={address} with a name of this machine that they can resolve"
            )
        yield (
            f"{place} is open to the network without encryption, authentication and authorization: every client "
            "that reaches it can read, change and delete every topic and alter this broker's settings"
        )


def _listener(endpoint: Endpoint) -> Listener:
    return Listener(endpoint.name, endpoint.host, endpoint.port)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def advertised(
    bound: tuple[Endpoint, ...], advertised_listeners: Iterable[Listener]
) -> tuple[Endpoint, ...]:
    """Return the advertised listeners: as configured, else the bound ones.

    An advertised port 0 is replaced by the bound port. Clients cannot connect to ``0.0.0.0`` and
    ``::``: without advertised listeners such a broker advertises the loopback address, and
    `exposures` yields a warning.
    """
    configured = {listener.name: listener for listener in advertised_listeners}
    return tuple(_advertise(endpoint, configured.get(endpoint.name)) for endpoint in bound)


def _advertise(endpoint: Endpoint, configured: Listener | None) -> Endpoint:
    if configured is None:
        everywhere = endpoint.host in ("0.0.0.0", "::")
        return endpoint._replace(host=LOOPBACK) if everywhere else endpoint
    host, port = configured.host or endpoint.host, configured.port or endpoint.port
    return endpoint._replace(host=host, port=port)
