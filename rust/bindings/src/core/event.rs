//! Events as Python sees them: frozen objects whose attributes are made once.

use pykafka_broker::{Event, RequestEvent, Room, TopicId};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Request>()?;
    module.add_class::<Cancelled>()?;
    module.add_class::<Appended>()?;
    module.add_class::<Maintained>()?;
    module.add_class::<TopicsMissing>()?;
    module.add_class::<PartitionState>()?;
    module.add_class::<Replica>()?;
    module.add_class::<DiskState>()
}

#[pyclass(frozen, module = "pykafka_core._core")]
struct Request {
    #[pyo3(get)]
    id: u64,
    #[pyo3(get)]
    connection: u64,
    #[pyo3(get)]
    principal: Py<PyString>,
    #[pyo3(get)]
    client_host: Py<PyString>,
    #[pyo3(get)]
    listener: Py<PyString>,
    #[pyo3(get)]
    client_id: Py<PyString>,
    #[pyo3(get)]
    api_key: i16,
    #[pyo3(get)]
    api_version: i16,
    #[pyo3(get)]
    received_ns: u64,
    #[pyo3(get)]
    received_ms: i64,
    #[pyo3(get)]
    body: Py<PyBytes>,
    /// Given back when Python drops the request.
    _room: Room,
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
struct Cancelled {
    id: u64,
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
struct Appended {
    token: u64,
    error_code: i16,
    offset: i64,
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
struct Maintained {
    token: u64,
    error_code: i16,
    offset: i64,
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
struct TopicsMissing {
    names: Vec<String>,
    principal: Py<PyString>,
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
struct PartitionState {
    topic_id: Py<PyBytes>,
    partition: i32,
    state: &'static str,
    leader_epoch: i32,
    offset: i64,
    reason: String,
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
struct Replica {
    topic_id: Py<PyBytes>,
    partition: i32,
    leader_epoch: i32,
    follower: i32,
    state: &'static str,
    since_ns: u64,
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
struct DiskState {
    state: &'static str,
    reason: String,
}

fn text(py: Python<'_>, text: &str) -> Py<PyString> {
    PyString::new(py, text).unbind()
}

fn id_bytes(py: Python<'_>, id: &TopicId) -> Py<PyBytes> {
    PyBytes::new(py, id).unbind()
}

fn object<T: PyClass>(
    py: Python<'_>,
    value: impl Into<PyClassInitializer<T>>,
) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, value)?.into_any())
}

fn request(py: Python<'_>, event: &RequestEvent) -> Request {
    Request {
        id: event.id,
        connection: event.connection,
        principal: text(py, &event.principal),
        client_host: text(py, &event.client_host),
        listener: text(py, &event.listener),
        client_id: text(py, &event.client_id),
        api_key: event.api_key,
        api_version: event.api_version,
        received_ns: event.received_ns,
        received_ms: event.received_ms,
        body: PyBytes::new(py, &event.body).unbind(),
        _room: event.room.clone(),
    }
}

pub(super) fn to_python(py: Python<'_>, event: Event) -> PyResult<Py<PyAny>> {
    match event {
        Event::Request(event) => object(py, request(py, &event)),
        Event::Cancelled { id } => object(py, Cancelled { id }),
        Event::Appended { token, error_code, offset } => {
            object(py, Appended { token, error_code, offset })
        }
        Event::Maintained { token, error_code, offset } => {
            object(py, Maintained { token, error_code, offset })
        }
        Event::TopicsMissing { names, principal } => {
            let names = names.iter().map(ToString::to_string).collect();
            object(py, TopicsMissing { names, principal: text(py, &principal) })
        }
        Event::PartitionState { topic_id, partition, state, leader_epoch, offset, reason } => {
            let (topic_id, state) = (id_bytes(py, &topic_id), state.name());
            object(py, PartitionState { topic_id, partition, state, leader_epoch, offset, reason })
        }
        Event::Replica { topic_id, partition, leader_epoch, follower, state, since_ns } => {
            let (topic_id, state) = (id_bytes(py, &topic_id), state.name());
            object(py, Replica { topic_id, partition, leader_epoch, follower, state, since_ns })
        }
        Event::DiskState { state, reason } => object(py, DiskState { state: state.name(), reason }),
    }
}
