"""A raw client for benchmarks: encoded frames, counted responses, no decoding while timed."""

import struct
import time
from collections.abc import Sequence

from pykafka_core._core import crc32c
from pykafka_core.protocol import Connection
from pykafka_core.protocol.connection import encode_header

PRODUCE, FETCH = (0, 7), (1, 4)


def text(value: str | None) -> bytes:
    """Encode a nullable string in the non-flexible format."""
    return (
        struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()
    )


def frame(api: tuple[int, int], correlation: int, body: bytes) -> bytes:
    """Return a request."""
    head = encode_header(*api, correlation, "bench")
    return struct.pack(">i", len(head) + len(body)) + head + body


def varint(value: int) -> bytes:
    """Encode a zigzag varint."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def batch(count: int, value_bytes: int) -> bytes:
    """Return one uncompressed batch of `count` records without keys."""
    records = bytearray()
    for n in range(count):
        body = b"\0" + varint(0) + varint(n) + varint(-1) + varint(value_bytes)
        body += b"v" * value_bytes + varint(0)
        records += varint(len(body)) + body
    now = time.time_ns() // 1_000_000
    rest = struct.pack(">hiqqqhii", 0, count - 1, now, now, -1, -1, -1, count) + bytes(records)
    head = struct.pack(">ibI", -1, 2, crc32c(rest))
    return struct.pack(">qi", 0, len(head) + len(rest)) + head + rest


def batch_of_size(size: int) -> bytes:
    """Return a batch of about `size` bytes, with records of 1 KiB."""
    return batch(max(1, size // 1033), 1024)


def produce_body(topic: str, partition: int, records: bytes, acks: int = 1) -> bytes:
    """Return a Produce v7 request with one batch."""
    head = text(None) + struct.pack(">hii", acks, 30_000, 1) + text(topic)
    return head + struct.pack(">iii", 1, partition, len(records)) + records


def fetch_body(topic: str, offset: int, size: int) -> bytes:
    """Return a Fetch v4 request for one partition."""
    head = struct.pack(">iiiibi", -1, 500, 1, size, 0, 1) + text(topic)
    return head + struct.pack(">iiqi", 1, 0, offset, size)


class Raw(Connection):
    """A connection that reads responses into one buffer, without a copy."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, timeout_s=10)
        self._buffer = bytearray(16 << 20)

    def receive_view(self) -> memoryview:
        """Return one response without its size; valid until the next call."""
        self._fill(0, 4)
        (size,) = struct.unpack_from(">i", self._buffer)
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        self._fill(0, size)
        return memoryview(self._buffer)[:size]

    def receive_many(self, count: int, size: int) -> memoryview:
        """Return `count` responses of equal size, with their size prefixes, in few reads."""
        self._fill(0, count * size)
        return memoryview(self._buffer)[: count * size]

    def _fill(self, start: int, size: int) -> None:
        view = memoryview(self._buffer)[start : start + size]
        while view:
            got = self._socket.recv_into(view)
            if got == 0:
                raise ConnectionError("the broker closed the connection")
            view = view[got:]

    def pipelined(self, frames: Sequence[bytes], in_flight: int) -> list[bytes]:
        """Send all frames with at most `in_flight` outstanding; return the responses."""
        responses: list[bytes] = []
        for n, one in enumerate(frames):
            if n >= in_flight:
                responses.append(bytes(self.receive_view()))
            self.send_frame(one)
        responses += [bytes(self.receive_view()) for _ in range(min(in_flight, len(frames)))]
        return responses
