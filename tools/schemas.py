"""Read the message schemas inside Apache Kafka's jars and write our tables from them.

A developer's tool, run when the Kafka version changes. The build and the tests do not need it:

    python tools/schemas.py ~/kafka/libs

It keeps facts only (names, types, versions, defaults, tags) and writes

- ``rust/wire/src/tables/``: a row for each API, message and field;
- ``pykafka_core/protocol/messages/__init__.pyi``: the classes as a type checker sees them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TABLES = "rust/wire/src/tables"
MAX = 32767  # a version without an upper end
JARS = [
    *("clients", "group-coordinator", "transaction-coordinator", "share-coordinator"),
    *("metadata", "raft", "storage"),
]
HEAD = "//! {0}. Written by `tools/schemas.py` from the schemas of Apache Kafka {1}; do not edit.\n"

Versions = tuple[int, int]
NEVER: Versions = (MAX, -1)


def versions(text: str | None) -> Versions:
    """``"3"``, ``"3-5"``, ``"3+"`` or ``"none"`` as first and last, both inclusive."""
    if text is None or text == "none":
        return NEVER
    if text.endswith("+"):
        return int(text[:-1]), MAX
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def snake_case(name: str) -> str:
    """``TopicId`` as ``topic_id``, ``UncleanLeaderElectionISR`` as ``..._isr``."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


@dataclass
class Field:
    """One field of a struct; `type` is an element's type when `is_list`."""

    name: str
    type: str
    is_list: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    ignorable: bool
    default: str | None
    flexible: bool  # False only for the client id of request headers, which is never compact


@dataclass
class Struct:
    """A message or a struct inside it."""

    name: str
    fields: list[Field]
    versions: Versions


@dataclass
class Message:
    """A message with all its structs; the first is the message itself."""

    name: str
    kind: str
    api_key: int
    versions: Versions
    flexible: Versions
    last_unstable: bool
    listeners: list[str]
    structs: list[Struct] = field(default_factory=list)


def parse(text: str) -> Message | None:
    """Read one schema; None if it does not describe a body, or has no valid version."""
    raw = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    if raw.get("type") not in KINDS or raw["validVersions"] == "none":
        return None
    message = Message(
        raw["name"],
        raw["type"],
        raw.get("apiKey", -1),
        versions(raw["validVersions"]),
        versions(raw.get("flexibleVersions")),
        raw.get("latestVersionUnstable", False),
        raw.get("listeners", []),
    )
    add_struct(message, raw["name"], raw["fields"], message.versions)
    for common in raw.get("commonStructs", []):
        add_struct(message, common["name"], common["fields"], versions(common["versions"]))
    return message


def add_struct(message: Message, name: str, rows: list[dict[str, Any]], within: Versions) -> None:
    """Add a struct, then the structs inside its fields."""
    struct = Struct(name, [], within)
    message.structs.append(struct)
    for row in rows:
        parsed = parse_field(row)
        struct.fields.append(parsed)
        if "fields" in row:
            add_struct(message, parsed.type, row["fields"], parsed.versions)


def parse_field(row: dict[str, Any]) -> Field:
    """Read one field; a tagged field may leave its versions to its tag."""
    is_list = row["type"].startswith("[]")
    default = row.get("default")
    return Field(
        snake_case(row["name"]),
        row["type"].removeprefix("[]"),
        is_list,
        versions(row.get("versions", row.get("taggedVersions"))),
        versions(row.get("nullableVersions")),
        versions(row.get("taggedVersions")),
        row.get("tag", -1),
        row.get("ignorable", False) in (True, "true"),
        None if default is None else str(default),
        row.get("flexibleVersions") != "none",
    )


def read_jars(libs: Path) -> tuple[str, dict[str, list[Message]]]:
    """All messages by jar, and the version of Kafka."""
    messages, version = {}, ""
    for jar in JARS:
        pattern = re.compile(rf"kafka-{jar}-([0-9.]+)\.jar")
        path, match = next((p, m) for p in libs.iterdir() if (m := pattern.fullmatch(p.name)))
        version = match[1]
        with zipfile.ZipFile(path) as archive:
            names = sorted(n for n in archive.namelist() if re.search(r"message|metadata", n))
            texts = [archive.read(n).decode() for n in names if n.endswith(".json")]
        messages[jar] = [m for m in map(parse, texts) if m is not None]
    for message in messages["storage"]:
        # Tiered storage's log has separate record types, with separate numbers.
        message.kind = message.kind.replace("metadata", "remote-metadata")
    return version, messages


