"""Names of `threading` that use operating system threads, even if gevent or eventlet patched
`threading`.

The control thread waits inside the core, which no event loop can interrupt: as a greenlet it would
block the thread of all greenlets, and the `Broker` that waits for it. Patches change `_thread` and
`threading` in place, before or after this import. So each access checks for a patch: without one,
these are the names of `threading`, else those of a copy of it with unpatched modules.
"""

import builtins
import importlib.util
import sys
import threading
from functools import cache
from types import BuiltinFunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threading import Condition, Event, Lock, RLock, Thread, get_ident, local

__all__ = ["Condition", "Event", "Lock", "RLock", "Thread", "get_ident", "local", "unpatched"]


@cache
def unpatched(name: str) -> ModuleType:
    """Return an unpatched copy of a standard library module that is written in C.

    Its names are other objects than those of ``sys.modules``.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module named {name!r}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return one of the names above, patched or not."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "get_ident":  # of the thread, even if it started before a patch
            return unpatched("_thread").get_ident
        return getattr(_copy() if _is_patched() else threading, name)


def _is_patched() -> bool:
    begin = sys.modules["_thread"].start_new_thread
    return not isinstance(begin, BuiltinFunctionType)


@cache
def _copy() -> ModuleType:
    """Return a copy of `threading` with threads and locks of the operating system."""
    spec = importlib.util.find_spec("threading")
    if spec is None or spec.loader is None:
        raise ImportError("no module named 'threading'")
    module = importlib.util.module_from_spec(spec)

    def importing(name: str, *where: Any) -> ModuleType:
        return unpatched(name) if name == "_thread" else builtins.__import__(name, *where)

    vars(module)["__builtins__"] = vars(builtins) | {"__import__": importing}
    spec.loader.exec_module(module)
    return module
