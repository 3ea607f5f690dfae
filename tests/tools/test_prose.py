"""The prose check: odd sentences are flagged, plain text is accepted, findings have their lines."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.git_trees import commit, git
from tests.tools.module_trees import write_tree
from tools import prose as prose_module
from tools.guards.blocks import blocks, mask_code, prose_of
from tools.guards.figures import Finding, Measure
from tools.guards.prose import (
    MEASURES,
    PATTERNS,
    SOURCES,
    Text,
    check_file,
    check_paragraphs,
    check_subject,
    group_of,
    measure,
)
from tools.guards.prose.allowed import FILE as ALLOWED
from tools.guards.prose.allowed import AllowListError
from tools.guards.prose.rules import RULES, Kind, hits, hits_of
from tools.guards.tree import ROOT, Tree
from tools.prose import main

Pairs = list[dict[str, str]]

SENTENCES: dict[str, Pairs] = tomllib.loads(
    (Path(__file__).parent / "data" / "sentences.toml").read_text(encoding="utf-8")
)
"""Texts that were written here, and a plain rewrite of each, by kind."""

PLAIN_SHARE_MAX = 0.03
"""Largest share of the texts of another project that may be flagged."""


def _text_findings(kind: str, text: str) -> list[Finding]:
    """The findings of one text in the place where its kind occurs."""
    if kind == "comment":
        comment = "".join(f"/// {line}\n" for line in text.split("\n"))
        return _findings(check_file("x.rs", f"{comment}fn x() {{}}\n"))
    if kind == "document":
        return _findings(check_file("x.md", f"{text}\n"))
    if kind == "test":
        return _findings(check_file("x.rs", f"#[test]\nfn {text}() {{}}\n"))
    if kind == "message":
        return _findings(check_file("x.py", f"raise ValueError({text!r})\n"))
    return list(check_subject(text, "commit"))


def _findings(texts: Iterator[Text]) -> list[Finding]:
    return [finding for text in texts for finding in text.findings]


def _measure(tree: Tree, name: str) -> Measure:
    (found,) = (found for found in measure(tree) if found.name == name)
    return found


# Sentences


@pytest.mark.parametrize("kind", SENTENCES)
def test_every_odd_sentence_is_flagged(kind: str) -> None:
    accepted = [pair["odd"] for pair in SENTENCES[kind] if not _text_findings(kind, pair["odd"])]
    assert accepted == []


@pytest.mark.parametrize("kind", SENTENCES)
def test_every_plain_rewrite_is_accepted(kind: str) -> None:
    flagged = {
        pair["plain"]: [finding.text for finding in found]
        for pair in SENTENCES[kind]
        if (found := _text_findings(kind, pair["plain"]))
    }
    assert flagged == {}


def test_every_rule_flags_one_of_the_odd_sentences() -> None:
    kinds: dict[str, Kind] = {
        "comment": "doc", "document": "sentence", "test": "test name", "commit": "subject",
    }  # fmt: skip
    odd = [
        (kinds.get(kind, "message"), mask_code(pair["odd"].replace("_", " ")))
        for kind, pairs in SENTENCES.items()
        for pair in pairs
    ]
    used = {hit.rule.name for kind, text in odd for hit in hits(text, kind)}
    assert {rule.name for rule in RULES} - used == set()


@pytest.mark.parametrize(
    "text",
    [
        "Run the broker behind nginx.",
        "The server runs behind a trusted proxy or a load balancer.",
        "It is not aware that it is behind one or more intermediary proxies.",
        "Behind HAProxy, clients connect to one port.",
        "Applications behind PgBouncer share connections.",
        "Tell the user which option is missing.",
        "The output tells operators how to go offline.",
        "We are telling you early.",
        "The marker tells Python that the function returns early.",
        "This option tells pip to skip the cache.",
        "Telling **FastAPI** to validate the value is optional.",
    ],
)
def test_an_ordinary_phrase_of_other_projects_is_accepted(text: str) -> None:
    assert list(check_paragraphs(text, "x.md")) == []


@pytest.mark.parametrize(
    "text",
    [
        "The bytes behind the last frame are cut.",
        "The topics behind Kafka's last offset are read.",
        "The client is told.",
        "A follower tells its leader of records.",
        "A proxy tells the client where it is.",
        "It waits behind the producers of the same partition.",
    ],
)
def test_an_ordinary_word_in_an_odd_phrase_is_flagged(text: str) -> None:
    assert len(list(check_paragraphs(text, "x.md"))) == 1


# Plain text of other projects


@pytest.mark.parametrize(
    "package",
    ["asyncio", "email", "hypothesis", "numpy", "_pytest", "pandas", "pyarrow", "pyspark", "mypy"],
)
def test_documentation_of_other_projects_is_accepted(package: str) -> None:
    texts = list(_texts_of(package))
    flagged = [text.findings for text in texts if text.findings]
    assert len(texts) >= 100
    assert len(flagged) <= PLAIN_SHARE_MAX * len(texts), flagged


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def _texts_of(package: str) -> Iterator[Text]:
    """Comments and docstrings of some files of an installed package, the same in each run."""
    folder = _folder(package)
    files = sorted(path for path in folder.rglob("*.py") if path.stat().st_size < 60_000)
    random.Random(37).shuffle(files)
    for path in files[:25]:
        for text in check_file("other.py", path.read_text(encoding="utf-8")):
            if text.measure == "prose_comments":
                yield text


def test_names_of_tests_of_another_project_are_accepted() -> None:
    files = sorted((_folder("numpy") / "_core" / "tests").glob("test_*.py"))[:16]
    sources = [path.read_text(encoding="utf-8") for path in files]
    names = [name for source in sources for name in re.findall(r"def test_(\w+)", source)]
    flagged = [name for name in names if any(hits(name.replace("_", " "), "test name"))]
    assert len(names) >= 150
    assert len(flagged) <= PLAIN_SHARE_MAX * len(names), flagged


# Places


RUST = """\
//! Reads frames.
//!
//! Who asks is told.

