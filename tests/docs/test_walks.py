"""The walks in ARCHITECTURE.md name files and functions that exist, and count the files."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PARTS = r"^### Part: (?P<name>.+) \((?P<count>\d+) files\)$"
WALKS = r"^### (?P<name>Walk \d: .+) \((?P<count>\d+) files\)$"
LINE = re.compile(r"(\d+)\. (\S+\.(?:rs|py|pyx)), ((?:`\w+`(?:, )?)+): \S")


class Step(NamedTuple):
    """A numbered line: a file, and the functions in it that are entered."""

    number: int
    file: str
    functions: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The file in the source tree; the section explains the short forms."""
        if self.file.endswith(".rs"):
            crate, _, rest = self.file.partition("/")
            return ROOT / "rust" / crate / "src" / rest
        return ROOT / ("pyx" if self.file.endswith(".pyx") else "pykafka_core") / self.file


class Listed(NamedTuple):
    """A part or a walk: its number of files, the names of the parts in it, and its own steps."""

    name: str
    files_count: int
    parts: tuple[str, ...]
    steps: tuple[Step, ...]


def _listed(heading: str) -> list[Listed]:
    section = PAGE.partition("\n## Walks\n")[2].partition("\n## ")[0]
    found = []
    for match in re.finditer(heading, section, re.MULTILINE):
        text = section[match.end() :].partition("\n### ")[0]
        named = re.search(r"^Parts: (.+)\.$", text, re.MULTILINE)
        parts = tuple(named[1].split("; ")) if named else ()
        steps = tuple(_step(line) for line in text.splitlines() if re.match(r"\d+\. ", line))
        found.append(Listed(match["name"], int(match["count"]), parts, steps))
    return found


def _step(line: str) -> Step:
    match = LINE.match(line)
    assert match is not None, line
    return Step(int(match[1]), match[2], tuple(re.findall(r"`(\w+)`", match[3])))


ALL = [*_listed(PARTS), *_listed(WALKS)]
STEPS = [pytest.param(step, id=f"{one.name}-{step.number}") for one in ALL for step in one.steps]


def test_the_section_has_four_parts_and_five_walks() -> None:
    assert (len(_listed(PARTS)), len(_listed(WALKS))) == (4, 5)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_names_a_file_and_its_functions(step: Step) -> None:
    text = step.path.read_text()
    for function in step.functions:
        definition = rf"\b(?:fn|struct|class|c?p?def) {function}\b"
        assert re.search(definition, text), f"{step.file}: {function}"


@pytest.mark.parametrize("listed", ALL, ids=lambda listed: listed.name)
def test_a_list_counts_its_files(listed: Listed) -> None:
    parts = {part.name: part for part in _listed(PARTS)}
    own = [step.file for step in listed.steps]
    files = [*own, *(step.file for name in listed.parts for step in parts[name].steps)]
    assert [step.number for step in listed.steps] == list(range(1, len(own) + 1))
    assert len(files) == len(set(files)) == listed.files_count
