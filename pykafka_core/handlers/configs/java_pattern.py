r"""Checks regular expressions of ``java.util.regex.Pattern`` without compiling them.

Theory of operation. A client sends the expression, and this broker does not match anything with it
yet. Python's `re` has another syntax, recurses, and may need a million times as long to compile an
expression as to read it (``(?i:[\x01-\uffff])``). So each token is read once, in slices, and lists
hold the open groups and classes.

Java refuses some expressions that this check accepts: a lookbehind without an obvious maximum
length, and names of scripts, blocks and characters that Unicode does not have (``\p{IsNothing}``,
``\N{NOTHING}``).
"""

import re
from typing import Final

from pykafka_core.handlers.outcome import Work

_CODE_POINT: Final = (
    r"(?: x (?P<hex> [0-9a-fA-F]{2} ) | u (?P<unit> [0-9a-fA-F]{4} )"
    r"  | x\{ 0* (?P<point> 10[0-9a-fA-F]{4} | [0-9a-fA-F]{1,5} ) \}"
    r"  | 0 (?P<octal> [0-3][0-7]{0,2} | [4-7][0-7]? )"
    r"  | c (?!\\Q) (?P<control> . ) | (?P<letter> [aefnrt] ) | (?P<sign> [^A-Za-z0-9] ) )"
)
_SET: Final = r"(?: N\{[^}]+\} | [DHSVWdhsvw] | [pP] (?: [LMNZCPS] | \{(?P<property>[^}]+)\} ) )"
_BOUNDARY: Final = (
    r"(?: [1-9AGBRXZz] | b (?: \{g\} | (?!\{g) ) | k<(?P<reference>[A-Za-z][A-Za-z0-9]*)> )"
)
_QUOTED: Final = r"(?P<quoted> \\Q (?P<text>.*?) (?: \\E | \Z ) )"
_FLAGS: Final = r"(?P<added> [imsducxU]* ) (?: - (?P<removed> [imsducxU]* ) )?"

_OUTSIDE: Final = re.compile(
    rf"""(?xs)
    {_QUOTED}
    | (?P<escape> \\ (?: {_CODE_POINT} | {_SET} | {_BOUNDARY} ) )
    | (?P<modifier> \(\? {_FLAGS.replace("<", "<inline_")} \) )
    | (?P<group> \( (?: (?!\?) | \? (?: {_FLAGS} : | [>=!] | <[=!] | <(?P<name>[A-Za-z][A-Za-z0-9]*)> ) ) )
    | (?P<end> \) )
    | (?P<either> \| )
    | (?P<class> \[\^? )
    | (?P<times> [*+?][+?]? )
    | (?P<count> \{{ (?P<low>[0-9]+) (?: , (?P<high>[0-9]*) )? \}} [+?]? )
    | (?P<blank> [\t-\r\x20] | \# )
    | [^\\(){{*+?\[|\t-\r\x20\#]+
    """
)
_INSIDE: Final = re.compile(
    rf"""(?xs)
    {_QUOTED}
    | (?P<escape> \\ (?: {_CODE_POINT} | {_SET} ) )
    | (?P<class> \[\^? )
    | (?P<end> \] )
    | (?P<and> && )
    | (?P<blank> [\t-\r\x20] | \# )
    | [^\\]
    """
)
_BASES: Final = {"hex": 16, "unit": 16, "point": 16, "octal": 8}
_LETTERS: Final = dict(zip("aefnrt", "\a\x1b\f\n\r\t", strict=True))
_COUNT_MAX: Final = 2**31 - 1
_JAVA_PROPERTIES: Final = (
    "LowerCase UpperCase Alphabetic Ideographic TitleCase Digit Defined Letter LetterOrDigit JavaIdentifierStart "
    "JavaIdentifierPart UnicodeIdentifierStart UnicodeIdentifierPart IdentifierIgnorable SpaceChar Whitespace "
    "ISOControl Mirrored"
)
_PLAIN_PROPERTIES: Final = (
    "Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf L M N Z C P S LC LD L1 "
    "all ASCII Alnum Alpha Blank Cntrl Digit Graph Lower Print Punct Space Upper XDigit"
)
_PROPERTIES: Final = frozenset(
    [*_PLAIN_PROPERTIES.split(), *(f"java{name}" for name in _JAVA_PROPERTIES.split())]
)


class _MalformedError(Exception):
    """The text is not a regular expression of Java."""


