"""Message ids: their sources and their limits."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pykafka_core.errors import MessageIdError

ID_SIZE_MAX: Final = 1024
"""Bytes. PostgreSQL rejects index entries over 2,704 bytes; an id of half a page is not useful."""

LIST_MAX: Final = 1 << 16
"""Ids per list of bytes objects, for databases that accept nothing else."""

Record = Any
"""A ``confluent_kafka.Message``, or an object with its ``topic partition offset headers``."""

IdSource = Callable[[Record], object]
"""Returns a record's id: bytes, or text (encoded as UTF-8)."""


def header_id(name: str) -> IdSource:
    """Return a source of ids in the header ``name``; if it is repeated, in the last one.

    Kafka's ``lastHeader`` has the same rule.
    """

    def value_of(record: Record) -> object:
        found = [value for key, value in record.headers() or () if key == name]
        if not found:
            raise MessageIdError(
                f"no header {name!r}: every record needs it; let the producer set it, or choose other ids"
            )
        return found[-1]

    return value_of


def ids_of(records: Sequence[Record], source: IdSource) -> list[bytes]:
    """Return the checked id of every record.

    Raises:
        MessageIdError: Names the first record without a usable id.
        Exception: Raised by the source, with a note that names the record.
    """
    return [_id_of(record, source) for record in records]


def _id_of(record: Record, source: IdSource) -> bytes:
    try:
        return message_id(source(record))
    except MessageIdError as error:
        raise MessageIdError(f"{_place(record)}: {error}") from None
    except Exception as error:
        error.add_note(f"from the function that gives message ids, for the {_place(record)}")
        raise


def _place(record: Record) -> str:
    return f"record at offset {record.offset()} of {record.topic()}-{record.partition()}"


def message_id(value: object) -> bytes:
    """Return the bytes of an id.

    Args:
        value: 1 to `ID_SIZE_MAX` bytes, or text of this size in UTF-8.

    Raises:
        MessageIdError: The value has another type or size.
    """
    if isinstance(value, str):
        value = _encoded(value)
    if type(value) is not bytes:
        raise MessageIdError(f"a message id is bytes or str, not {type(value).__name__}")
    if not 1 <= len(value) <= ID_SIZE_MAX:
        raise MessageIdError(
            f"a message id has 1 to {ID_SIZE_MAX} bytes, this one {len(value)}; hash it if it is long"
        )
    return value


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MessageIdError(f"a message id's text must have a form in UTF-8: {error}") from None


def checked_ids(ids: Sequence[bytes]) -> list[bytes]:
    """Return the ids; check that each is bytes of a valid size."""
    return [value if _is_plain(value) else _refused(value) for value in ids]


def _is_plain(value: object) -> bool:
    return type(value) is bytes and 0 < len(value) <= ID_SIZE_MAX


def _refused(value: object) -> bytes:
    if isinstance(value, str):
        raise MessageIdError("a ledger claims bytes, not str; encode the id")
    return message_id(value)


def is_arrow(ids: object) -> bool:
    """Return whether `arrow_ids` accepts these: an Arrow array or stream of any library."""
    return hasattr(ids, "__arrow_c_array__") or hasattr(ids, "__arrow_c_stream__")


def arrow_ids(ids: Any) -> Any:
    """Return the ids of an Arrow array or stream as a chunked array, checked column-wise.

    Raises:
        MessageIdError: There are nulls, the type is not binary or string, or an id is empty or too
            long.
    """
    import pyarrow as pa

    # Some objects offer both; a chunked array exposes all its content only as a stream.
    chunked = (
        pa.chunked_array(ids)
        if hasattr(ids, "__arrow_c_stream__")
        else pa.chunked_array([pa.array(ids)])
    )
    if not (_is_text(pa, chunked.type) or _is_binary(pa, chunked.type)):
        raise MessageIdError(
            f"message ids are binary or string, not {chunked.type}; cast or fingerprint the column"
        )
    if chunked.null_count:
        raise MessageIdError(f"{chunked.null_count} of {len(chunked)} message ids are null")
    for chunk in chunked.chunks:
        _check_sizes(chunk)
    return chunked


def _check_sizes(chunk: Any) -> None:
    import pyarrow.compute as pc

    if len(chunk) == 0:
        return
    sizes = pc.min_max(pc.binary_length(chunk)).as_py()
    if sizes["min"] < 1 or sizes["max"] > ID_SIZE_MAX:
        raise MessageIdError(
            f"a message id has 1 to {ID_SIZE_MAX} bytes, these {sizes['min']} to {sizes['max']}; "
            "fingerprint the column if ids are long"
        )


def lists_of(ids: Any) -> Iterator[list[bytes]]:
    """Yield the ids from `arrow_ids` as bytes objects, at most `LIST_MAX` at a time."""
    import pyarrow as pa

    for start in range(0, len(ids), LIST_MAX):
        yield ids.slice(start, LIST_MAX).cast(pa.large_binary()).to_pylist()


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )
