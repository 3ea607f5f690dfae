"""Parsers of argument values; they do not import typer, which the test kit does not need."""

from datetime import datetime

from .errors import USAGE, CliError

INT64_MAX = 2**63 - 1


def utf8(text: str) -> str:
    """Return ``text`` if it can be encoded as UTF-8; librdkafka ends the process otherwise.

    Raises:
        CliError: It contains bytes that are not UTF-8, which Python has as surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CliError(f"{text!r} is not UTF-8", "pass it in UTF-8", exit_code=USAGE) from None
    return text


def time_ms(text: str) -> int:
    """Return the Unix time in milliseconds of an ISO time or of ``@MILLISECONDS``.

    An ISO time without a zone is local time.
    """
    if text.startswith("@"):
        return int64(text[1:])
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def int64(text: str) -> int:
    """Parse an integer of 64 bits.

    Raises:
        ValueError: It is not a number.
        OverflowError: It has more than 64 bits.
    """
    number = int(text)
    if abs(number) > INT64_MAX:
        raise OverflowError
    return number
