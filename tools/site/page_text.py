"""Turns a document of the repository into the Markdown of its page.

GitHub shows the documents by CommonMark, mkdocs shows the pages by Python-Markdown. A list,
table or code block that follows a paragraph needs a blank line for the latter, which is added.
Links to files become links to pages, and so do documents that the text names by their path, such as
`docs/FORMAT.md` or docs/design/0005: the page shows their titles.
"""

from __future__ import annotations

import re
from posixpath import dirname, join, normpath, relpath

from .documents import LINK_TARGET, Documents

_FENCE = r"^```.*?^```$"
_CODE = r"`[^`\n]+`"
_NAME = r"(?<![\w/.-])docs/(?:design/\d{4}\b(?!-)|[\w/-]+\.md)"
_PARTS = re.compile(
    rf"(?P<fence>{_FENCE})|(?P<code>{_CODE})|(?P<target>{LINK_TARGET.pattern})|(?P<name>{_NAME})",
    re.DOTALL | re.MULTILINE,
)
_BLOCK_AFTER_PARAGRAPH = re.compile(r"^([^\s|#<>-](?!\d*\. ).*\n)(?=- |1\. |\| )", re.MULTILINE)


def page_of(path: str, documents: Documents) -> str:
    """Return the Markdown of the page that shows a document."""
    page = documents.pages[path]

    def address(target: str) -> str:
        return relpath(target, dirname(page) or ".")

    def replaced(match: re.Match[str]) -> str:
        if match["target"]:
            target = normpath(join(dirname(path), match["target"]))
            return address(documents.pages.get(target, target.removeprefix("docs/")))
        name = documents.named(match[0].strip("`"))
        if match["fence"]:
            return match[0]
        if name is None or name == path:
            return match[0].replace("\\|", "|")  # a pipe needs no escape in code
        return f"[{documents.title(name)}]({address(documents.pages[name])})"

    return _outside_of_fences(_PARTS.sub(replaced, documents.text(path)))


def source_page(path: str, documents: Documents) -> str:
    """Return a page with a file of the repository as it is."""
    language = path.rpartition(".")[2]
    text = documents.text(path).rstrip("\n")
    return f"---\nsearch:\n  exclude: true\n---\n# `{path}`\n\n````{language}\n{text}\n````\n"


def _outside_of_fences(text: str) -> str:
    parts = re.split(rf"({_FENCE})", text, flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [_BLOCK_AFTER_PARAGRAPH.sub(r"\1\n", part) for part in parts[::2]]
    parts[1::2] = [f"\n{fence}\n" for fence in parts[1::2]]
    return "".join(parts)