def upper_case(name: str) -> str:
    """``CreateTopics`` as ``CREATE_TOPICS``."""
    return snake_case(name).upper()


def api_rows(messages: list[Message]) -> str:
    """``api_keys.rs``: a constant and a row for each API."""
    requests = sorted((m for m in messages if m.kind == "request"), key=lambda m: m.api_key)
    constants, rows = [], []
    for message in requests:
        name = message.name.removesuffix("Request")
        first, last = message.versions
        stable = last - message.last_unstable
        on_broker = str("broker" in message.listeners).lower()
        constants.append(f"    /// `{name}`.")
        constants.append(f"    pub const {upper_case(name)}: ApiKey = ApiKey({message.api_key});")
        rows.append(
            f'    Api::new({message.api_key}, "{name}", [{first}, {stable}, {last}], '
            f"{message.flexible[0]}, {on_broker}),"
        )
    return "\n".join(
        ["", "use crate::api_key::{Api, ApiKey};", "", "impl ApiKey {", *constants, "}", ""]
        + ["/// In order of their keys: key, name, [first, last stable, last] version,"]
        + ["/// first flexible version, whether on a broker's listener."]
        + ["pub static APIS: &[Api] = &[", *rows, "];", ""]
    )


OWN_TAG = 10_000
"""The tag of fields that we add: Kafka counts tags from 0, and its clients skip unknown ones."""


def add_own_fields(messages: list[Message]) -> None:
    """Add the tagged fields that only our brokers write and our commands read.

    DescribeLogDirs carries the states of replicas and directories for which Kafka has no field:
    their names, separated by commas.
    """
    state = {"name": "State", "type": "string", "tag": OWN_TAG, "taggedVersions": "2+"}
    described = next(m for m in messages if m.name == "DescribeLogDirsResponse")
    for struct in described.structs:
        if struct.name in ("DescribeLogDirsResult", "DescribeLogDirsPartition"):
            struct.fields.append(parse_field({**state, "ignorable": True}))


KINDS = {
    "request": "Request",
    "response": "Response",
    "metadata": "Metadata",
    "coordinator-key": "CoordinatorKey",
    "coordinator-value": "CoordinatorValue",
    "data": "Data",
    "remote-metadata": "RemoteMetadata",
}


def end(version: int) -> str:
    """A version, or the constant for no maximum."""
    return "MAX" if version == MAX else str(version)


def range_(pair: Versions) -> str:
    """Both ends as two arguments."""
    return f"{end(pair[0])}, {end(pair[1])}"


PRIMITIVES = [
    *("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64"),
    *("string", "bytes", "records", "uuid"),
]


def type_name(field: Field) -> str:
    """The name of a primitive in ``schema::Type``, or ``Of``."""
    return field.type.capitalize() if field.type in PRIMITIVES else "Of"


def field_row(field: Field, statics: dict[str, str]) -> str:
    """A field as a call of the ``const fn``s of ``schema``."""
    kind = type_name(field)
    if kind == "Of":
        kind = f"Of(&{statics[field.type]})"
    row = f'field("{field.name}", {kind}, {range_(field.versions)})'
    if field.is_list:
        row += ".list()"
    if field.nullable != NEVER:
        row += f".nullable({range_(field.nullable)})"
    if field.tagged != NEVER:
        row += f".tagged({field.tag:_}, {range_(field.tagged)})"
    if field.ignorable:
        row += ".ignorable()"
    return row + default_of(field)


def default_of(field: Field) -> str:
    """The end of a row, where the default is not what the type has anyway."""
    match field.default:
        case None | "" | "0" | "false" | "False":
            return ""
        case "null":
            return ".or_null()"
        case "true":
            return ".or(1)"
        case number:
            return f".or({int(number, 0):_})"


def message_rows(messages: list[Message], indexes: dict[str, int]) -> str:
    """The table of one jar, a line for each struct and each message; rustfmt skips it."""
    lines, rows = [], []
    for message in messages:
        prefix = upper_case(message.name)
        statics = {s.name: f"{prefix}_{upper_case(s.name)}" for s in message.structs[1:]}
        names = [prefix, *statics.values()]
        for index, (struct, name) in enumerate(zip(message.structs, names, strict=True)):
            fields = ", ".join(field_row(field, statics) for field in struct.fields)
            lines.append(
                f'static {name}: Struct = Struct {{ name: "{struct.name}", index: {index}, '
                f"fields: &[{fields}] }};"
            )
        first, last = message.versions
        rows.append(
            f'    Message::new({indexes[message.name]}, "{message.name}", '
            f"Kind::{KINDS[message.kind]}, {message.api_key}, [{first}, {last}], "
            f"{end(message.flexible[0])}, &[{', '.join('&' + name for name in names)}]),"
        )
    types = {type_name(f) for m in messages for s in m.structs for f in s.fields}
    lines += ["", "/// Messages of this jar.", f"pub static MESSAGES: [Message; {len(rows)}] = ["]
    head = ["", f"use crate::schema::Type::{{{', '.join(sorted(types))}}};"]
    head += ["use crate::schema::{Kind, MAX, Message, Struct, field};", ""]
    return "\n".join([*head, *lines, *rows, "];", ""])