/// A frame, and
/// nobody else.
pub struct Frame {
    size: u32, // of its own
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0} is no frame")]
    Invalid(u32),
}

#[test]
#[should_panic]
fn what_is_no_frame_is_refused() {
    tracing::warn!(size, "the frame is told");
    let unrelated = "who asks is told";
}
"""

PYTHON = '''\
"""Reads frames.

Who asks is told.
"""

SIZE = 4
"""Bytes, and nobody knows."""


def test_a_frame_that_is_no_frame():
    # a frame of
    # its own
    text = "# who asks is told"
    if not text:
        raise ValueError(
            f"{text} is"
            " no frame"
        )
    _log.warning("told %s", text)
'''


def test_findings_in_rust_have_their_lines() -> None:
    found = {(text.measure, f.line) for text in check_file("x.rs", RUST) for f in text.findings}
    comments = {("prose_comments", line) for line in (3, 6, 8)}
    messages = {("prose_messages", line) for line in (13, 20, 21)}
    assert found == comments | messages | {("prose_test_names", 19)}


def test_findings_in_python_have_their_lines() -> None:
    found = {(text.measure, f.line) for text in check_file("x.py", PYTHON) for f in text.findings}
    comments = {("prose_comments", line) for line in (3, 7, 11)}
    messages = {("prose_messages", line) for line in (13, 16, 19)}
    assert found == comments | messages | {("prose_test_names", 10)}


@pytest.mark.parametrize(
    "source",
    [
        'GONE = "nobody listens"\n',
        'text = f"{name}: nobody listens"\nfail(text)\n',
        'raise Refused("a", hint="nobody " "listens")\n',
        'help: str = option(("--all",), help="nobody listens")\n',
        'class Reason(Enum):\n    GONE = "nobody listens"\n    """No listener."""\n',
        'return "nobody listens" if gone else ""\n',
        'print(\n    "nobody"\n    " listens"\n)\n',
        'ROWS = [("a", "nobody listens")]\n',
    ],
)
def test_every_text_of_the_product_in_python_is_read(source: str) -> None:
    assert len(_findings(check_file("pykafka_core/broker/a.py", source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        'const GONE: &str = "nobody listens";',
        'fn f() -> String { helper("nobody listens") }',
        'fn f() { x.expect("nobody listens"); }',
        'fn f() { fail(&format!("{x}: nobody listens")); }',
        'fn f() { assert!(x, "nobody listens"); }',
        'fn f() -> &str { match x { A => r#"nobody listens"#, B => "" } }',
        'fn f() { fail("it goes \\\n        on"); }',
    ],
)
def test_every_text_of_the_product_in_rust_is_read(source: str) -> None:
    assert len(_findings(check_file("rust/log/src/a.rs", source))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("tests/broker/test_a.py", 'text = "nobody listens"\n'),
        ("rust/log/tests/a.rs", 'const A: &str = "nobody listens";\n'),
        (
            "rust/log/src/a.rs",
            '#[cfg(test)]\nmod tests {\n    const A: &str = "nobody listens";\n}\n',
        ),
        (PATTERNS, 'RULE = rule("nobody listens")\n'),
    ],
)
def test_data_of_tests_and_the_patterns_are_not_read(path: str, source: str) -> None:
    assert _findings(check_file(path, source)) == []


def test_a_docstring_is_not_read_twice() -> None:
    source = 'GONE = "A"\n"""Nobody listens."""\n\n\ndef f():\n    """Nobody listens."""\n'
    found = [text.measure for text in check_file("pykafka_core/a.py", source) if text.findings]
    assert found == ["prose_comments", "prose_comments"]


def test_a_finding_that_spans_lines_has_its_last_line() -> None:
    (finding,) = _findings(check_file("x.py", "# A frame of\n# its own.\n"))
    assert (finding.line, finding.last_line, finding.text) == (1, 2, "of its own: of its own")


def test_findings_in_markdown_have_their_lines() -> None:
    document = (
        "# Nobody\n\nOne. Two,\nand nobody.\n\n| a | b |\n|---|---|\n| c | anybody |\n- nobody\n"
    )
    lines = [finding.line for finding in _findings(check_file("x.md", document))]
    assert lines == [4, 8, 9]


def test_blocks_have_the_lines_of_their_source() -> None:
    tree = Tree()
    paths = random.Random(37).sample(list(tree.sources(*SOURCES)), 30)
    for path in paths:
        lines = tree.text(path).expandtabs().split("\n")
        for block in blocks(path, tree.text(path)):
            for number, line in enumerate(block.text.split("\n"), block.line):
                assert line.strip() in lines[number - 1], (path, number)


# Text that is not prose


@pytest.mark.parametrize(
    "document",
    [
        "```\nnobody is told\n```\n",
        "~~~ python\nnobody is told\n~~~\n",
        "- ```\n  nobody is told\n  ```\n",
        "````\n```\nnobody is told\n````\n",
        "```\nnobody is told\n",
        '<a class="nobody" title="is told">\n',
        "<details open>\n",
        "> ```\n> nobody is told\n> ```\n",
        "An example: `nobody is told`.\n",
        "A link to [text](nobody-is-told.md).\n",
        "<!-- nobody is told -->\n",
        "See https://localhost/nobody/is/told.\n",
    ],
)
def test_code_in_markdown_is_not_read(document: str) -> None:
    assert _findings(check_file("x.md", document)) == []


@pytest.mark.parametrize(
    "source",
    [
        '"""Run it.\n\n>>> nobody\ntold\n"""\n',
        '"""Run it::\n\n    nobody is told\n"""\n',
        '"""Run it.\n\n```\nnobody is told\n```\n"""\n',
        "# Copyright: nobody\n",
        "x = 1  # noqa: nobody\n",
    ],
)
def test_code_and_pragmas_in_comments_are_not_read(source: str) -> None:
    assert _findings(check_file("x.py", source)) == []


@pytest.mark.parametrize(
    "before",
    [
        "```\ncode\n```",
        "```\ncode\n````",
        "~~~\ncode\n~~~~~",
        "```\ncode\n```\r",
        "```a``` is a name.\n",
        "~~~\n```\n~~~",
        "<!-- a comment without an end\n",
        "> ```\n> code\n",
        "```\na\rb\n```",
    ],
)
def test_text_after_code_is_read(before: str) -> None:
    document = f"{before}\nNobody waits.\n"
    found = _findings(check_file("x.md", document))
    assert [finding.line for finding in found] == [before.count("\n") + 2]


@pytest.mark.parametrize("text", ["If a < b. Nobody waits. If c > d.", "2 <3, nobody> 4"])
def test_text_between_comparisons_is_read(text: str) -> None:
    assert len(_findings(check_file("x.md", text))) == 1


def test_masked_text_keeps_its_lines_and_length() -> None:
    text = "A `b` c\n```\nd\n```\nhttps://e.f/g h"
    masked = mask_code(text)
    assert len(masked) == len(text)
    assert [len(line) for line in masked.split("\n")] == [len(line) for line in text.split("\n")]


# Properties

_MARKED = st.lists(
    st.sampled_from(
        [*"\n\t \"'#/*`~|>\\(){}[].:;é", '"""', "```", "//", "def x", "nobody", "what is"]
    )
).map("".join)


