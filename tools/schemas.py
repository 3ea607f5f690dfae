"""Read the message schemas inside Apache Kafka's jars and write our tables from them.

A developer's tool, run when the Kafka version changes; nothing of the build or the tests needs it:

    python tools/schemas.py ~/kafka/libs

It keeps facts only (names, types, versions, defaults, tags) and writes

- ``rust/wire/src/tables/``: a row for each API, message and field;
- ``pykafka_core/protocol/messages/__init__.pyi``: the classes as a type checker sees them.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLES = ROOT / "rust/wire/src/tables"
MAX = 32767  # a version without an upper end
JARS = ("clients", "group-coordinator", "transaction-coordinator", "share-coordinator")
JARS += ("metadata", "raft", "storage")
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
    """One field of a struct; `type` is an element's type when `is_array`."""

    name: str
    type: str
    is_array: bool
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
    """Read one schema; None for a message that Kafka gave up (no valid versions)."""
    raw = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    if "fields" not in raw or raw["validVersions"] == "none":
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


def add_struct(message: Message, name: str, rows: list[dict], within: Versions) -> None:
    """Add a struct, then the structs inside its fields."""
    struct = Struct(name, [], within)
    message.structs.append(struct)
    for row in rows:
        parsed = parse_field(row)
        struct.fields.append(parsed)
        if "fields" in row:
            add_struct(message, parsed.type, row["fields"], parsed.versions)


def parse_field(row: dict) -> Field:
    """Read one field; a tagged field may leave its versions to its tag."""
    is_array = row["type"].startswith("[]")
    default = row.get("default")
    return Field(
        snake_case(row["name"]),
        row["type"].removeprefix("[]"),
        is_array,
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
        constants.append(
            f"    pub const {upper_case(name)}: ApiKey = ApiKey({message.api_key});"
        )
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


def main() -> None:
    """Write all files."""
    version, by_jar = read_jars(Path(sys.argv[1]).expanduser())
    write = lambda name, what, text: (TABLES / name).write_text(HEAD.format(what, version) + text)
    write("api_keys.rs", "API keys", api_rows(by_jar["clients"]))


if __name__ == "__main__":
    main()
