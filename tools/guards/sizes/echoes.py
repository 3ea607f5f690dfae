"""Documentation that repeats the name of the documented item and adds no word to it."""

from __future__ import annotations

import re

_STOP = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "get", "gets", "has", "have", "here",
    "in", "into", "is", "it", "its", "of", "on", "one", "or", "return", "returns", "that", "the", "their",
    "this", "to", "was", "were", "which", "with",
})  # fmt: skip
_WORD = re.compile(r"\w+(?:\.\w+)+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def echoes(name: str, text: str) -> bool:
    """Return whether `text` has no word that `name` lacks, apart from articles and the like.

    Singular and plural count as one word, and so do upper and lower case. Digits are words, and so
    is a name with dots, such as that of a setting. A text without any word (``=``, ``[]``) is not
    an echo.
    """
    said = _words(text)
    return bool(name and said) and said - _STOP <= _words(name)


def _words(text: str) -> set[str]:
    return {_singular(word.lower()) for word in _WORD.findall(text)}


def _singular(word: str) -> str:
    """The word without the ending of a plural; only equal endings matter, not real words."""
    if word in _STOP:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