def is_java_pattern(text: str) -> Work[bool]:
    """Return whether ``Pattern.compile`` accepts ``text``, with the exceptions named above."""
    try:
        yield from _Reader(text).read()
    except _MalformedError:
        return False
    return True


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._names: set[str] = set()
        self._comments = False
        """Whether blanks and ``#`` comments up to the end of the line are ignored (flag ``x``)."""
        self._groups: list[bool] = []
        """The value of `_comments` outside each open group."""

    def read(self) -> Work[None]:
        repeatable = False
        while self._position < len(self._text):
            yield
            found = self._next(_OUTSIDE)
            kind = found.lastgroup
            if kind == "class":
                yield from self._class()
            elif kind == "times" and not repeatable:
                raise _MalformedError
            elif kind == "blank" and self._comments:
                self._skip_comment(found)
                continue
            elif kind == "quoted" and not found["text"]:
                continue
            else:
                self._note(found)
            repeatable = kind not in ("modifier", "group", "either", "times", "count")
        if self._groups:
            raise _MalformedError

    def _next(self, tokens: re.Pattern[str]) -> re.Match[str]:
        found = tokens.match(self._text, self._position)
        if found is None:
            raise _MalformedError
        self._position = found.end()
        return found

    def _note(self, found: re.Match[str]) -> None:
        kind = found.lastgroup
        if kind == "group":
            self._begin_group(found)
        elif kind == "end":
            if not self._groups:
                raise _MalformedError
            self._comments = self._groups.pop()
        elif kind == "modifier":
            self._set_flags(found["inline_added"], found["inline_removed"])
        elif kind == "count":
            _check_count(found)
        elif kind == "escape":
            _check_property(found["property"])
            if found["reference"] is not None and found["reference"] not in self._names:
                raise _MalformedError

    def _begin_group(self, found: re.Match[str]) -> None:
        name = found["name"]
        if name in self._names:
            raise _MalformedError
        if name is not None:
            self._names.add(name)
        self._groups.append(self._comments)
        self._set_flags(found["added"], found["removed"])

    def _set_flags(self, added: str | None, removed: str | None) -> None:
        self._comments = (self._comments or "x" in (added or "")) and "x" not in (removed or "")

    def _skip_comment(self, found: re.Match[str]) -> None:
        if found["blank"] == "#":
            line_end = self._text.find("\n", self._position)
            self._position = len(self._text) if line_end < 0 else line_end

    def _class(self) -> Work[None]:
        """Read a class after its first bracket, including nested classes."""
        levels = [False]
        """For each open class, whether it has an element."""
        while levels:
            yield
            found = self._next(_INSIDE)
            kind = found.lastgroup
            if kind == "class":
                levels.append(False)
            elif kind == "end" and levels[-1]:
                levels.pop()
                if levels:
                    levels[-1] = True
            elif kind == "and":
                if not levels[-1] and self._text[self._position : self._position + 1] in ("]", "&"):
                    raise _MalformedError
            elif kind == "blank" and self._comments:
                self._skip_comment(found)
            elif kind != "quoted" or found["text"]:
                self._check_range(found)
                levels[-1] = True

    def _check_range(self, found: re.Match[str]) -> None:
        """Read the end of a range, if this element begins one."""
        low = _code_point(found, -1)
        follows = self._text[self._position : self._position + 2]
        if low is None or follows[:1] != "-" or follows[1:] in ("[", "]"):
            return
        self._position += 1
        high = _code_point(self._next(_INSIDE), 0)
        if high is None or high < low:
            raise _MalformedError


def _code_point(found: re.Match[str], which: int) -> int | None:
    """Return the code point of a class's element; None for a set of characters.

    For a quoted text it is the code point of its character ``which``.
    """
    if found["quoted"] is not None:
        return ord(found["text"][which]) if found["text"] else None
    if found["escape"] is None:
        return ord(found[0][0])
    _check_property(found["property"])
    for name, base in _BASES.items():
        if found[name] is not None:
            return int(found[name], base)
    if found["control"] is not None:
        return ord(found["control"]) ^ 64
    character = _LETTERS.get(found["letter"], found["sign"])
    return None if character is None else ord(character)


def _check_count(found: re.Match[str]) -> None:
    low = _count(found["low"])
    if found["high"] and _count(found["high"]) < low:
        raise _MalformedError


def _count(digits: str) -> int:
    significant = digits.lstrip("0")
    if len(significant) > len(str(_COUNT_MAX)) or int(significant or "0") > _COUNT_MAX:
        raise _MalformedError
    return int(significant or "0")


def _check_property(name: str | None) -> None:
    if (
        name is not None
        and name not in _PROPERTIES
        and not name.startswith(("Is", "In"))
        and "=" not in name
    ):
        raise _MalformedError
