"""A setting is marked as honoured if and only if Rust or Python reads it."""

import re
import subprocess
from pathlib import Path

from pykafka_core.config import Scope, Support, settings

ROOT = Path(__file__).parents[2]
BROKERS, TOPICS = settings(Scope.BROKER), settings(Scope.TOPIC)


def honoured(scope: Scope) -> set[str]:
    return {name for name, row in settings(scope).items() if row.support is Support.HONOURED}


def read_by_rust(file: str) -> set[str]:
    """Return the names that have an arm in a `match` of a file's code, without its tests."""
    code = (ROOT / file).read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
    arms = re.findall(r'^ +((?:"[a-z0-9.]+"(?: \| )?)+) =>', code, re.MULTILINE)
    return {name for arm in arms for name in re.findall(r'"([a-z0-9.]+)"', arm)}


def python_code() -> str:
    """Return the code of the package without the rules: a check of a value does not count as a
    read.
    """
    listed = subprocess.run(
        ["git", "ls-files", "pykafka_core/**/*.py"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    files = (ROOT / name for name in listed if not name.endswith("config/rules.py"))
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())


OF_TOPICS = ("rust/log/src/config.rs", "rust/broker/src/control_api/image/throttled.rs")


def test_honoured_topic_settings_are_read_by_the_log_or_the_image() -> None:
    assert honoured(Scope.TOPIC) - set().union(*map(read_by_rust, OF_TOPICS)) == set()


def test_honoured_broker_settings_are_read_or_give_topics_their_defaults() -> None:
    defaults = {s.name for name in honoured(Scope.TOPIC) for s in TOPICS[name].synonyms}
    unread = (
        honoured(Scope.BROKER) - read_by_rust("rust/broker/src/control_api/settings.rs") - defaults
    )
    code = python_code()
    assert {name for name in unread if f'"{name}"' not in code} == set()


def test_broker_settings_read_by_rust_can_be_set_and_are_honoured() -> None:
    """`internal.frame.max.ms` was read, but could not be set at the start."""
    assert read_by_rust("rust/broker/src/control_api/settings.rs") - honoured(Scope.BROKER) == set()


def test_topic_settings_read_by_rust_can_be_set() -> None:
    dotted = {name for name in set().union(*map(read_by_rust, OF_TOPICS)) if "." in name}
    assert dotted - TOPICS.keys() == set()