@given(_MARKED, st.sampled_from(["x.rs", "x.py", "x.pyx", "x.md"]))
@settings(max_examples=60, deadline=None)
def test_every_text_can_be_checked(text: str, path: str) -> None:
    lines = text.count("\n") + 1
    for finding in _findings(check_file(path, text)):
        assert 1 <= finding.line <= finding.last_line <= lines


@given(_MARKED)
@settings(max_examples=60, deadline=None)
def test_masking_keeps_offsets(text: str) -> None:
    assert [len(line) for line in mask_code(text).split("\n")] == [
        len(line) for line in text.split("\n")
    ]


def test_words_of_a_rule_hide_none_of_its_hits() -> None:
    tree = Tree()
    paths = random.Random(37).sample(list(tree.sources(*SOURCES)), 12)
    texts = [prose_of(block).replace("\n", " ") for p in paths for block in blocks(p, tree.text(p))]
    for text in texts:
        slow = {rule.name for rule in RULES if "doc" in rule.kinds and any(hits_of(rule, text))}
        assert {hit.rule.name for hit in hits(text, "doc")} == slow, text


# Subjects of commits


def test_a_subject_needs_an_area_and_72_characters_at_most() -> None:
    assert list(check_subject("log, wire: sync on close", "commit")) == []
    assert list(check_subject("log: " + "x" * 67, "commit")) == []
    (long,) = check_subject("log: " + "x" * 68, "commit")
    assert "73 characters" in long.text
    (without_area,) = check_subject("Sync on close", "commit")
    assert "area: imperative" in without_area.advice


