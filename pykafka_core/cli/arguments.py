"""Values of arguments, read without typer, which the test kit does not need."""

from datetime import datetime

from .errors import USAGE, CliError

INT64_MAX = 2**63 - 1


def utf8(text: str) -> str:
    """Return ``text``; bytes that are not UTF-8, which Python has as surrogates, end the process in librdkafka.

    Raises:
        CliError: It cannot be encoded.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CliError(f"{text!r} is not UTF-8", "pass it in UTF-8", exit_code=USAGE) from None
    return text


def time_ms(text: str) -> int:
    """Return milliseconds since 1970 of an ISO time, local where it names no zone, or of ``@MILLISECONDS``."""
    if text.startswith("@"):
        return int64(text[1:])
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def int64(text: str) -> int:
    """Return a number.

    Raises:
        ValueError: It is not a number.
        OverflowError: It has more than 64 bits.
    """
    number = int(text)
    if abs(number) > INT64_MAX:
        raise OverflowError
    return number
