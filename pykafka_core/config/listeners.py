"""Listeners in Kafka's format: ``NAME://HOST:PORT,…``."""

import re
from typing import NamedTuple

_LISTENER = re.compile(
    r"(?:([A-Za-z0-9_.-]+)://)?(?:\[([0-9A-Fa-f:.%]+)\]|([^\s:/\[\]]*)):(\d{1,5})\Z"
)


class ListenerError(ValueError):
    """A listener is malformed; ``advice`` has the correct format."""

    def __init__(self, text: str, advice: str) -> None:
        super().__init__(text)
        self.advice = advice


class Listener(NamedTuple):
    """One address; an empty host means all interfaces, port 0 a free port."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"

    @property
    def address(self) -> str:
        """``HOST:PORT``, the host in brackets if it contains a colon."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


EMBEDDED_LISTENER = "PLAINTEXT://127.0.0.1:0"
"""The listener of a broker without given listeners; it is bound when the address is requested."""


def with_names(text: str) -> str:
    """Return listeners in Kafka's format: each with its name, which is optional here."""
    return text if _is_complete(text) else ",".join(map(str, parse_listeners(text)))


def _is_complete(text: str) -> bool:
    return all("://" in one for one in text.split(","))


def parse_listeners(text: str) -> tuple[Listener, ...]:
    """Return the listeners of a comma-separated list; a bare ``HOST:PORT`` is named PLAINTEXT.

    Raises:
        ListenerError: One of them is malformed or its port is over 65535.
    """
    return tuple(_parse_listener(part.strip()) for part in text.split(",") if part.strip())


def _parse_listener(text: str) -> Listener:
    found = _LISTENER.match(text)
    if found is None:
        advice = "write it as HOST:PORT or NAME://HOST:PORT, an IPv6 address in brackets"
        raise ListenerError(f"{text!r} is not an address to listen at", advice)
    if int(found[4]) > 65535:
        raise ListenerError(
            f"{text!r} has port {found[4]}", "ports are 0 to 65535, 0 is a free one"
        )
    return Listener((found[1] or "PLAINTEXT").upper(), found[2] or found[3], int(found[4]))
