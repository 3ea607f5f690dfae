"""No client request occupies the control thread for long: each API gets its largest request, with
16,000 partitions.

The test runs the control thread, on the real core in memory. It counts the calls of Python and C
functions in each turn, while the core's clock advances by `LOOK_NS` with each read. So the result
does not depend on the processor, and work between two reads that grows with the request is
detected.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core import _core
from pykafka_core.broker.start.startup import start
from pykafka_core.broker.start.startup_config import plan
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.configs.checks import UNKNOWN_NAMES_MAX
from pykafka_core.handlers.quotas.alter_client_quotas import QUOTAS_MAX
from pykafka_core.handlers.registry import ROWS
from pykafka_core.handlers.security.alter_user_scram_credentials import CREDENTIALS_MAX
from pykafka_core.protocol import decode_response, encode_request
from pykafka_core.protocol.messages import Message
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_CLIENT_METRICS, RESOURCE_TOPIC
from tests.support.calls import counting_calls
from tests.support.every_api import Content, Topics, request
from tests.support.patience import POLL_NS
from tests.support.simulated import fake_core

if TYPE_CHECKING:
    from collections.abc import Sequence

TURN_CALLS_MAX = 400_000
"""About 40 ms: a call takes a tenth of a microsecond. The largest turns have 260,000 calls."""
LOOK_NS = 1_000_000
SMALL, LARGE = 8_000, 8_000
"""Number of topics with one partition, and number of partitions of one large topic."""
RECORDS_MAX = 9_999
BY_NAME = {row.name: row for row in ROWS}
VERSIONS = {"offset_commit": 9, "offset_fetch": 9}
"""Versions of requests whose newest version identifies topics by id; for others it is the
newest."""


class Catching:
    """The real core; it stores responses for the test, and its clock advances with each read."""

    def __init__(self, core: _core.Core) -> None:
        self.replies: dict[int, bytes] = {}
        self.granted: list[_core.Event] = []
        self._core = core
        self._now_ns = core.now_ns()

    def now_ns(self) -> int:
        self._now_ns += LOOK_NS
        return self._now_ns

    def reserve_response(self, token: int, request: int, bytes: int) -> None:
        """Grant the memory at once: the core does not have the request."""
        del request, bytes
        self.granted.append(_core.Maintained(token, 0, -1))

    def respond(self, replies: "Sequence[tuple[int, bytes | _core.EncodedMessage]]") -> None:
        self.replies.update((request, bytes(body)) for request, body in replies)

    def __getattr__(self, name: str) -> object:
        return getattr(self._core, name)


class Driven:
    """A broker whose control thread is run by the caller."""

    def __init__(self) -> None:
        settings = BrokerConfigs({"listeners": "PLAINTEXT://127.0.0.1:0"})
        planned = plan(settings, None, lambda: os.urandom(16))
        options = _core.CoreOptions(
            data_dir=None,
            node_id=planned.identity.node_id,
            cluster_id=planned.identity.cluster_id,
            durability="memory",
            memory_max=256 << 20,
            clock_ms=None,
        )
        self.core = _core.Core(options)
        self._catching = Catching(self.core)
        core = cast("_core.Core", self._catching)
        self._machine = start(core, _core, planned).control.dispatcher
        self._ids = count(2**40)
        self._events: list[_core.Event] = []

    def ask(self, api: str, content: Content) -> tuple[Message, int]:
        """Handle a request; return the response, and the largest number of calls in one turn."""
        row = BY_NAME[api]
        version = VERSIONS.get(api, row.versions[1])
        event = fake_core.request(
            id=next(self._ids),
            api_key=row.api_key,
            api_version=version,
            body=encode_request(request(api, content, version), version),
            received_ns=self.core.now_ns(),
        )
        self._events.append(event)
        calls_max = 0
        while event.id not in self._catching.replies:
            is_busy, calls = self._turn(self._events)
            calls_max = max(calls_max, calls)
            # Events after the response belong to the next turn.
            granted, self._catching.granted = self._catching.granted, []
            at_once = is_busy or granted
            self._events = self.core.wait(0 if at_once else self.core.now_ns() + POLL_NS)
            self._events += granted
        body = self._catching.replies.pop(event.id)
        return decode_response(row.api_key, version, body), calls_max

    def _turn(self, events: "Sequence[_core.Event]") -> tuple[bool, int]:
        with counting_calls() as calls:
            for event in events:
                self._machine.take(event)
            is_busy = self._machine.advance()
        return is_busy, calls.count


def named(kind: str, count: int, first: int = 0) -> list[str]:
    return [f"{kind}{first + n}" for n in range(count)]


SMALL_TOPICS: Topics = [(name, [0]) for name in named("t", SMALL)]
LARGE_TOPIC: Topics = [(f"t{SMALL}", list(range(LARGE)))]
NEW_TOPICS: Topics = [(name, []) for name in named("t", RECORDS_MAX // 2, SMALL + 1)]

MANY = Content(
    topics=SMALL_TOPICS + LARGE_TOPIC,
    names=named("g", 16_000),
    group="commits",
    transactional_id="t",
    text="/nowhere",
    kind=0,
    offset=0,
)
GROUP = Content(group="g0", members=named("m", 50_000), names=named("p", 100), text="consumer")
OF_TOPICS = Content(kind=RESOURCE_TOPIC, names=[name for name, _ in SMALL_TOPICS + LARGE_TOPIC])
OF_NEW_TOPICS = Content(kind=RESOURCE_TOPIC, names=named("n", 50_000))
A_COSTLY_PATTERN = Content(
    kind=RESOURCE_CLIENT_METRICS,
    names=["m"],
    settings=[("match", "client_id=(?i:" + "[\x01-\uffff]" * 4_000 + ")")],
)


def of_one_broker(kind: str, count: int, first: int = 0) -> Content:
    settings: list[tuple[str, str | None]] = [(name, "v") for name in named(kind, count, first)]
    return Content(kind=RESOURCE_BROKER, names=[""], settings=settings)


@pytest.fixture(scope="module")
def driven() -> Iterator[Driven]:
    driven = Driven()
    for first in range(0, SMALL, SMALL // 2):
        driven.ask("create_topics", Content(topics=SMALL_TOPICS[first : first + SMALL // 2]))
    driven.ask("create_topics", Content(topics=LARGE_TOPIC, count=LARGE))
    driven.ask("find_coordinator", Content(names=["g0"], kind=0))
    yield driven
    driven.core.stop(0)


LARGEST: list[tuple[str, Content]] = [
    ("find_coordinator", MANY),
    ("init_producer_id", Content(transactional_id=None)),
    ("describe_cluster", Content()),
    ("describe_quorum", Content(topics=[])),
    ("list_config_resources", Content()),
    ("describe_configs", OF_TOPICS),
    ("describe_log_dirs", MANY),
    ("describe_log_dirs", replace(MANY, topics=None)),
    ("describe_producers", MANY),
    ("delete_records", replace(MANY, offset=-1)),
    ("alter_configs", replace(OF_TOPICS, settings=[("retention.ms", "70000")])),
    ("incremental_alter_configs", replace(OF_TOPICS, settings=[("segment.ms", "70000")])),
    ("incremental_alter_configs", OF_NEW_TOPICS),
    ("incremental_alter_configs", of_one_broker("unknown.", UNKNOWN_NAMES_MAX)),
    ("incremental_alter_configs", of_one_broker("unknown.", RECORDS_MAX, 1)),
    ("alter_configs", of_one_broker("other.", RECORDS_MAX)),
    ("incremental_alter_configs", A_COSTLY_PATTERN),
    ("create_topics", Content(topics=NEW_TOPICS)),
    ("create_partitions", Content(topics=SMALL_TOPICS, count=2)),
    ("offset_commit", MANY),
    ("offset_fetch", replace(MANY, names=["commits"])),
    ("offset_fetch", replace(MANY, names=["commits"], topics=None)),
    ("offset_fetch", replace(MANY, topics=None)),
    ("offset_delete", MANY),
    ("join_group", GROUP),
    ("sync_group", GROUP),
    ("heartbeat", Content(group="")),
    ("leave_group", GROUP),
    ("describe_groups", MANY),
    ("list_groups", MANY),
    ("delete_groups", MANY),
    ("consumer_group_heartbeat", Content(member="member", topics=SMALL_TOPICS[:2_000])),
    ("consumer_group_describe", MANY),
    ("add_partitions_to_txn", MANY),
    ("describe_acls", Content()),
    ("create_acls", Content(names=named("n", 10_000))),
    ("delete_acls", Content(names=named("n", 10_000))),
    ("sasl_handshake", Content()),
    ("sasl_authenticate", Content()),
    ("create_delegation_token", Content()),
    ("renew_delegation_token", Content()),
    ("expire_delegation_token", Content()),
    ("describe_delegation_token", Content(names=[])),
    ("alter_user_scram_credentials", Content(names=named("u", CREDENTIALS_MAX))),
    ("describe_user_scram_credentials", Content(names=[])),
    ("unregister_broker", Content()),
    ("unregister_controller", Content()),
    ("add_raft_voter", Content(names=["CONTROLLER"] * 10_000)),
    ("remove_raft_voter", Content()),
    ("alter_replica_log_dirs", MANY),
    ("elect_leaders", MANY),
    ("elect_leaders", replace(MANY, topics=None)),
    ("alter_partition_reassignments", MANY),
    ("list_partition_reassignments", MANY),
    ("update_features", Content(names=named("f", 20_000))),
    (
        "alter_client_quotas",
        Content(names=named("u", QUOTAS_MAX), settings=[("producer_byte_rate", "1")]),
    ),
    ("describe_client_quotas", Content(names=[])),
    ("add_offsets_to_txn", Content(transactional_id="t", group="g0")),
    ("end_txn", Content(transactional_id="t")),
    ("write_txn_markers", MANY),
    ("txn_offset_commit", MANY),
    ("describe_transactions", MANY),
    ("list_transactions", MANY),
    ("delete_topics", Content(topics=SMALL_TOPICS)),
]


def test_every_api_has_its_largest_request() -> None:
    assert {api for api, _ in LARGEST} == {row.name for row in ROWS}


@pytest.mark.load
@pytest.mark.parametrize(
    ("api", "content"), LARGEST, ids=[f"{n}-{api}" for n, (api, _) in enumerate(LARGEST)]
)
def test_no_request_blocks_the_control_thread(driven: Driven, api: str, content: Content) -> None:
    _, calls = driven.ask(api, content)
    print(f"{api}: {calls} calls")
    assert calls <= TURN_CALLS_MAX
