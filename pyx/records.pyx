# cython: language_level=3
"""Record objects from batches.

The reader walks a `bytes` object by pointers. Compressed batches are handed to Rust one at a time
when their turn comes, so that no more than one of them is held decompressed. Messages of format 0
and 1 are also handed to Rust, which returns a batch of format 2. The checks are those of
`rust/record`; tests compare both.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pykafka_core._core import check_batches, decompress_batch, upgrade_batch
from pykafka_core.errors import CorruptMessageError, InvalidRecordError

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char* text, Py_ssize_t size, const char* errors)

cdef enum:
    LOG_OVERHEAD = 12
    PREFIX_SIZE = 17
    HEADER_SIZE = 61
    MESSAGE_SIZE_MIN = 26
    COMPRESSION_MASK = 0x07
    LOG_APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20


# There are millions of them, and bytes and names form no cycles: the collector ignores them.
@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Record:
    """See the stub."""

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly tuple headers
    cdef readonly int timestamp_type
    cdef readonly int leader_epoch
    cdef readonly int64_t producer_id
    cdef readonly int producer_epoch
    cdef readonly int sequence

    def __init__(
        self,
        int64_t offset,
        int64_t timestamp,
        bytes key,
        bytes value,
        headers=(),
        int timestamp_type=0,
        int leader_epoch=-1,
        int64_t producer_id=-1,
        int producer_epoch=-1,
        int sequence=-1,
    ):
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = tuple(headers)
        self.timestamp_type = timestamp_type
        self.leader_epoch = leader_epoch
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.sequence = sequence

    cdef tuple fields(self):
        return (
            self.offset, self.timestamp, self.key, self.value, self.headers, self.timestamp_type,
            self.leader_epoch, self.producer_id, self.producer_epoch, self.sequence,
        )

    def __reduce__(self):
        return Record, self.fields()

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return self.fields() == (<Record>other).fields()

    def __hash__(self):
        return hash(self.fields())

    def __repr__(self):
        text = f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}"
        if self.headers:
            text += f", headers={self.headers!r}"
        return text + ")"


cdef inline uint64_t number(const uint8_t* at, int size) noexcept nogil:
    """A big-endian number of ``size`` bytes."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | at[i]
    return value


cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef inline int read_varint(Cursor* cursor, int size_max, int64_t* out) except -1:
    """Take a zig-zag integer of at most ``size_max`` bytes off the cursor."""
    cdef uint64_t raw = 0
    cdef int i
    cdef uint8_t byte
    for i in range(size_max):
        if cursor.at == cursor.end:
            break
        byte = cursor.at[0]
        cursor.at += 1
        raw |= <uint64_t>(byte & 0x7f) << 7 * i
        if byte < 0x80:
            if size_max == 5:
                raw = <uint32_t>raw
            out[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
            return 0
    raise InvalidRecordError("malformed varint")


cdef inline int64_t read_length(Cursor* cursor, int64_t least) except? -1:
    """Take a length off the cursor; it is at least ``least``, and so many bytes are there."""
    cdef int64_t length = 0
    read_varint(cursor, 5, &length)
    if length < least or length > cursor.end - cursor.at:
        raise InvalidRecordError("length of a field does not fit")
    return length


cdef inline bytes read_bytes(Cursor* cursor):
    """Take nullable bytes off the cursor."""
    cdef int64_t length = read_length(cursor, -1)
    if length < 0:
        return None
    cursor.at += length
    return PyBytes_FromStringAndSize(<const char*>cursor.at - length, length)


cdef tuple read_headers(Cursor* cursor):
    """Take all headers off the cursor, which must be at its end then."""
    cdef int64_t count = 0
    cdef int64_t length
    read_varint(cursor, 5, &count)
    if count == 0 and cursor.at == cursor.end:
        return ()
    if count < 0 or count > cursor.end - cursor.at:
        raise InvalidRecordError("header count does not fit")
    cdef list headers = []
    while count:
        length = read_length(cursor, 0)
        cursor.at += length
        key = PyUnicode_DecodeUTF8(<const char*>cursor.at - length, length, b"replace")
        headers.append((key, read_bytes(cursor)))
        count -= 1
    if cursor.at != cursor.end:
        raise InvalidRecordError("record has a size that does not fit")
    return tuple(headers)


@cython.final
cdef class RecordBatchReader:
    """See the stub."""

    cdef bytes data
    cdef bytes payload
    cdef Py_ssize_t position
    cdef Py_ssize_t size
    cdef Cursor cursor
    cdef int64_t start
    cdef int64_t end
    cdef bint with_control
    cdef bint with_repeats
    # The batch that is read.
    cdef int64_t base_offset
    cdef int64_t last_offset_delta
    cdef int64_t base_timestamp
    cdef int64_t max_timestamp
    cdef int64_t producer_id
    cdef int producer_epoch
    cdef int base_sequence
    cdef int leader_epoch
    cdef int attributes
    cdef int64_t left

    def __init__(
        self, data, *, check_crcs=True, int64_t start=0, end=None, control=False, repeats=True
    ):
        self.data = bytes(data)
        self.size = check_batches(self.data) if check_crcs else PyBytes_GET_SIZE(self.data)
        self.start = max(start, 0)
        self.end = INT64_MAX if end is None else end
        self.with_control = control
        self.with_repeats = repeats

    def __iter__(self):
        return self

    def __next__(self):
        cdef Record record
        try:
            while True:
                while self.left == 0:
                    if self.cursor.at != self.cursor.end:
                        raise InvalidRecordError("bytes are left behind the last record")
                    if not self.next_batch():
                        raise StopIteration
                record = self.next_record()
                if self.start <= record.offset < self.end:
                    if not self.with_repeats:
                        self.start = record.offset + 1
                    return record
        except (CorruptMessageError, InvalidRecordError):
            self.stop()
            raise

    cdef int stop(self) except -1:
        """End the iteration: the bytes after a fault cannot be trusted."""
        self.left = 0
        self.position = self.size
        self.cursor.at = self.cursor.end = NULL
        return 0

    cdef bint next_batch(self) except -1:
        """Go to the next batch that may hold records asked for; False at the end."""
        cdef const uint8_t* at
        cdef int64_t size
        while self.size - self.position >= PREFIX_SIZE:
            at = <const uint8_t*>PyBytes_AS_STRING(self.data) + self.position
            if at[16] > 2:
                raise CorruptMessageError(f"magic {<int8_t>at[16]} is not supported")
            size = <int32_t>number(at + 8, 4) + LOG_OVERHEAD
            if size < (HEADER_SIZE if at[16] == 2 else MESSAGE_SIZE_MIN):
                raise CorruptMessageError("batch length is less than that of a header")
            if size > self.size - self.position:
                break
            self.position += size
            if at[16] < 2:
                # The offset of a message is that of its last record.
                if 0 <= <int64_t>number(at, 8) < self.start:
                    continue
                at = self.open_message(at, &size)
            self.read_header(at)
            if self.base_offset >= self.end:
                break
            if self.wants_batch():
                self.open_payload(at, size)
                return True
        self.stop()
        return False

    cdef const uint8_t* open_message(self, const uint8_t* at, int64_t* size) except NULL:
        """The records of a message of format 0 or 1 as a batch of format 2."""
        self.payload = upgrade_batch(PyBytes_FromStringAndSize(<const char*>at, size[0]))
        size[0] = PyBytes_GET_SIZE(self.payload)
        return <const uint8_t*>PyBytes_AS_STRING(self.payload)

    cdef int read_header(self, const uint8_t* at) except -1:
        self.base_offset = <int64_t>number(at, 8)
        self.leader_epoch = <int32_t>number(at + 12, 4)
        self.attributes = <int16_t>number(at + 21, 2)
        self.last_offset_delta = <int32_t>number(at + 23, 4)
        self.base_timestamp = <int64_t>number(at + 27, 8)
        self.max_timestamp = <int64_t>number(at + 35, 8)
        self.producer_id = <int64_t>number(at + 43, 8)
        self.producer_epoch = <int16_t>number(at + 51, 2)
        self.base_sequence = <int32_t>number(at + 53, 4)
        self.left = <int32_t>number(at + 57, 4)
        if self.left < 0:
            raise InvalidRecordError("negative records count")
        return 0

    cdef bint wants_batch(self) except -1:
        if self.attributes & CONTROL and not self.with_control:
            self.left = 0
            return False
        # Offsets that make no sense are not skipped but found record by record.
        if self.base_offset >= 0 and 0 <= self.last_offset_delta < self.start - self.base_offset:
            self.left = 0
            return False
        return True

    cdef int open_payload(self, const uint8_t* at, int64_t size) except -1:
        cdef const uint8_t* payload = at + HEADER_SIZE
        size -= HEADER_SIZE
        if self.attributes & COMPRESSION_MASK:
            whole = PyBytes_FromStringAndSize(<const char*>at, size + HEADER_SIZE)
            self.payload = decompress_batch(whole)
            payload = <const uint8_t*>PyBytes_AS_STRING(self.payload)
            size = PyBytes_GET_SIZE(self.payload)
        self.cursor.at = payload
        self.cursor.end = payload + size
        return 0

    cdef Record next_record(self):
        cdef Cursor body
        cdef int64_t timestamp = 0
        cdef int64_t delta = 0
        cdef int64_t size
        if self.cursor.at == self.cursor.end:
            raise InvalidRecordError("batch ends before its last record")
        size = read_length(&self.cursor, 1)
        body.at = self.cursor.at + 1
        body.end = self.cursor.at + size
        read_varint(&body, 10, &timestamp)
        read_varint(&body, 5, &delta)
        cdef Record record = Record.__new__(Record)
        record.offset = self.offset_of(delta)
        record.timestamp = self.timestamp_of(timestamp)
        record.key = read_bytes(&body)
        record.value = read_bytes(&body)
        record.headers = read_headers(&body)
        record.timestamp_type = self.attributes & LOG_APPEND_TIME != 0
        record.leader_epoch = self.leader_epoch
        record.producer_id = self.producer_id
        record.producer_epoch = self.producer_epoch
        record.sequence = -1 if self.base_sequence < 0 else (self.base_sequence + delta) & 0x7fffffff
        self.cursor.at += size
        self.left -= 1
        return record

    cdef int64_t offset_of(self, int64_t delta) except? -1:
        if delta < 0 or delta > self.last_offset_delta:
            raise InvalidRecordError("offset is outside of its batch")
        if self.base_offset > INT64_MAX - delta:
            raise InvalidRecordError("offset overflows")
        return self.base_offset + delta

    cdef int64_t timestamp_of(self, int64_t delta) except? -1:
        if self.attributes & LOG_APPEND_TIME:
            return self.max_timestamp
        cdef int64_t timestamp = <int64_t>(<uint64_t>self.base_timestamp + <uint64_t>delta)
        if (timestamp < self.base_timestamp) != (delta < 0):
            raise InvalidRecordError("timestamp overflows")
        return timestamp
