"""Each `pykafka-core` command in README and docs exists and has the options that the page shows."""

import re
import shlex
from typing import Any

import pytest
import typer.main
from markdown_it import MarkdownIt

from pykafka_core.cli.app import app
from tests.support.examples import PAGES

SHELLS = {"", "sh", "console"}
"""Languages of code blocks with commands."""
CALL = re.compile(r"pykafka-core ([^|`;#)\n]+)")

PARSER = MarkdownIt("commonmark").enable("table")
TOKENS = [token for page in PAGES for token in PARSER.parse(page.read_text())]
BLOCKS = [token.content for token in TOKENS if token.type == "fence" and token.info in SHELLS]
PHRASES = [
    child.content
    for token in TOKENS
    for child in token.children or ()
    if child.type == "code_inline" and "COMMAND" not in child.content
]
COMPLETE = sorted({call.strip() for block in BLOCKS for call in CALL.findall(block)})
"""Arguments of the commands that a reader copies."""
MENTIONED = sorted({call.strip() for phrase in PHRASES for call in CALL.findall(phrase)})
"""Arguments of commands within sentences, which may omit required ones."""


def parse(line: str) -> None:
    """Parse arguments without running the command.

    Raises:
        Exception: typer's UsageError. A command, an option or a value is unknown, or a required one
            is missing.
    """
    command: Any = typer.main.get_command(app)
    arguments = shlex.split(line)
    context = command.context_class(command)
    while hasattr(command, "resolve_command"):
        _, command, arguments = command.resolve_command(context, arguments)
        context = command.context_class(command, parent=context)
    command.make_context(None, arguments)


@pytest.mark.parametrize("line", COMPLETE)
def test_command_in_a_code_block_is_complete(line: str) -> None:
    parse(line)


@pytest.mark.parametrize("line", MENTIONED)
def test_command_in_a_sentence_has_known_options(line: str) -> None:
    try:
        parse(line)
    except Exception as error:
        assert "Missing" in str(error)  # noqa: PT017 - typer's error is private


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("topics crate orders", "No such command"),
        ("status --jsn", "No such option"),
        ("groups lag --all", "No such option"),
        ("groups reset-offsets shipping --to-offset first", "valid integer"),
        ("produce", "Missing parameter"),
    ],
)
def test_wrong_command_is_found(line: str, error: str) -> None:
    with pytest.raises(Exception, match=error):
        parse(line)


def test_pages_have_commands() -> None:
    assert len(COMPLETE) > 30
    assert len(MENTIONED) > 20
