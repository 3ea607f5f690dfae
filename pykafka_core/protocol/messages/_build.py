"""Creates the classes of a message from its schema."""

from typing import Any

from pykafka_core import _core

_UNSET: Any = type("_Unset", (), {"__slots__": (), "__repr__": lambda self: "..."})()
"""The default of arguments whose default value is created for each object."""


class Message:
    """Base class of all messages and their structs: slots, equality by value, and a repr."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # messages are mutable

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__qualname__}({fields})"


def build(name: str, module: str) -> type[Message]:
    """Create the class of a message, with the classes of its structs as attributes."""
    scope: dict[str, Any] = {"_UNSET": _UNSET}
    structs = _core.message_schema(name)
    for struct, fields in structs:
        qualified = name if struct == name else f"{name}.{struct}"
        scope[struct] = _build_struct(qualified, module, fields, scope)
    message: type[Message] = scope[name]
    for struct, _ in structs[1:]:
        setattr(message, struct, scope[struct])
    return message


def _build_struct(
    qualified: str, module: str, fields: list[tuple[str, str, Any]], scope: dict[str, Any]
) -> type[Message]:
    """Create a class with slots; its ``__init__`` finds nested structs in `scope` when it runs."""
    namespace: dict[str, Any] = {
        "__slots__": tuple(name for name, _, _ in fields),
        "__module__": module,
        "__qualname__": qualified,
        "__init__": _initializer(f"{module}.{qualified}", fields, scope),
    }
    return type(qualified.rpartition(".")[2], (Message,), namespace)


def _initializer(where: str, fields: list[tuple[str, str, Any]], scope: dict[str, Any]) -> Any:
    parameters, body = [], []
    for name, kind, default in fields:
        new = {"list": "[]", "struct": f"{default}()", "value": None}[kind]
        parameters.append(f"{name}={'_UNSET' if new else repr(default)}")
        body.append(f"self.{name} = " + (f"{new} if {name} is _UNSET else {name}" if new else name))
    star = "*, " if fields else ""
    lines = "\n    ".join(body or ["pass"])
    source = f"def __init__(self, {star}{', '.join(parameters)}):\n    {lines}\n"
    made: dict[str, Any] = {}
    exec(compile(source, f"<{where}>", "exec"), scope, made)
    return made["__init__"]
