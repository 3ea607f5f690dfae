"""Kafka in a Python wheel: an embedded broker, its log as a library, and the tools around them.

Names are imported when first used: ``import pykafka_core`` alone costs almost nothing.
"""

TYPE_CHECKING = False  # known to type checkers; importing typing would take longer than the rest

if TYPE_CHECKING:
    from pykafka_core.broker.broker import Broker as Broker
    from pykafka_core.broker.cluster.cluster import Cluster as Cluster

    __version__: str

__all__ = ["Broker", "Cluster"]

_HOMES = {
    "Broker": "pykafka_core.broker.broker",
    "Cluster": "pykafka_core.broker.cluster.cluster",
}


def __getattr__(name: str) -> object:
    value: object
    if name == "__version__":
        from importlib.metadata import version

        value = version("pykafka-core")
    elif name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
