"""Which API is answered by which module, in which versions.

The versions are those of Kafka 4.2.1 (``ApiVersions`` offers them as they stand here); an API that
is not built has no row. Modules are imported when first needed: a broker that nobody asks to
describe its quorum never loads that code.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Outcome, Steps

Handle = Callable[[Context, Any], Outcome | Steps]


class Row(NamedTuple):
    """One API.

    Attributes:
        module: Below ``pykafka_core.handlers``.
        writes: It may propose metadata records, so it waits for the batch in flight.
    """

    api_key: int
    module: str
    versions: tuple[int, int]
    writes: bool = False

    @property
    def name(self) -> str:
        """The API's name in snake case."""
        return self.module.rpartition(".")[2]


ROWS: tuple[Row, ...] = (
    Row(10, "coordinators.find_coordinator", (0, 6)),
    Row(19, "topics.create_topics", (2, 7), writes=True),
    Row(20, "topics.delete_topics", (1, 6), writes=True),
    Row(21, "logs.delete_records", (0, 2)),
    Row(22, "coordinators.init_producer_id", (0, 5), writes=True),
    Row(32, "configs.describe_configs", (1, 4)),
    Row(33, "configs.alter_configs", (0, 2), writes=True),
    Row(35, "logs.describe_log_dirs", (1, 4)),
    Row(37, "topics.create_partitions", (0, 3), writes=True),
    Row(44, "configs.incremental_alter_configs", (0, 1), writes=True),
    Row(55, "cluster.describe_quorum", (0, 2)),
    Row(60, "cluster.describe_cluster", (0, 2)),
    Row(61, "logs.describe_producers", (0, 0)),
    Row(74, "configs.list_config_resources", (0, 1)),
)

BY_KEY: Mapping[int, Row] = {row.api_key: row for row in ROWS}

API_VERSIONS: Mapping[int, tuple[int, int]] = {row.api_key: row.versions for row in ROWS}
"""What ApiVersions offers of Python's APIs; Rust adds its own."""

_loaded: dict[int, Handle] = {}


def handler_of(api_key: int) -> Handle:
    """The handler of an API that has a row; its module is imported on first use."""
    found = _loaded.get(api_key)
    if found is None:
        module = import_module(f"pykafka_core.handlers.{BY_KEY[api_key].module}")
        found = _loaded[api_key] = module.handle
    return found
