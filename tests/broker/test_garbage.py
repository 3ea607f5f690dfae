"""Requests leave no work for the garbage collector: their objects are freed when they end.

`serve` depends on it, because it excludes objects that survive a full collection from later ones.
"""

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.runtime.requests.calls import alter_configs
from pykafka_core.errors import KafkaError
from pykafka_core.handlers.registry import ROWS
from pykafka_core.protocol.messages import Message, MetadataRequest
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC, ConfigResource
from tests.support.every_api import Content, request
from tests.support.patience import seconds
from tests.support.simulated.broker import SimulatedBroker
from tests.support.wire import Connection

ROOT = Path(__file__).parents[2]
TOO_MANY = 20_000
RESOURCES = [
    *((RESOURCE_TOPIC, name) for name in ("orders", "missing", "", "/")),
    *((RESOURCE_BROKER, name) for name in ("", "1", "7", "x")),
]
SETTINGS: list[tuple[str, str | None]] = [
    ("retention.ms", "7"),
    ("retention.ms", "x"),
    ("unknown", "x"),
    ("retention.ms", None),
]


Sent = Iterator[tuple[str, Content]]
"""APIs, each with the content of one request."""


def topic_requests() -> Sent:
    for name in ("orders", "orders", "", "/", "x" * 300):
        yield "create_topics", Content(topics=[(name, [])])
    for count in (0, -7, TOO_MANY):
        yield "create_topics", Content(topics=[("other", [])], count=count)
    yield "create_topics", Content(topics=[("other", [])], settings=[("retention.ms", "x")])
    yield from setting_requests()
    for name, count in (("orders", 3), ("orders", 1), ("orders", TOO_MANY), ("x", 2)):
        yield "create_partitions", Content(topics=[(name, [])], count=count)
    yield "describe_log_dirs", Content(topics=None)
    for name in ("orders", "missing"):
        yield "describe_producers", Content(topics=[(name, [0, 7])])
        yield "delete_records", Content(topics=[(name, [0])])


def setting_requests() -> Sent:
    for kind, name in RESOURCES:
        for setting in SETTINGS:
            content = Content(kind=kind, names=[name], settings=[setting])
            yield "incremental_alter_configs", content
            yield "alter_configs", content
        yield "describe_configs", Content(kind=kind, names=[name])
    names = [f"n{n}" for n in range(TOO_MANY)]
    yield "incremental_alter_configs", Content(kind=RESOURCE_TOPIC, names=names)
    yield "list_config_resources", Content()


def group_requests() -> Sent:
    yield "find_coordinator", Content(names=["g"], kind=0)
    for member in ("", "stranger"):
        yield "join_group", Content(group="g", member=member, names=["range"], text="consumer")
    of_group = Content(group="g", members=["stranger"])
    yield from (("sync_group", Content(group="g")), ("heartbeat", of_group))
    yield "offset_commit", Content(group="g", topics=[])
    yield "offset_commit", of_group
    yield "offset_fetch", Content(names=["g"], topics=None)
    yield "offset_delete", of_group
    yield "describe_groups", Content(names=["g", "missing"])
    yield from (("list_groups", of_group), ("leave_group", of_group))
    yield from [("delete_groups", Content(names=["g"]))] * 2
    for member, epoch in (("a", 0), ("b", 0), ("stranger", 7), ("a", -1)):
        yield "consumer_group_heartbeat", Content(group="c", member=member, epoch=epoch)
    yield "consumer_group_describe", Content(names=["c", "missing"])


def transaction_requests() -> Sent:
    yield "find_coordinator", Content(names=["t"])
    yield from (("init_producer_id", Content(transactional_id=name)) for name in (None, "t"))
    for verify_only in (False, True):
        for name in ("orders", "missing"):
            content = Content(topics=[(name, [0, 7])], transactional_id="t")
            yield "add_partitions_to_txn", replace(content, verify_only=verify_only)
    for name in ("t", "missing"):
        for api in ("add_offsets_to_txn", "end_txn"):
            yield api, Content(transactional_id=name, group="g")
    yield "txn_offset_commit", Content(transactional_id="t", group="g")
    yield "write_txn_markers", Content()
    yield "describe_transactions", Content(names=["t", "missing"])
    yield from (("list_transactions", Content(optional=pattern)) for pattern in (None, "("))


