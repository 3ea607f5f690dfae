"""The documents of the repository, and the pages of the site that show them.

Each file below docs/ is the page of its path there. README.md, ARCHITECTURE.md and CHANGELOG.md are
pages too, and so is each other file that a document links to, such as an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname, join, normpath

ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CHANGELOG.md": "changelog.md",
}
"""Documents outside of docs/, and their pages."""

LINK_TARGET = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
"""The address of a link to a file, relative to its document and without an anchor."""


@dataclass(frozen=True)
class Documents:
    """Paths of the repository's documents, with their pages and titles."""

    root: Path
    pages: dict[str, str]
    """Path of a file in the repository → path of its page."""

    @classmethod
    def of(cls, root: Path) -> Documents:
        """Find all documents, and the files that they link to."""
        below = sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))
        documents = cls(root, ROOT_PAGES | {path: path.removeprefix("docs/") for path in below})
        for path in list(documents.pages):
            for target in documents.targets(path):
                documents.pages.setdefault(target, f"source/{target}.md")
        return documents

    def text(self, path: str) -> str:
        """Return the text of a file of the repository."""
        return (self.root / path).read_text(encoding="utf-8")

    def targets(self, path: str) -> Iterator[str]:
        """Yield the files that a document links to, except pictures and files that are missing."""
        for target in LINK_TARGET.findall(self.text(path)):
            found = normpath(join(dirname(path), target))
            if not found.startswith("docs/assets/") and (self.root / found).is_file():
                yield found

    def is_source(self, path: str) -> bool:
        """Return whether a page shows a file that is not a document."""
        return self.pages[path].startswith("source/")

    def title(self, path: str) -> str:
        """Return the first heading of a document."""
        return next(line[2:] for line in self.text(path).splitlines() if line.startswith("# "))

    def named(self, name: str) -> str | None:
        """Return the path of the document that a text names: in full, or a decision by number."""
        if name in self.pages and not self.is_source(name):
            return name
        if re.fullmatch(r"docs/design/\d{4}", name):
            return next((path for path in self.pages if path.startswith(f"{name}-")), None)
        return None
