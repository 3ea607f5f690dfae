"""Arrow arrays of a broken producer, as structs of the C data interface with chosen fields."""

import ctypes
from typing import Any


class Schema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class Array(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Producer:
    """An object with `__arrow_c_array__`, which must live longer than the capsules that it returns.

    Args:
        format_: The format in the schema.
        buffers: The bytes of each buffer, None for a null pointer; or None for no buffers.
        fields: Fields of the array that replace the correct ones.
        schema_fields: Fields of the schema that replace the correct ones.
    """

    def __init__(
        self,
        format_: bytes | None,
        buffers: list[bytes | None] | None,
        *,
        schema_fields: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        self.released = 0
        self._release = _RELEASE(self._on_release)
        release = ctypes.cast(self._release, ctypes.c_void_p).value
        self._bytes = [ctypes.create_string_buffer(b, len(b)) if b else b for b in buffers or ()]
        pointers = [
            None if b is None else ctypes.addressof(b) if b else 64 for b in self._bytes
        ]  # the pointer to an empty buffer is invalid
        self._pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        whole = {
            "null_count": -1,
            "n_buffers": len(pointers),
            "buffers": None if buffers is None else ctypes.addressof(self._pointers),
            "release": release,
        }
        self.array = Array(**{**whole, **fields})
        self.schema = Schema(**{"format": format_, "release": release, **(schema_fields or {})})

    def _on_release(self, address: int) -> None:
        self.released += 1
        Array.from_address(address).release = None

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[Any, Any]:
        return capsule(self.schema, b"arrow_schema"), capsule(self.array, b"arrow_array")


class Exporter:
    """An object whose `__arrow_c_array__` returns this value, or raises it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


def capsule(struct: ctypes.Structure, name: bytes) -> Any:
    """Make a capsule without a destructor: the struct belongs to its producer."""
    return _new_capsule(ctypes.addressof(struct), name, None)
