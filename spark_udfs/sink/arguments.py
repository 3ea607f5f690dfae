"""Validation of a sink's arguments and columns, before any row is read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pykafka_core.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PLACE_TYPES: Final = {"topic": "string", "partition": "int", "offset": "bigint"}


def check_arguments(
    *,
    ledger: object,
    group: object,
    ids: object,
    effect: object,
    brokers: object,
    quarantine: object,
    fail_on_data_loss: object,
    progress: object,
    allow_new_query: object,
    effect_on: object,
) -> None:
    """Check that all arguments are usable.

    Raises:
        ConfigurationError: Some are not; all problems are listed.
    """
    from pyspark.sql import Column

    by_batches, on_executors = progress == "batches", effect_on == "executors"
    good = {
        "ledger is a Ledger, such as SQLiteLedger(path)": hasattr(ledger, "transaction"),
        "group is a name": isinstance(group, str) and bool(group),
        "ids is the name of a column, a Column or None": ids is None
        or isinstance(ids, Column)
        or (isinstance(ids, str) and bool(ids)),
        f"effect is {_effect_wanted(ledger, effect)}": _is_effect(ledger, effect),
        f"quarantine is {_effect_wanted(ledger, quarantine)}, or None": quarantine is None
        or _is_effect(ledger, quarantine),
        "quarantine has no effect without ids; leave it out": quarantine is None or ids is not None,
        # Ledgers without id support have this attribute: the error text of `claim`.
        getattr(ledger, "ids_refused", ""): ids is None or not hasattr(ledger, "ids_refused"),
        'progress is "offsets" or "batches"': progress in ("offsets", "batches"),
        'brokers is "host:port", settings of librdkafka, KafkaBrokers or a function': brokers
        is None
        or (isinstance(brokers, str | Mapping) and bool(brokers))
        or callable(brokers),
        'brokers is needed for progress="offsets": "host:port"': by_batches or brokers is not None,
        'brokers has no effect with progress="batches"; leave it out': not by_batches
        or brokers is None,
        "fail_on_data_loss is True or False": type(fail_on_data_loss) is bool,
        'allow_new_query is True or False, and only for progress="batches"': allow_new_query
        is False
        or (allow_new_query is True and by_batches),
        'effect_on is "driver" or "executors"': effect_on in ("driver", "executors"),
        'effect_on="executors" needs a ledger on a server, such as PostgresLedger(conninfo)': hasattr(
            ledger, "partitions_transaction"
        )
        or not on_executors,
        'effect_on="executors" needs progress="offsets"': not (on_executors and by_batches),
    }
    problems = [problem for problem, is_good in good.items() if not is_good]
    if problems:
        raise ConfigurationError(problems)


def _is_effect(ledger: object, effect: object) -> bool:
    return callable(effect) or (
        isinstance(effect, str) and bool(effect.strip()) and hasattr(ledger, "statement")
    )


def _effect_wanted(ledger: object, effect: object) -> str:
    if isinstance(effect, str) and not hasattr(ledger, "statement"):
        return f"a function of (connection, table): a {type(ledger).__name__} runs no statements"
    return "a function of (connection, table) or a statement of SQL"


def check_columns(schema: "StructType", id_column: str | None, *, places: bool) -> None:
    """Check that a batch has each required column once; names are compared ignoring case.

    Raises:
        ConfigurationError: It does not; all problems are listed.
    """
    types: dict[str, Any] = {field.name: field.dataType.simpleString() for field in schema.fields}
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    problems = [f"two columns {name}: rename one" for name in repeated]
    needed = {*(_PLACE_TYPES if places else ()), *(() if id_column is None else (id_column,))}
    alike = [one for one in types if one not in needed and one.lower() in map(str.lower, needed)]
    problems += [
        f"column {one} has the name of one that is needed, but for the case: rename it"
        for one in alike
    ]
    for name, wanted in _PLACE_TYPES.items() if places else ():
        if name not in types:
            problems.append(f"there is no column {name}: keep the Kafka source's in the select")
        elif types[name] != wanted:
            problems.append(f"column {name} must be {wanted}, not {types[name]}")
    if id_column is not None and id_column not in types:
        problems.append(f"there is no column {id_column!r} for ids")
    elif id_column is not None and types[id_column] not in ("binary", "string"):
        problems.append(
            f"ids must be binary or string, not {types[id_column]}: cast, or fingerprint"
        )
    if problems:
        raise ConfigurationError(problems)