def cluster_requests() -> Sent:
    yield "elect_leaders", Content(topics=None)
    for name in ("orders", "missing"):
        yield "elect_leaders", Content(topics=[(name, [0, 7])])
        for replicas in (None, [1], [7]):
            content = Content(topics=[(name, [0])], replicas=replicas)
            yield "alter_partition_reassignments", content
    yield "list_partition_reassignments", Content(topics=None)
    yield "alter_replica_log_dirs", Content(text="/nowhere", topics=[("orders", [0, 7])])
    for entity in ("user", "missing"):
        limit = ("producer_byte_rate", "1e9")
        yield "alter_client_quotas", Content(entity=entity, names=["u"], settings=[limit])
    yield "describe_client_quotas", Content(names=[])
    yield "describe_client_quotas", Content(entity="missing")
    yield from (("update_features", Content(names=[n])) for n in ("transaction.version", "missing"))
    yield "describe_quorum", Content(topics=[])
    for api in ("describe_cluster", "unregister_broker", "unregister_controller"):
        yield api, Content()
    yield from ((api, Content(names=[])) for api in ("add_raft_voter", "remove_raft_voter"))


def security_requests() -> Sent:
    for api in ("describe_acls", "create_acls", "delete_acls", "sasl_authenticate"):
        yield api, Content()
    yield "sasl_handshake", Content(text="PLAIN")
    for what in ("create", "renew", "expire", "describe"):
        yield f"{what}_delegation_token", Content(names=[])
    for mechanism in (1, 9):
        for operation in (1, 0, 1):
            content = Content(names=["u"], kind=mechanism, operation=operation)
            yield "alter_user_scram_credentials", content
    yield "describe_user_scram_credentials", Content(names=[])


def sent() -> Sent:
    """Yield valid and invalid requests of each API."""
    yield from topic_requests()
    yield from group_requests()
    yield from transaction_requests()
    yield from cluster_requests()
    yield from security_requests()
    yield from (("delete_topics", Content(topics=[(name, [])])) for name in ("orders", "missing"))


def requests() -> Iterator[Message]:
    yield from (request(api, content) for api, content in sent())


def test_every_api_has_requests() -> None:
    assert {api for api, _ in sent()} == {row.name for row in ROWS}


@pytest.mark.load
@pytest.mark.parametrize("check", ["requests_of_clients", "requests_of_the_process_itself"])
def test_no_request_makes_a_reference_cycle(check: str) -> None:
    """Runs in a separate process, because threads of other tests may also create cycles."""
    script = f"import gc; gc.disable(); from {__name__} import check_{check}; check_{check}()"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=seconds(300))


def check_requests_of_clients() -> None:
    for asked in requests():
        SimulatedBroker().ask(asked)  # imports and caches of the first request
    broker = SimulatedBroker()
    gc.collect()
    for asked in requests():
        broker.ask(asked)
        assert gc.collect() == 0, f"{type(asked).__name__}: {str(asked)[:300]}"


def ways_without_a_client(broker: Broker, connection: Connection) -> Iterator[str]:
    """Send requests of this process; yield the name of each after its end."""
    broker.create_topic("orders")
    yield "creation"
    with suppress(KafkaError):
        broker.create_topic("orders")
    yield "refused creation"
    broker.undo_alterations(["log.retention.ms", "min.insync.replicas"])
    yield "nothing to undo"
    broker._ask(alter_configs({ConfigResource(RESOURCE_BROKER, ""): {"log.retention.ms": "7"}}))
    broker.undo_alterations(["log.retention.hours"])
    yield "undone alteration"
    asked = MetadataRequest.MetadataRequestTopic
    names = ("new", "new", "bad/name", "orders", "or.ders", "or_ders")
    for name in names:
        connection.ask(
            3, 12, MetadataRequest(topics=[asked(name=name)], allow_auto_topic_creation=True)
        )
        broker.topics()
        yield f"creation by Metadata of {name}"
    for name in ("orders", "orders", "new", "or.ders"):
        with suppress(KafkaError):
            broker.delete_topic(name)
        yield f"deletion of {name}"


def check_requests_of_the_process_itself() -> None:
    with Broker() as broker, Connection(broker.bootstrap_servers) as connection:
        for _ in ways_without_a_client(broker, connection):
            pass  # imports and caches of the first request
        gc.collect()
        for way in ways_without_a_client(broker, connection):
            assert gc.collect() == 0, way


def test_cycles_that_survive_a_full_collection_are_freed_later() -> None:
    script = """if True:
        import gc
        from pykafka_core.cli.serve import OBJECTS_FREE, _begin_collecting
        _begin_collecting()
        before = gc.get_freeze_count()
        for _ in range(40):
            cycles = [[] for _ in range(50_000)]
            for cycle in cycles:
                cycle.append(cycle)
            gc.collect()
            del cycles, cycle
            assert gc.get_freeze_count() <= 2 * before + OBJECTS_FREE + 200_000
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=seconds(300))


def test_server_freezes_objects_that_survive_a_full_collection() -> None:
    script = """if True:
        import gc
        from pykafka_core.cli.serve import _begin_collecting
        _begin_collecting()
        before = gc.get_freeze_count()
        kept = [[] for _ in range(100_000)]
        gc.collect()
        assert gc.get_freeze_count() >= before + 100_000
        assert len(gc.get_objects()) < 1000
        del kept
        assert gc.get_freeze_count() < before + 1000
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=seconds(300))
