"""Expressions are accepted as by ``java.util.regex.Pattern`` of Java 17, in a time that only
depends on their length.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.handlers.configs.java_pattern import is_java_pattern
from pykafka_core.handlers.outcome import run_to_end

TAKEN = [
    *(
        "",
        "a",
        "x.*",
        "a|b",
        "|",
        "()",
        "(|)",
        "^$",
        "]",
        "}",
        "a{2}",
        "a{2,}",
        "a{2,3}?",
        "{2}",
        "a{2}{3}",
    ),
    *(
        "a*+",
        "a??",
        "a++",
        "()*",
        "^*",
        "$?",
        "(?i)a",
        "(?i-s)a",
        "(?)",
        "(?-)",
        "(?i:a)",
        "(?:a)*",
        "(?=a)*",
    ),
    *(
        "(?!a)",
        "(?<!a)b",
        "(?>a)",
        r"(?<n>a)\k<n>",
        r"(?<n>\k<n>)",
        r"\1",
        r"\p{L}",
        r"\pL",
        r"\P{javaLowerCase}",
    ),
    *(
        r"\p{IsLatin}",
        r"\x41",
        r"\x{10ffff}",
        r"\x{000041}",
        r"\u0041",
        r"\07",
        r"\0777",
        r"\cA",
        r"\c\a",
        r"\-",
        r"\é",
    ),
    *(
        r"\b{g}",
        r"\bx",
        r"\R\X\h\v",
        r"\Q*(\E",
        r"\Q*",
        r"a\Q\E*",
        r"\Q\E",
        r"\N{LATIN SMALL LETTER A}",
    ),
    *(
        "[]a]",
        "[^]a]",
        "[a-z&&[^b]]",
        "[a&&]",
        "[&&a]",
        "[&]",
        "[a-]",
        "[-a]",
        "[a^]",
        "[[a][b]]",
        r"[\d-z]",
        r"[\Q]\E]",
    ),
    *(
        r"[\x01-\uffff]",
        r"[\ca-\cb]",
        "[a-[b]]",
        "[a&&b&&c]",
        "(?x)a #(\nb",
        "(?x)[a b]",
        "(?x:#)\n)",
        "a #",
        "😀{2}",
    ),
]
REFUSED = [
    *(
        "*",
        "a**",
        "a+*+",
        "(*a)",
        "|+",
        "(?i)*",
        "a{2}*",
        "{",
        "a{",
        "a{x}",
        "a{,2}",
        "a{2,1}",
        "a{1,4294967296}",
    ),
    *(
        "a{99999999999}",
        "a{" + "9" * 5_000 + "}",
        "(",
        ")",
        "a)",
        "(?",
        "(?@a)",
        "(?P<n>a)",
        "(?<n>a",
        "(?<n",
        "(?<1>a)",
    ),
    *(
        "(?<n>a)(?<n>b)",
        r"\k<n>",
        r"\k",
        r"\k<n",
        "(?q)",
        "(?i",
        "(?-i-s)",
        r"\p",
        r"\pX",
        r"\p{Foo}",
        r"\p{",
        r"\p{}",
    ),
    *(
        r"\x4",
        r"\x{110000}",
        r"\x{}",
        r"\x{4",
        r"\u004",
        r"\0",
        r"\08",
        r"\c",
        "\\",
        r"\y",
        r"\i",
        r"\E",
        r"\b{g",
        r"\N{}",
    ),
    *(
        "[",
        "[]",
        "[^]",
        "[a",
        "[b-a]",
        r"[a-\d]",
        "[&&]",
        "[&&&b]",
        r"[\b]",
        r"[\1]",
        r"[\k<n>]",
        "[[a]",
        "[a-",
        r"[\pX]",
    ),
    *("(" * 3_000, "(" * 3_000 + ")" * 2_999, "[" * 3_000, "(?x)a #)\n(", "(?(1)a|b)"),
]


@pytest.mark.parametrize("text", TAKEN)
def test_java_pattern_is_accepted(text: str) -> None:
    assert run_to_end(is_java_pattern(text))


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_invalid_java_pattern_is_rejected(text: str) -> None:
    assert not run_to_end(is_java_pattern(text))


@pytest.mark.parametrize(
    "text",
    [
        "(?i:" + "[\x01-\uffff]" * 6_000 + ")",
        "(" * 16_000 + ")" * 16_000,
        "[" * 16_000 + "a" + "]" * 16_000,
        "(a*)*" * 6_000,
        "a{1000}" * 4_000,
        r"\Qa\E" * 6_000,
        r"\Q" + "a" * 32_000,
        "[a-z&&" * 5_000,
        "(?x)" + "#" * 32_000,
    ],
    ids=lambda text: text[:8],
)
def test_long_expression_is_parsed_in_as_many_slices_as_it_has_tokens(text: str) -> None:
    """`re.compile` takes 30 ms for one of the first text's classes, and recurses for groups."""
    slices = sum(1 for _ in is_java_pattern(text))
    assert slices <= len(text)


@given(st.text(st.sampled_from(r"\ab1Qk<>pLx04u{}()[]^-&|*+?!:=,# "), max_size=30))
def test_any_text_is_accepted_or_rejected(text: str) -> None:
    assert run_to_end(is_java_pattern(text)) in (True, False)