BASE = "[base]\ncommit = {commit}\n"


def _with_base(root: Path) -> Tree:
    """A repository with one commit, and its hash as the base of the ceilings, not committed."""
    root.mkdir(exist_ok=True)
    tree = commit(root, {"a.py": ""}, "Who asks is told")
    base = git(root, "rev-parse", "HEAD").strip()
    (root / "tools").mkdir()
    (root / "tools" / "ceilings.toml").write_text(BASE.format(commit=json.dumps(base)))
    return tree


def test_subject_of_a_revert_is_accepted() -> None:
    assert list(check_subject('Revert "Fixed what nobody is told of"', "abc")) == []


def test_subjects_after_the_base_commit_are_checked(tmp_path: Path) -> None:
    _with_base(tmp_path)
    commit(tmp_path, {"b.py": ""}, "log: nobody is told")
    tree = commit(tmp_path, {"c.py": ""}, "log: sync on close")
    found = _measure(tree, "prose_commits")
    assert found.counts == {"commits": 1}
    assert found.report == {"commits": "50.0 % of 2 subjects"}
    assert {finding.line for finding in found.findings["commits"]} == {0}
    assert all("nobody is told" in finding.text for finding in found.findings["commits"])


def test_a_shallow_clone_reports_that_commits_were_not_checked(tmp_path: Path) -> None:
    _with_base(tmp_path / "full")
    commit(tmp_path / "full", {"b.py": ""}, "log: nobody is told")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{tmp_path}/full", "shallow")
    found = _measure(Tree(tmp_path / "shallow"), "prose_commits")
    assert found.counts == {}
    assert "not checked: the history" in found.report["commits"]


