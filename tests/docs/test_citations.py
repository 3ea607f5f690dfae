"""The rules of docs/contract and the documents that the code cites exist."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITATION = re.compile(r"contract/(kafka|replication)\.md((?:,? ?[–-]?#[\w-]+)*)")
DOCUMENT = re.compile(r"docs/[\w/.-]+\.md")
UNRESOLVED = re.compile(r"(?<![/\w.-])(?:replication[- ])?[Cc]ontract,? (?:cases? )?D?\d")


def _sources() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.rs", "*.py", "*.pyx", "*.pyi"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [ROOT / name for name in listed.stdout.split()]
    return {str(file.relative_to(ROOT)): file.read_text() for file in files if file.exists()}


def _rules(document: str) -> set[str]:
    """Return rules with a number (``15``) or a letter (``D2``, ``K6``), attacks and sections."""
    text = (ROOT / "docs/contract" / f"{document}.md").read_text()
    rules = set(re.findall(r"^ ?(\d+)\. ", text, re.MULTILINE)) | set(
        re.findall(r"\b[DKT]\d+\b", text)
    )
    sections = re.findall(r"^## (\w+)\. ", text, re.MULTILINE)
    attacks = re.findall(r"(?:^ |; )(\d+) ", text.partition("Attack cases")[2], re.MULTILINE)
    return rules | {f"section-{one}" for one in sections} | {f"attack-{one}" for one in attacks}


def _citations() -> list[tuple[str, str, str]]:
    """Return file, document and rule of each citation; the rule is empty if none is cited."""
    return [
        (name, document, rule)
        for name, text in _sources().items()
        for document, rules in CITATION.findall(text)
        for rule in re.findall(r"#([\w-]+)", rules) or [""]
    ]


def test_every_cited_rule_of_the_contract_exists() -> None:
    rules = {document: _rules(document) for document in ("kafka", "replication")}
    assert {str(number) for number in range(1, 74)} <= rules["kafka"]
    assert {f"attack-{number}" for number in range(1, 31)} <= rules["replication"]
    cited = _citations()
    assert len(cited) > 60
    assert [one for one in cited if one[2] not in rules[one[1]]] == []


def test_every_rule_of_the_controller_has_a_test_that_names_it() -> None:
    tests = "".join(text for name, text in _sources().items() if name.startswith("tests/"))
    named = {int(number) for number in re.findall(r"def test_rule_(\d+)_", tests)}
    assert {30, 31, 32, *range(36, 45)} <= named
    assert {str(number) for number in named} <= _rules("replication")


def test_every_document_that_the_code_names_exists() -> None:
    named = {(name, page) for name, text in _sources().items() for page in DOCUMENT.findall(text)}
    assert len(named) > 20
    assert [one for one in sorted(named) if not (ROOT / one[1]).exists()] == []


def test_no_comment_cites_a_rule_without_its_document() -> None:
    found = [name for name, text in _sources().items() if UNRESOLVED.search(text)]
    assert [name for name in found if not name.endswith("test_citations.py")] == []
