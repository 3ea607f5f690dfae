"""A comment that cites a rule of docs/contract leads to that rule."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITATION = re.compile(r"contract/(kafka|replication)\.md((?:,? ?[–-]?#\d+)+)")
UNRESOLVED = re.compile(r"(?<![/\w.-])(?:replication[- ])?[Cc]ontract,? (?:cases? )?D?\d")


def _sources() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.rs", "*.py", "*.pyx", "*.pyi"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [ROOT / name for name in listed.stdout.split()]
    return {str(file.relative_to(ROOT)): file.read_text() for file in files if file.exists()}


def _rules(document: str) -> set[int]:
    text = (ROOT / "docs/contract" / f"{document}.md").read_text()
    return {int(number) for number in re.findall(r"^ ?(\d+)\. ", text, re.MULTILINE)}


def test_every_cited_rule_of_the_contract_exists() -> None:
    rules = {document: _rules(document) for document in ("kafka", "replication")}
    assert len(rules["kafka"]) == 73
    assert len(rules["replication"]) == 48
    cited = [
        (name, document, int(number))
        for name, text in _sources().items()
        for document, numbers in CITATION.findall(text)
        for number in re.findall(r"\d+", numbers)
    ]
    assert len(cited) > 60
    assert [one for one in cited if one[2] not in rules[one[1]]] == []


def test_no_comment_cites_a_rule_without_its_document() -> None:
    found = [name for name, text in _sources().items() if UNRESOLVED.search(text)]
    assert [name for name in found if not name.endswith("test_citations.py")] == []
