"""Messages of commits: the form of subjects, and those since the base commit of the ceilings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.guards.tree import GitError, Tree

SUBJECT_MAX = 72
"""Characters of a commit's subject."""

_FORM = re.compile(r"[a-z0-9_/., -]+: \S")
_REVERT = re.compile(r'(?:Revert|Reapply) ".+"')
"""The subject that git writes for a revert, and for the revert of a revert."""


_AUTOSQUASH = re.compile(r"(?:(?:fixup|squash|amend)! )+")
"""The start of a subject that git writes for a commit which a rebase joins to another one."""

_MERGE = re.compile(
    r"Merge (?:(?:remote-tracking )?branch(?:es)?|tags?|commits?|pull request) ['#].+"
)
_SCISSORS = re.compile(r"# -+ >8 -+")


@dataclass(frozen=True, slots=True)
class Message:
    """The message of a commit, as git reads it from an editor."""

    subject: str  # the first paragraph; without ``fixup!`` and the like
    body: str  # with empty lines for the subject and for comments, so that lines keep their numbers

    @classmethod
    def of(cls, text: str) -> Message:
        """Read a message up to the diff that ``git commit -v`` appends."""
        lines = []
        for line in text.split("\n"):
            if _SCISSORS.fullmatch(line):
                break
            lines.append("" if line.startswith("#") else line.rstrip())
        first = next((number for number, line in enumerate(lines) if line), len(lines))
        end = next((n for n in range(first, len(lines)) if not lines[n]), len(lines))
        subject = _AUTOSQUASH.sub("", " ".join(line.strip() for line in lines[first:end]))
        return cls(subject, "\n".join([*[""] * end, *lines[end:]]))


def form_faults(subject: str) -> Iterator[tuple[str, str]]:
    """Yield the faulty part of a subject, and advice, for each rule of form that it breaks."""
    if len(subject) > SUBJECT_MAX:
        yield f"{len(subject)} characters", f"Shorten the subject to {SUBJECT_MAX} characters."
    if not _FORM.match(subject):
        yield (
            subject[:30],
            "Write 'area: imperative', with the area in lower case, as in 'log: sync on close'.",
        )


def is_revert(subject: str) -> bool:
    """Return whether git wrote the subject; its words are those of another commit."""
    return _REVERT.fullmatch(subject) is not None


def is_merge(subject: str) -> bool:
    """Return whether git wrote the subject for a merge."""
    return _MERGE.fullmatch(subject) is not None


def commits_since(tree: Tree, base: str) -> tuple[list[tuple[str, str]], str]:
    """Return the commits after `base`, without merges.

    Returns:
        Pairs of an abbreviated hash and a subject, newest first, and "". If the history is missing,
        as in a shallow clone or outside git: no pairs, and the reason.
    """
    if not base:
        return [], "not checked: no base commit is set"
    try:
        rows = ("--no-merges", "--no-commit-header", "--format=%h%x09%s")
        listed = tree.git("rev-list", *rows, f"{base}..HEAD", "--")
    except GitError:
        missing = f"not checked: the history up to {base[:12]} is missing"
        return [], f"{missing} (in a shallow clone `git fetch --unshallow` completes it)"
    pairs = [line.partition("\t") for line in listed.splitlines()]
    return [(commit, subject) for commit, _, subject in pairs], ""