def test_a_folder_without_git_reports_that_commits_were_not_checked(tmp_path: Path) -> None:
    base = BASE.format(commit=json.dumps("0123456789abcdef0123456789abcdef01234567"))
    files = {"tools/ceilings.toml": base, "a.py": "# Nobody.\n"}
    found = {found.name: found for found in measure(write_tree(tmp_path, files))}
    assert "not checked" in found["prose_commits"].report["commits"]
    assert sum(found["prose_comments"].counts.values()) == 1


def test_a_tree_without_a_base_commit_reports_that_commits_were_not_checked(tmp_path: Path) -> None:
    found = _measure(write_tree(tmp_path, {"a.py": ""}), "prose_commits")
    assert found.report["commits"] == "not checked: no base commit is set"


# The measures


def test_texts_count_once_by_folder_and_document(tmp_path: Path) -> None:
    files = {
        "rust/log/src/a.rs": "// Nobody, nobody.\n\n// One.\n",
        "tests/log/test_a.py": "def test_what_is_told(): ...\n",
        "pages/a.md": "Nobody. Somebody.\n",
        "bench/a.py": 'raise ValueError("nobody listens")\n',
    }
    found = {found.name: found for found in measure(write_tree(tmp_path, files))}
    assert tuple(found) == MEASURES
    assert found["prose_comments"].counts == {"rust/log": 1}
    assert found["prose_comments"].report == {"product": "50.0 % of 2 blocks"}
    assert len(found["prose_comments"].findings["rust/log"]) == 2
    assert found["prose_test_names"].counts == {"tests/log": 1}
    assert found["prose_documents"].counts == {"pages/a.md": 2}
    assert found["prose_messages"].counts == {"bench": 1}


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("rust/log/src/log.rs", "product"),
        ("rust/log/tests/log.rs", "tests"),
        ("pyx/records.pyx", "product"),
        ("tests/log/test_log.py", "tests"),
        ("tools/wheels.py", "tools"),
        ("README.md", "documents"),
    ],
)
def test_shares_are_reported_by_part_of_the_tree(path: str, group: str) -> None:
    assert group_of(path) == group


# The allow-list


def _entry(path: str = "a.py", phrase: str = "nobody waits", reason: str = "a test") -> str:
    values = {"path": path, "phrase": phrase, "reason": reason}
    return "[[allow]]\n" + "".join(f"{key} = {json.dumps(text)}\n" for key, text in values.items())


def _comments(root: Path, allowed: str, source: str = "# Here nobody\n# waits.\n") -> int:
    tree = write_tree(root, {"a.py": source, "b.py": "# Nobody waits.\n", ALLOWED: allowed})
    return sum(_measure(tree, "prose_comments").counts.values())


def test_an_allowed_phrase_counts_in_other_files_only(tmp_path: Path) -> None:
    assert _comments(tmp_path, "") == 2
    assert _comments(tmp_path, _entry()) == 1


def test_an_allowed_phrase_covers_no_other_hit_of_its_file(tmp_path: Path) -> None:
    source = "# Here nobody waits.\n\n# Somebody does.\n"
    assert _comments(tmp_path, _entry(), source) == 2


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (_entry(path="c.py"), "nothing needs it"),
        (_entry(phrase="nobody sleeps"), "nothing needs it"),
        (_entry() + _entry(phrase="waits"), "entry 2"),
        (_entry(reason=" "), "reason must be"),
        (_entry(phrase=""), "phrase must be"),
        ("[[allow]]\npath = 'a.py'\nphrase = 'nobody'\n", "needs a path, a phrase and a reason"),
        ("[[allow]]\n" * 2, "entry 2"),
        ("[other]\n", r"\[\[allow\]\] tables"),
        ("allow = 1\n", r"\[\[allow\]\] tables"),
        ("[[allow\n", "Expected"),
    ],
)
def test_a_faulty_entry_is_an_error(tmp_path: Path, allowed: str, message: str) -> None:
    with pytest.raises(AllowListError, match=message):
        _comments(tmp_path, allowed)


