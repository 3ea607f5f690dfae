"""The APIs with their modules and versions.

The versions are those of Kafka 4.4.0, and ``ApiVersions`` offers them unchanged. An API without a
row is not implemented. A module is imported at its first request.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, NamedTuple

from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import HandlerWork, Outcome

Handle = Callable[[Context, Any], Outcome | HandlerWork]


class Owner(Enum):
    """The node that decides requests of an API.

    It determines the results that a handler may return.
    """

    IMAGE = "any node, from its committed image: a message"
    CONTROLLER = "the active controller, one after the other: a message or records to propose"
    ANY_NODE = "any node; records that it needs from the controller first are proposed"
    LOCAL = "the node whose logs are meant: a message or maintenance of them"
    SHARD = "the coordinator of a key, or of many: a message or operations of its shards"
    QUORUM = "this node's replica of the metadata quorum; it has no handler"


class Row(NamedTuple):
    """One API; ``module`` is the module of its handler, below ``pykafka_core.handlers``."""

    api_key: int
    module: str
    versions: tuple[int, int]
    owner: Owner

    @property
    def name(self) -> str:
        """The API's name in snake case."""
        return self.module.rpartition(".")[2]


ROWS: tuple[Row, ...] = (
    Row(8, "offsets.offset_commit", (2, 10), Owner.SHARD),
    Row(9, "offsets.offset_fetch", (1, 10), Owner.SHARD),
    Row(10, "coordinators.find_coordinator", (0, 6), Owner.ANY_NODE),
    Row(11, "groups.join_group", (0, 9), Owner.SHARD),
    Row(12, "groups.heartbeat", (0, 4), Owner.SHARD),
    Row(13, "groups.leave_group", (0, 5), Owner.SHARD),
    Row(14, "groups.sync_group", (0, 5), Owner.SHARD),
    Row(15, "groups.describe_groups", (0, 6), Owner.SHARD),
    Row(16, "groups.list_groups", (0, 5), Owner.SHARD),
    Row(17, "security.sasl_handshake", (0, 1), Owner.IMAGE),
    Row(19, "topics.create_topics", (2, 7), Owner.CONTROLLER),
    Row(20, "topics.delete_topics", (1, 6), Owner.CONTROLLER),
    Row(21, "logs.delete_records", (0, 2), Owner.LOCAL),
    Row(22, "transactions.init_producer_id", (0, 5), Owner.ANY_NODE),
    Row(24, "transactions.add_partitions_to_txn", (0, 5), Owner.SHARD),
    Row(25, "transactions.add_offsets_to_txn", (0, 4), Owner.SHARD),
    Row(26, "transactions.end_txn", (0, 5), Owner.SHARD),
    Row(27, "logs.write_txn_markers", (1, 2), Owner.LOCAL),
    Row(28, "offsets.txn_offset_commit", (0, 6), Owner.SHARD),
    Row(29, "security.describe_acls", (1, 3), Owner.IMAGE),
    Row(30, "security.create_acls", (1, 3), Owner.IMAGE),
    Row(31, "security.delete_acls", (1, 3), Owner.IMAGE),
    Row(32, "configs.describe_configs", (1, 4), Owner.IMAGE),
    Row(33, "configs.alter_configs", (0, 2), Owner.CONTROLLER),
    Row(34, "logs.alter_replica_log_dirs", (1, 2), Owner.IMAGE),
    Row(35, "logs.describe_log_dirs", (1, 5), Owner.LOCAL),
    Row(36, "security.sasl_authenticate", (0, 2), Owner.IMAGE),
    Row(37, "topics.create_partitions", (0, 3), Owner.CONTROLLER),
    Row(38, "security.create_delegation_token", (1, 3), Owner.IMAGE),
    Row(39, "security.renew_delegation_token", (1, 2), Owner.IMAGE),
    Row(40, "security.expire_delegation_token", (1, 2), Owner.IMAGE),
    Row(41, "security.describe_delegation_token", (1, 3), Owner.IMAGE),
    Row(42, "groups.delete_groups", (0, 3), Owner.SHARD),
    Row(43, "topics.elect_leaders", (0, 2), Owner.CONTROLLER),
    Row(44, "configs.incremental_alter_configs", (0, 1), Owner.CONTROLLER),
    Row(45, "topics.alter_partition_reassignments", (0, 1), Owner.CONTROLLER),
    Row(46, "topics.list_partition_reassignments", (0, 0), Owner.IMAGE),
    Row(47, "offsets.offset_delete", (0, 0), Owner.SHARD),
    Row(48, "quotas.describe_client_quotas", (0, 1), Owner.IMAGE),
    Row(49, "quotas.alter_client_quotas", (0, 1), Owner.CONTROLLER),
    Row(50, "security.describe_user_scram_credentials", (0, 0), Owner.IMAGE),
    Row(51, "security.alter_user_scram_credentials", (0, 0), Owner.CONTROLLER),
    Row(55, "cluster.describe_quorum", (0, 2), Owner.CONTROLLER),
    Row(57, "cluster.update_features", (0, 2), Owner.CONTROLLER),
    Row(60, "cluster.describe_cluster", (0, 2), Owner.IMAGE),
    Row(61, "logs.describe_producers", (0, 0), Owner.LOCAL),
    Row(64, "cluster.unregister_broker", (0, 0), Owner.CONTROLLER),
    Row(65, "transactions.describe_transactions", (0, 0), Owner.SHARD),
    Row(66, "transactions.list_transactions", (0, 2), Owner.SHARD),
    Row(68, "groups.consumer_group_heartbeat", (0, 1), Owner.SHARD),
    Row(69, "groups.consumer_group_describe", (0, 1), Owner.SHARD),
    Row(74, "configs.list_config_resources", (0, 1), Owner.IMAGE),
    Row(80, "cluster.add_raft_voter", (0, 1), Owner.CONTROLLER),
    Row(81, "cluster.remove_raft_voter", (0, 0), Owner.CONTROLLER),
    Row(94, "cluster.unregister_controller", (0, 0), Owner.CONTROLLER),
)

