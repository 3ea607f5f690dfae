"""The last requests and responses of raw connections, simulated brokers and fake cores.

Messages are kept unchanged and only formatted in a report, so that recording one is very cheap.
"""

import re
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import NamedTuple

from pykafka_core.errors import error_of

EXCHANGES_MAX = 30
CHARACTERS_MAX = 400
"""The longest text of one message; longer messages lose their middle."""
BODY_BYTES_MAX = 16 * 1024
"""Only the size of a longer body is recorded, because a test may measure this process's memory."""


class Exchange(NamedTuple):
    """One message or call."""

    at: float
    who: str
    what: str
    body: object


_last: deque[Exchange] = deque(maxlen=EXCHANGES_MAX)


def note(who: str, what: str, body: object) -> None:
    """Record a message; if there are more than `EXCHANGES_MAX`, the oldest one is dropped.

    Args:
        who: Sender or receiver, such as ``127.0.0.1:9092``.
        what: Direction, name and version.
        body: Its ``repr`` is shown.
    """
    _last.append(Exchange(time.monotonic(), who, what, body))


def clear() -> None:
    """Forget all messages at the start of another test."""
    _last.clear()


def sections() -> Iterator[tuple[str, str]]:
    """Yield a title and one line for each exchange, oldest first: its age and its error codes."""
    now = time.monotonic()
    if lines := [_line(exchange, now) for exchange in list(_last)]:
        yield "Last requests and responses", "\n".join(lines)


def _line(exchange: Exchange, now: float) -> str:
    body = described(exchange.body)
    head = f"{exchange.at - now:9.3f} s  {exchange.who}  {exchange.what}"
    return f"{head}{_errors_in(body)}  {shortened(body)}"


def _errors_in(body: str) -> str:
    codes = Counter(int(code) for code in re.findall(r"error_code=(-?\d+)", body))
    del codes[0]
    names = (f"{error_of(code).name} ×{times}" for code, times in sorted(codes.items()))
    return f" [{', '.join(names)}]" if codes else ""


def described(value: object) -> str:
    """Return the ``repr`` of a value, or the error that it raises."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"


def shortened(body: str) -> str:
    """Return a text of at most `CHARACTERS_MAX` characters, without its middle if it is longer."""
    if len(body) <= CHARACTERS_MAX:
        return body
    half = CHARACTERS_MAX // 2
    return f"{body[:half]} … {len(body) - 2 * half} characters … {body[-half:]}"
