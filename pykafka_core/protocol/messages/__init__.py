"""The message classes: one per message of Kafka 4.4, with nested structs as its attributes.

``from pykafka_core.protocol.messages import CreateTopicsRequest`` creates only that class, from the
codec's tables; ``CreateTopicsRequest.CreatableTopic`` is a nested struct. The types for type
checkers are in ``__init__.pyi``.

Fields have Kafka's names in snake case and Kafka's defaults; constructors take them by keyword.
Arrays are lists, null is ``None``, uuids are 16 bytes. Messages compare by value.
"""

from pykafka_core import _core
from pykafka_core.protocol.messages._build import Message as Message
from pykafka_core.protocol.messages._build import build

_NAMES = frozenset(_core.message_names())


def __getattr__(name: str) -> type[Message]:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = build(name, __name__)
    # Another thread may have created the class at the same time: only one class per name is used.
    return globals().setdefault(name, message)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
