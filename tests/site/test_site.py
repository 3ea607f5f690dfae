"""The documentation site is complete and strict, and shows the documents as GitHub does."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markdown
import pytest
import yaml
from markdown_it import MarkdownIt
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from tools.site.documents import Documents
from tools.site.modules import FOLDER, public_modules
from tools.site.page_text import page_of

ROOT = Path(__file__).parents[2]
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
DOCUMENTS = Documents.of(ROOT)
SHOWN = [path for path in DOCUMENTS.pages if not DOCUMENTS.is_source(path)]
BLOCKS = ("h1", "h2", "h3", "h4", "p", "ol", "ul", "li", "pre", "table", "tr", "td", "th")


class _Tags(HTMLParser):
    """Collects the tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def loaded(self) -> Iterator[str]:
        """Yield the addresses that a browser loads without a click."""
        for tag, attributes in self.tags:
            if tag in ("script", "img", "iframe", "source"):
                yield attributes.get("src") or ""
            if tag == "link" and attributes.get("rel") not in ("canonical", "next", "prev"):
                yield attributes.get("href") or ""


def _entries(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from _entries(entry)


def _blocks(html: str) -> Counter[str]:
    return Counter(tag for tag, _ in _Tags(html).tags if tag in BLOCKS)


def test_the_menu_lists_each_page_once() -> None:
    pages = [DOCUMENTS.pages[path] for path in SHOWN]
    pages += [f"{FOLDER}/{module}.md" for module in public_modules(ROOT)]
    assert len(pages) > 60
    assert sorted(_entries(CONFIG["nav"])) == sorted(pages)


@pytest.mark.parametrize("path", SHOWN)
def test_a_page_has_the_blocks_that_github_shows(path: str) -> None:
    """Python-Markdown, which makes the pages, takes some lists and tables for text."""
    options = [one if isinstance(one, dict) else {one: {}} for one in CONFIG["markdown_extensions"]]
    configs = {name: values for one in options for name, values in one.items()}
    text = page_of(path, DOCUMENTS)
    page = markdown.markdown(text, extensions=list(configs), extension_configs=configs)
    github = MarkdownIt("commonmark").enable("table").render(DOCUMENTS.text(path))
    assert _blocks(page) == _blocks(github)


def test_named_documents_become_links_with_their_titles() -> None:
    text = page_of("README.md", DOCUMENTS)
    assert "[Kafka in your tests](guides/testing/fixtures.md) has all fixtures" in text
    text = page_of("docs/PLANES.md", DOCUMENTS)
    assert "[0005: " in text
    assert "(source/pykafka_core/_core.pyi.md)" in text


@pytest.mark.parametrize(
    "text",
    [
        "[a page that is missing](missing.md)",
        "[a missing anchor](other.md#missing)",
        "[an absolute link](/other.md)",
    ],
)
def test_a_page_with_a_broken_link_fails_the_build(text: str, tmp_path: Path) -> None:
    assert _is_refused(
        {"index.md": text, "other.md": "# Other"}, ["index.md", "other.md"], tmp_path
    )


def test_a_page_that_the_menu_lacks_fails_the_build(tmp_path: Path) -> None:
    assert _is_refused({"index.md": "# Home", "other.md": "# Other"}, ["index.md"], tmp_path)
    assert not _is_refused({"index.md": "# Home"}, ["index.md"], tmp_path / "good")


def _is_refused(pages: dict[str, str], nav: list[str], folder: Path) -> bool:
    """Build a small site with the settings of the real one."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    for name, text in pages.items():
        (docs / name).write_text(text)
    site: dict[str, Any] = {"docs_dir": str(docs), "site_dir": str(folder / "site"), "nav": nav}
    small: dict[str, Any] = {"theme": "mkdocs", "hooks": [], "plugins": [], "extra_css": []}
    with (ROOT / "mkdocs.yml").open("rb") as file:
        config = load_config(file, **site, **small)
    try:
        build(config)
    except Abort:
        return True
    return False


@pytest.mark.load
def test_the_site_is_built_without_warnings_and_loads_nothing_from_other_hosts(
    tmp_path: Path,
) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "tests.site.offline_build", "build", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(SHOWN)
    for page in pages:
        loaded = [one for one in _Tags(page.read_text()).loaded() if re.match(r"\w+:|//", one)]
        assert [one for one in loaded if not one.startswith("data:")] == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(.?(?:https?:)?//", style.read_text()), style.name
