"""The clients that are members of groups in these tests, their commands, and their features."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.clients.groups.member import Member
from tests.support.java import classpath

ROOT = Path(__file__).resolve().parents[3]
DRIVERS = "tests.clients.groups.drivers"
INSTALLED = ROOT / "target" / "clients"
"""Where `make clients` installs clients of other languages than Python and Java."""

STRATEGIES = ("range", "round-robin", "sticky", "cooperative-sticky", "uniform")
ABILITIES = ("static restart", "seek", "pause", "lag")
"""Optional features of a client; the other scenarios are for all clients."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """A row of the table.

    Attributes:
        strategies: Its assignment strategies, with their names in the protocol.
        is_foreign: Neither a Python nor a Java client: `make test-all` does not run it.
        commits_itself: It commits after each poll, without a call.
        tells_owners: It reports its partitions. Those of another client are read from the broker,
            too late to see overlaps.
        arguments: Follow the settings on the command line; created when a member starts.
    """

    name: str
    command: tuple[str, ...]
    strategies: Mapping[str, str]
    offers: frozenset[str] = frozenset(ABILITIES)
    protocol: str = "classic"
    is_foreign: bool = False
    commits_itself: bool = False
    tells_owners: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    needs_jvm: bool = False
    arguments: Callable[[], Sequence[str]] = tuple

    def start(self, name: str, settings: Mapping[str, object]) -> Member:
        """Start a member; ``settings`` are those of `drivers/loop.py`."""
        given = {"protocol": self.protocol, "instance": None, "session_ms": 30_000, **settings}
        if given.get("strategy") is None:
            given["strategy"] = next(iter(self.strategies))
        environment = os.environ | self.environment
        return Member(name, [*self.command, json.dumps(given), *self.arguments()], environment)


def _python(driver: str) -> tuple[str, ...]:
    return sys.executable, "-W", "ignore", "-m", f"{DRIVERS}.{driver}"


def _java() -> tuple[str, ...]:
    return "java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classpath()


RANGE = {"range": "range"}
EAGER = {**RANGE, "round-robin": "roundrobin"}
STICKY = {**EAGER, "sticky": "sticky"}
UNIFORM = {**RANGE, "uniform": "uniform"}
COOPERATIVE = {"cooperative-sticky": "cooperative-sticky"}
GOLANG = str(INSTALLED / "golang")
PYTHON = {"PYTHONPATH": str(ROOT)}

CLIENTS = (
    Client(
        name="confluent-kafka",
        command=_python("confluent"),
        strategies={**EAGER, **COOPERATIVE},
        environment=PYTHON,
    ),
    Client(
        name="confluent-kafka (consumer protocol)",
        command=_python("confluent"),
        strategies=UNIFORM,
        protocol="consumer",
        environment=PYTHON,
    ),
    Client(
        name="kafka-python",
        command=_python("kafka_python"),
        strategies={**STICKY, **COOPERATIVE},
        environment=PYTHON,
    ),
    Client(
        name="aiokafka",
        command=_python("aiokafka_member"),
        strategies=STICKY,
        environment=PYTHON,
    ),
    Client(
        name="Java verifiable consumer",
        command=_python("verifiable"),
        strategies={**STICKY, **COOPERATIVE},
        offers=frozenset({"static restart"}),
        commits_itself=True,
        environment=PYTHON,
        needs_jvm=True,
        arguments=_java,
    ),
    Client(
        name="Java verifiable consumer (consumer protocol)",
        command=_python("verifiable"),
        strategies=UNIFORM,
        offers=frozenset({"static restart"}),
        protocol="consumer",
        commits_itself=True,
        environment=PYTHON,
        needs_jvm=True,
        arguments=_java,
    ),
    Client(
        name="Java console consumer",
        command=_python("console"),
        strategies={**STICKY, **COOPERATIVE},
        offers=frozenset({"static restart"}),
        commits_itself=True,
        tells_owners=False,
        environment=PYTHON,
        needs_jvm=True,
        arguments=_java,
    ),
    Client(
        name="kafkajs",
        command=(
            "node",
            str(ROOT / "tests/clients/groups/drivers/kafkajs/driver.js"),
        ),
        strategies={"round-robin": "RoundRobinAssigner"},
        offers=frozenset(ABILITIES) - {"static restart"},
        is_foreign=True,
        environment={"NODE_PATH": str(INSTALLED / "kafkajs" / "node_modules")},
    ),
    Client(
        name="sarama",
        command=(GOLANG, "sarama"),
        strategies=STICKY,
        offers=frozenset(ABILITIES) - {"seek"},
        is_foreign=True,
    ),
    Client(
        name="kafka-go",
        command=(GOLANG, "kafka-go"),
        strategies=EAGER,
        offers=frozenset({"seek", "lag"}),
        is_foreign=True,
    ),
    Client(
        name="franz-go",
        command=(GOLANG, "franz-go"),
        strategies={**STICKY, **COOPERATIVE},
        is_foreign=True,
    ),
)