def module_rows(jars: list[str]) -> str:
    """``tables.rs``."""
    modules = [jar.replace("-", "_") for jar in jars]
    skipped = (f"#[rustfmt::skip]\nmod {module};" for module in sorted(modules))
    lines = ["", "pub mod api_keys;", *skipped, ""]
    lines += ["use crate::schema::Message;", "", "/// All messages, by jar."]
    lines += ["pub static MESSAGES: &[&[Message]] = &["]
    return "\n".join([*lines, *(f"    &{module}::MESSAGES," for module in modules), "];", ""])


STUB = "pykafka_core/protocol/messages/__init__.pyi"
STUB_HEAD = '''"""The message classes as a type checker sees them.

Written by `tools/schemas.py` from the schemas of Apache Kafka {0}; do not edit.
"""

from typing import dataclass_transform

from pykafka_core.protocol.messages._build import Message as Message

@dataclass_transform(kw_only_default=True, eq_default=True)
class _Fields(Message): ...
'''
PYTHON_TYPES = {"bool": "bool", "float64": "float", "string": "str"}
PYTHON_TYPES |= dict.fromkeys(("uuid", "bytes", "records"), "bytes")


def python_type(field: Field, outer: str) -> str:
    """The annotation of a field."""
    name = PYTHON_TYPES.get(field.type, "int")
    if type_name(field) == "Of":
        name = f"{outer}.{field.type}"
    if field.is_list:
        name = f"list[{name}]"
    null = field.nullable != NEVER or field.default == "null" or field.type == "records"
    return f"{name} | None" if null else name


def stub_rows(messages: list[Message]) -> str:
    """The classes of all messages for ``__init__.pyi``."""
    lines = []
    for message in sorted(messages, key=lambda message: message.name):
        lines += ["", f"class {message.name}(_Fields):"]
        first = f"versions {message.versions[0]} to {message.versions[1]}"
        number = f"; number {message.api_key}" if message.api_key >= 0 else ""
        lines.append(f'    """``{message.name}``: {message.kind}, {first}{number}."""')
        lines.append("")
        own, *inner = message.structs
        lines += [f"    {f.name}: {python_type(f, message.name)} = ..." for f in own.fields]
        for struct in inner:
            lines += ["", f"    class {struct.name}(_Fields):"]
            lines += [
                f"        {f.name}: {python_type(f, message.name)} = ..." for f in struct.fields
            ]
    return "\n".join([*lines, ""])


def generate(libs: Path) -> dict[str, str]:
    """All files by their paths, not formatted yet."""
    version, by_jar = read_jars(libs)
    add_own_fields(by_jar["clients"])
    everything = [message for messages in by_jar.values() for message in messages]
    names = sorted(message.name for message in everything)
    indexes = {name: index for index, name in enumerate(names)}

    def rust(what: str, text: str) -> str:
        return HEAD.format(what, version) + text

    tables = {
        f"{TABLES}/{jar.replace('-', '_')}.rs": rust(
            f"Messages of `{jar}`", message_rows(messages, indexes)
        )
        for jar, messages in by_jar.items()
    }
    return {
        **tables,
        f"{TABLES}/api_keys.rs": rust("API keys", api_rows(by_jar["clients"])),
        f"{TABLES}.rs": rust("The tables", module_rows(list(by_jar))),
        STUB: STUB_HEAD.format(version) + stub_rows(everything),
    }


def write(libs: Path, root: Path) -> list[Path]:
    """Write all files below ``root``; their paths."""
    texts = generate(libs)
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    rust, stub = str(root / f"{TABLES}.rs"), str(root / STUB)
    subprocess.run(["rustfmt", "--edition", "2024", "--config-path", str(ROOT), rust], check=True)
    config = str(ROOT / "pyproject.toml")
    subprocess.run(["ruff", "format", "-q", "--config", config, stub], check=True)
    return [Path(name) for name in texts]


if __name__ == "__main__":
    write(Path(sys.argv[1]).expanduser(), ROOT)
