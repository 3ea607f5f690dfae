"""Which API is answered by which module, in which versions.

The versions are those of Kafka 4.2.1 (``ApiVersions`` offers them as they stand here); an API that
is not built has no row. Modules are imported when first needed: a broker that nobody asks to
describe its quorum never loads that code.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Outcome

Handle = Callable[[Context, Any], Outcome]


class Row(NamedTuple):
    """One API. ``writes``: it may propose metadata records, so it waits for the batch in flight."""

    api_key: int
    module: str
    versions: tuple[int, int]
    writes: bool = False


ROWS: tuple[Row, ...] = (
    Row(10, "find_coordinator", (0, 6)),
    Row(19, "create_topics", (2, 7), writes=True),
    Row(20, "delete_topics", (1, 6), writes=True),
    Row(21, "delete_records", (0, 2)),
    Row(22, "init_producer_id", (0, 5), writes=True),
    Row(32, "describe_configs", (1, 4)),
    Row(33, "alter_configs", (0, 2), writes=True),
    Row(35, "describe_log_dirs", (1, 4)),
    Row(37, "create_partitions", (0, 3), writes=True),
    Row(44, "incremental_alter_configs", (0, 1), writes=True),
    Row(55, "describe_quorum", (0, 2)),
    Row(60, "describe_cluster", (0, 2)),
    Row(61, "describe_producers", (0, 0)),
    Row(74, "list_config_resources", (0, 1)),
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
