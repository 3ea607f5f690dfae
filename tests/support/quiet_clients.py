"""confluent-kafka's clients as the tests use them: librdkafka logs nothing, unless a test sets
`log_level` itself.

Tests get errors as exceptions and in delivery reports. librdkafka's own lines come from threads
that outlive a test, and are written to the process's standard error, where pytest cannot attribute
them to a test. So the classes are made quiet once, before a test module can import them.
"""

from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient

QUIET = {"log_level": 0}


def install() -> None:
    """Make the classes of confluent-kafka quiet for every later import."""
    confluent_kafka.Producer = _subclass(confluent_kafka.Producer)
    confluent_kafka.Consumer = _subclass(confluent_kafka.Consumer)
    # It refers to itself by its global name, so a subclass must not take that name.
    AdminClient.__init__ = _quiet(AdminClient.__init__)


def _subclass(client: Any) -> Any:
    namespace = {"__module__": client.__module__, "__init__": _quiet(client.__init__)}
    return type(client.__name__, (client,), namespace)


def _quiet(init: Any) -> Any:
    def __init__(self: Any, config: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        init(self, QUIET | config, *args, **kwargs)

    return __init__
