"""Regular expressions of clients: usual ones are accepted, those that need too much memory are
rejected.
"""

import pytest

from pykafka_core._core import Pattern


@pytest.mark.parametrize(
    "text",
    [
        r"orders-.*",
        r"\w+\.\w+\.\w+\.\w+\.\w+\.\w+",
        r"(?i)orders-\d{1,8}",
        "|".join(f"orders.region-{number:03d}.events-v2" for number in range(100)),
    ],
)
def test_usual_expressions_are_accepted(text: str) -> None:
    Pattern(text)


@pytest.mark.parametrize("text", [r"(\w{1,100}){1,100}", "((((a{100}){100}){100}){100})"])
def test_expression_that_needs_too_much_memory_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="size limit"):
        Pattern(text)


def test_expression_must_match_the_whole_name() -> None:
    pattern = Pattern("a|b.?")
    assert [pattern.matches(name) for name in ("a", "b1", "ab", "b12", "")] == [
        True, True, False, False, False,
    ]  # fmt: skip
