"""Notes the messages of simulated brokers and the calls of fake cores as `exchanges`.

The notes are added here, so that benchmarks use both classes without them.
"""

import functools
from collections.abc import Callable

from tests.support.evidence.exchanges import note
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

CALLS = ("append", "write_markers", "complete_append", "send", "reply", "respond", "apply")
"""The methods of `FakeCore` that show the actions of the control plane and of its test."""


def note_simulated() -> None:
    """Record the messages of simulated brokers and the calls of fake cores from now on."""
    _wrap(SimulatedBroker, "send", lambda given, request_id: (f"→ #{request_id}", given[0]))
    _wrap(SimulatedBroker, "response", lambda given, response: (f"← #{given[0]}", response))
    for name in CALLS:
        _wrap(FakeCore, name, functools.partial(_call, name))


def _call(name: str, given: tuple[object, ...], _: object) -> tuple[str, object]:
    return name, given


Describe = Callable[[tuple[object, ...], object], tuple[str, object]]
"""Arguments and result of a call → direction and message to record."""


def _wrap(kind: type, name: str, describe: Describe) -> None:
    method: Callable[..., object] = getattr(kind, name)

    @functools.wraps(method)
    def noting(self: object, *given: object, **named: object) -> object:
        result = method(self, *given, **named)
        note(kind.__name__, *describe((*given, *named.values()), result))
        return result

    setattr(kind, name, noting)
