"""Record which settings Apache Kafka accepts: each with some values, in a file and over the wire.

    python -m tools.verdicts HOST:PORT CLASSPATH > tests/config/golden/kafka-4.2.1-verdicts.json

``HOST:PORT`` is an Apache Kafka of one node, id 1; the only change there is a new
topic. ``CLASSPATH`` is its jars, as ``libs/*``. A verdict is 0 or the error code, -1 for a failed
start.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pykafka_core.config import ConfigType, Scope, Setting, settings
from pykafka_core.protocol.messages import CreateTopicsRequest, IncrementalAlterConfigsRequest
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC
from tests.support.wire import Connection

TOPIC = "verdicts"
NODE_ID = "1"
MAXIMA = {
    ConfigType.INT: str(2**31 - 1),
    ConfigType.SHORT: str(2**15 - 1),
    ConfigType.LONG: str(2**63 - 1),
    ConfigType.DOUBLE: "1.7976931348623157E308",
}


def values(setting: Setting) -> list[str]:
    """Return the values to try with a setting."""
    found = ["0", "1", "-1", "-2", MAXIMA.get(setting.type, str(2**31 - 1)), "", "text"]
    return [*found, "delete,delete"] if setting.type is ConfigType.LIST else found


def cases(scope: Scope) -> Iterator[tuple[str, str]]:
    """Every setting of a scope with every value."""
    return ((name, value) for name, row in settings(scope).items() for value in values(row))


def given_at_start(classpath: str) -> dict[str, dict[str, int]]:
    """Verdicts on server.properties, by name and value."""
    asked = list(cases(Scope.BROKER))
    lines = "".join(f"{name}={value}\n" for name, value in asked)
    program = Path(__file__).with_name("StaticVerdicts.java")
    printed = subprocess.run(
        ["java", "-cp", classpath, str(program)],
        input=lines, check=True, stdout=subprocess.PIPE, text=True,
    ).stdout  # fmt: skip
    # Log lines of Kafka may be between them.
    on_response = [line[8:] for line in printed.split("\n") if line.startswith("verdict ")]
    return _by_name(
        zip(asked, (0 if response == "ok" else -1 for response in on_response), strict=True)
    )


def altered(address: str, scope: Scope, kind: int, resource: str) -> dict[str, dict[str, int]]:
    """Verdicts on one change over the wire, by name and value."""
    with Connection(address) as connection:
        return _by_name((case, _ask(connection, kind, resource, *case)) for case in cases(scope))


def _ask(connection: Connection, kind: int, resource: str, name: str, value: str) -> int:
    changes = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
    ]
    asked = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=changes
    )
    request = IncrementalAlterConfigsRequest(resources=[asked], validate_only=True)
    (response,) = connection.ask(44, 1, request).responses
    return int(response.error_code)


def _by_name(verdicts: Any) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (name, value), verdict in verdicts:
        found.setdefault(name, {})[value] = verdict
    return found


def main() -> None:
    """Print all verdicts as JSON."""
    address, classpath = sys.argv[1:]
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    with Connection(address) as connection:
        connection.ask(19, 7, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    verdicts = {
        "start": given_at_start(classpath),
        "all brokers": altered(address, Scope.BROKER, RESOURCE_BROKER, ""),
        "one broker": altered(address, Scope.BROKER, RESOURCE_BROKER, NODE_ID),
        "topic": altered(address, Scope.TOPIC, RESOURCE_TOPIC, TOPIC),
    }
    print("{")
    for layer, by_name in verdicts.items():
        print(f'"{layer}": {{')
        rows = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in by_name.items()]
        print(",\n".join(rows))
        print("}" if layer == "topic" else "},")
    print("}")


if __name__ == "__main__":
    main()
