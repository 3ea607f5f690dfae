"""``dump-log``: print the content of a log's files in the format of Kafka's DumpLogSegments."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.output import json_bytes, print_json

from .dump_files import DUMPS, Fault, Rows


def dump_log(
    paths: Sequence[Path], *, records: bool, contents: bool, verify: bool, as_json: bool
) -> None:
    """Print each file while it is read; a directory stands for its files.

    Args:
        records: Print the metadata of each record below its batch.
        contents: Also print keys and values.
        verify: Only print faults.

    Raises:
        CliError: A file cannot be read or has an unknown kind; or, with ``verify``, it has a fault.
    """
    faults = 0
    for path in _files(paths):
        if not (verify or as_json):
            print(f"Dumping {path}")
            if path.suffix == ".log":
                print(f"Log starting offset: {int(path.stem)}")
        for row in _rows(path, records or contents, contents):
            faults += isinstance(row, Fault)
            if isinstance(row, Fault) or not verify:
                _print(path, row, as_json=as_json)
    if verify and faults:
        raise CliError(f"{faults} {'fault' if faults == 1 else 'faults'} found")


def _rows(path: Path, records: bool, contents: bool) -> Rows:
    """Yield the rows of a file. A read error names the file; errors of the output pass through."""
    try:
        yield from DUMPS[path.suffix](path, records, contents)
    except OSError as error:
        raise CliError(f"cannot read {error.filename or path}: {error.strerror}") from error


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = sorted(file for file in path.iterdir() if _is_known(file))
            if not found:
                advice = "name files, or a partition's directory such as data/orders-0"
                raise CliError(f"{path} does not contain a log file", advice, exit_code=USAGE)
            yield from found
        elif _is_known(path):
            yield path
        else:
            advice = f"log files are <base offset>{{{','.join(DUMPS)}}}"
            raise CliError(f"{path} is not a log file", advice, exit_code=USAGE)


def _is_known(path: Path) -> bool:
    return path.suffix in DUMPS and path.stem.isdecimal()


def _print(path: Path, row: Mapping[str, object] | Fault, *, as_json: bool) -> None:
    if isinstance(row, Fault):
        if as_json:
            print_json({"file": str(path), "fault": row.text})
        else:
            print(f"{path}: {row.text}")
    elif as_json:
        print_json({"file": str(path), **{name: _json(value) for name, value in row.items()}})
    else:
        indent = "| " if "headerKeys" in row else ""  # a record is below its batch
        print(indent + " ".join(f"{name}: {_text(value)}" for name, value in row.items()))


def _json(value: object) -> object:
    return json_bytes(value) if isinstance(value, bytes) else value


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return f"[{','.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