QUORUM_ROWS: tuple[Row, ...] = (
    Row(1, "quorum.fetch", (16, 18), Owner.QUORUM),
    Row(52, "quorum.vote", (1, 2), Owner.QUORUM),
    Row(53, "quorum.begin_quorum_epoch", (1, 1), Owner.QUORUM),
    Row(54, "quorum.end_quorum_epoch", (1, 1), Owner.QUORUM),
    Row(59, "quorum.fetch_snapshot", (1, 1), Owner.QUORUM),
    Row(82, "quorum.update_raft_voter", (0, 0), Owner.QUORUM),
)
"""The requests between replicas of the metadata quorum, at controller listeners.

They have directory ids (KIP-853).
"""

_OF_CONTROLLERS: tuple[Row, ...] = (
    Row(56, "topics.alter_partition", (2, 3), Owner.CONTROLLER),
    Row(62, "cluster.broker_registration", (0, 4), Owner.CONTROLLER),
    Row(63, "cluster.broker_heartbeat", (0, 2), Owner.CONTROLLER),
    Row(67, "cluster.allocate_producer_ids", (0, 0), Owner.CONTROLLER),
    Row(70, "cluster.controller_registration", (0, 0), Owner.CONTROLLER),
    Row(73, "cluster.assign_replicas_to_dirs", (0, 0), Owner.CONTROLLER),
)
"""The requests of brokers and controllers to the active controller, which no client may send."""

_OF_BOTH = frozenset(
    {19, 20, 29, 30, 31, 32, 33, 37, 43, 44, 45, 46, 49, 51, 55, 57, 60, 64, 80, 81, 94}
)
"""The APIs of ``ROWS`` that a controller listener also serves."""

VOTER_APIS = frozenset({80, 81})
"""The APIs that the metadata quorum handles if it has more than one replica (KIP-853)."""

CONTROLLER_ROWS: tuple[Row, ...] = tuple(
    sorted((*(row for row in ROWS if row.api_key in _OF_BOTH), *_OF_CONTROLLERS))
)
"""The APIs of a controller listener in addition to `QUORUM_ROWS`."""

_READ_FROM_ANY = frozenset({29, 32, 60})
"""The APIs that a broker serves itself, even if another node is the active controller."""

FORWARDED: Mapping[int, Row] = {
    row.api_key: row for row in ROWS if row.api_key in _OF_BOTH - _READ_FROM_ANY
}
"""The APIs that a broker may forward to the active controller in an Envelope.

``ApiKeys.forwardable`` in Kafka.
"""

BY_KEY: Mapping[int, Row] = {row.api_key: row for row in ROWS}

CONTROLLER_BY_KEY: Mapping[int, Row] = {row.api_key: row for row in CONTROLLER_ROWS}

API_VERSIONS: Mapping[int, tuple[int, int]] = {row.api_key: row.versions for row in ROWS}
"""The versions of Python's APIs in ApiVersions; Rust adds its own APIs."""

_loaded: dict[int, Handle] = {}


def handler_of(api_key: int) -> Handle:
    """Return the handler of an API that has a row; its module is imported on first use."""
    found = _loaded.get(api_key)
    if found is None:
        row = BY_KEY.get(api_key) or CONTROLLER_BY_KEY[api_key]
        module = import_module(f"pykafka_core.handlers.{row.module}")
        found = _loaded[api_key] = module.handle
    return found
