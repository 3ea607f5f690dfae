# cython: language_level=3
"""Committed offsets: 72 bytes each, and ignored by Python's collector, as there are millions."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

cdef enum:
    ID_SIZE = 16

cdef bytes NO_TOPIC_ID = bytes(ID_SIZE)


@cython.final
cdef class Committed:
    """See the stub."""

    cdef readonly int64_t offset
    cdef readonly int64_t commit_timestamp_ms
    cdef readonly int64_t expire_timestamp_ms
    cdef readonly str metadata
    cdef readonly int32_t leader_epoch
    cdef char id[ID_SIZE]

    def __init__(
        self,
        int64_t offset,
        int32_t leader_epoch,
        str metadata not None,
        int64_t commit_timestamp_ms,
        int64_t expire_timestamp_ms=-1,
        bytes topic_id not None=NO_TOPIC_ID,
    ):
        if PyBytes_GET_SIZE(topic_id) != ID_SIZE:
            raise ValueError(f"a topic id has {ID_SIZE} bytes, not {len(topic_id)}")
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp_ms = commit_timestamp_ms
        self.expire_timestamp_ms = expire_timestamp_ms
        memcpy(self.id, PyBytes_AS_STRING(topic_id), ID_SIZE)

    @property
    def topic_id(self):
        return PyBytes_FromStringAndSize(self.id, ID_SIZE)

    cdef tuple fields(self):
        return (
            self.offset, self.leader_epoch, self.metadata, self.commit_timestamp_ms,
            self.expire_timestamp_ms, self.topic_id,
        )

    def __eq__(self, other):
        return isinstance(other, Committed) and self.fields() == (<Committed>other).fields()

    def __reduce__(self):
        return Committed, self.fields()

    def __hash__(self):
        return hash(self.fields())

    def __repr__(self):
        names = "offset", "leader_epoch", "metadata", "commit_timestamp_ms", "expire_timestamp_ms", "topic_id"
        said = ", ".join(f"{name}={value!r}" for name, value in zip(names, self.fields()))
        return f"Committed({said})"