# The command

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def prose(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process; return its exit status, output and errors."""

    def run(*arguments: str, text: str | bytes = "") -> tuple[int, str, str]:
        read = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(read), encoding="utf-8"))
        status = main(arguments)
        done = capsys.readouterr()
        return status, done.out, done.err

    return run


def test_the_command_checks_standard_input_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "prose.py"), "-"]
    text = "One line.\nNobody waits.\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "<stdin>:2: nobody, somebody: Nobody" in done.stdout
    assert "Name the component" in done.stdout


def test_the_text_in_the_help_of_the_command_is_flagged() -> None:
    (example,) = re.findall(r"^  (echo .*)", str(prose_module.__doc__), re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        example, shell=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "found on 1 lines" in done.stdout


def test_the_command_accepts_plain_text(prose: Run) -> None:
    assert prose("-", text="The broker retries the request.\n") == (0, "", "")


def test_the_command_checks_a_commit_message(prose: Run) -> None:
    message = "Sync on close\n\nNobody waits.\n# Nobody reads this.\n"
    status, out, _ = prose("-", "--commit", "--json", text=message)
    found = [(row["path"], row["line"]) for row in json.loads(out)]
    assert (status, found) == (1, [("<subject>", 0), ("<message>", 3)])


@pytest.mark.parametrize(
    "message",
    [
        "\n\nlog: sync on close\n",
        "# a template\nlog: sync on close\n",
        "log: sync on close\r\n\r\nA body.\r\n",
        "log: sync\non close\n\nA body.\n",
        "log: sync on close\n\n# ------------------------ >8 ------------------------\n+Nobody.\n",
        "fixup! log: sync on close\n",
        "squash! fixup! log: sync on close\n",
        "amend! log: sync on close\n\nlog: sync on every close\n",
        f"fixup! log: sync {'x' * 60}\n",
        "Merge branch 'nobody' into main\n",
        "Merge remote-tracking branch 'origin/main'\n",
        "Merge pull request #1 from nobody/main\n",
        'Revert "Fix what nobody is told of"\n\nThis reverts commit 0123.\n',
    ],
)
def test_the_command_accepts_messages_as_git_writes_them(prose: Run, message: str) -> None:
    assert prose("-", "--commit", text=message) == (0, "", "")


@pytest.mark.parametrize(
    "message",
    ["", "# a comment\n", "fixup! Sync on close\n", "Merge what nobody is told of\n"]
    + ["log: sync on close\nand do it in time for what follows after many other words\n"],
)
def test_the_command_refuses_faulty_subjects(prose: Run, message: str) -> None:
    status, out, _ = prose("-", "--commit", text=message)
    assert status == 1
    assert "<subject>" in out


def test_the_command_checks_files_and_folders_once(prose: Run) -> None:
    folder = ROOT / "tests" / "tools"
    status, out, _ = prose(str(folder / "test_prose.py"), str(folder), "--json")
    rows = json.loads(out)
    places = [(row["path"], row["line"], row["text"]) for row in rows]
    assert status == (1 if rows else 0)
    assert len(places) == len(set(places))
    assert {row["path"].rpartition("/")[0] for row in rows} <= {"tests/tools"}


def test_the_command_explains_wrong_usage(prose: Run, tmp_path: Path) -> None:
    cases = {
        (str(ROOT / "absent.rs"),): "absent.rs: no such file or folder",
        (str(ROOT / "Makefile"),): "Makefile: neither Markdown nor",
        (str(tmp_path),): "outside the repository",
        ("-", "README.md"): "excludes other arguments",
        ("--commit",): "add -",
    }
    for arguments, message in cases.items():
        status, out, error = prose(*arguments)
        assert (status, out) == (2, "")
        assert message in error


@pytest.mark.parametrize("arguments", [("-",), ("-", "--commit")])
def test_the_command_refuses_text_that_is_not_utf_8(prose: Run, arguments: tuple[str]) -> None:
    assert prose(*arguments, text=b"A caf\xe9.\n") == (
        2, "", "prose.py: standard input: byte 5 is not UTF-8\n",
    )  # fmt: skip


def test_paragraphs_are_read_as_markdown() -> None:
    found = list(check_paragraphs("A list:\n\n- nobody\n- `nobody`\n", "text"))
    assert [(finding.path, finding.line) for finding in found] == [("text", 3)]
