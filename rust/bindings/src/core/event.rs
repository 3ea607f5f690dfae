//! Events for Python: frozen objects. The core creates them; simulators use their constructors.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use pykafka_broker::{
    ConnectionInfo, Event, Header, RecordsRead as Records, Replied as Reply, RequestEvent, Room,
    TopicId, VerifyTransaction as Question, code_of,
};
use pykafka_client::SendError;
use pykafka_forks::OfProcess;
use pykafka_wire::ApiKey;
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList, PyString};

use super::facts::ProducerState;

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Request>()?;
    module.add_class::<Cancelled>()?;
    module.add_class::<Appended>()?;
    module.add_class::<Maintained>()?;
    module.add_class::<LogDirs>()?;
    module.add_class::<Producers>()?;
    module.add_class::<RecordsRead>()?;
    module.add_class::<VerifyTransaction>()?;
    module.add_class::<MarkersWritten>()?;
    module.add_class::<Replied>()?;
    module.add_class::<TopicsMissing>()?;
    module.add_class::<PartitionState>()?;
    module.add_class::<Replica>()?;
    module.add_class::<DiskState>()
}

/// The body is a Python object; the other fields are shared with the data plane.
#[pyclass(frozen, module = "pykafka_core._core")]
struct Request {
    #[pyo3(get)]
    id: u64,
    /// `None` after `release`.
    body: Mutex<Option<Py<PyBytes>>>,
    asker: ConnectionInfo,
    header: Header,
    /// Released by `release`, or when Python drops the request.
    room: OfProcess<Room>,
}

impl Request {
    fn of(py: Python<'_>, event: RequestEvent) -> Request {
        let RequestEvent { id, connection, header, body, room } = event;
        let body = Mutex::new(Some(PyBytes::new(py, &body).unbind()));
        Request { id, body, asker: connection, header, room: OfProcess::new(room) }
    }
}

#[pymethods]
impl Request {
    #[new]
    #[pyo3(signature = (*, id, connection, principal, client_host, listener, client_id, api_key, api_version, received_ns, received_ms, body, correlation_id=0))]
    #[expect(clippy::too_many_arguments, reason = "named, and Python's facts about a request")]
    fn new(
        id: u64,
        connection: u64,
        principal: &str,
        client_host: &str,
        listener: &str,
        client_id: &str,
        api_key: i16,
        api_version: i16,
        received_ns: u64,
        received_ms: i64,
        body: Py<PyBytes>,
        correlation_id: i32,
    ) -> Request {
        let asker = ConnectionInfo {
            controller_apis: None,
            id: connection,
            listener: Arc::from(listener),
            client_host: Arc::from(client_host),
            principal: Arc::from(principal),
            mute: Arc::default(),
            standing: Arc::default(),
        };
        let header = Header {
            api_key: ApiKey(api_key),
            api_version,
            correlation_id,
            client_id: Arc::from(client_id),
            bytes: 0,
            received_ns,
            received_ms,
        };
        let body = Mutex::new(Some(body));
        Request { id, body, asker, header, room: OfProcess::new(Room::default()) }
    }

    fn admit(&self) -> bool {
        self.room.try_decode()
    }

    fn unreserve(&self) {
        self.room.unreserve();
    }

    #[getter]
    fn reserved(&self) -> usize {
        self.room.reserved()
    }

    fn release(&self) {
        self.room.release();
        *self.body.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    #[getter]
    fn body(&self, py: Python<'_>) -> Py<PyBytes> {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        body.as_ref().map_or_else(|| PyBytes::new(py, &[]).unbind(), |body| body.clone_ref(py))
    }

    #[getter]
    fn connection(&self) -> u64 {
        self.asker.id
    }

    #[getter]
    fn principal(&self) -> &str {
        &self.asker.principal
    }

    #[getter]
    fn client_host(&self) -> &str {
        &self.asker.client_host
    }

    #[getter]
    fn listener(&self) -> &str {
        &self.asker.listener
    }

    #[getter]
    fn client_id(&self) -> &str {
        &self.header.client_id
    }

    #[getter]
    fn api_key(&self) -> i16 {
        self.header.api_key.0
    }

    #[getter]
    fn api_version(&self) -> i16 {
        self.header.api_version
    }

    #[getter]
    fn correlation_id(&self) -> i32 {
        self.header.correlation_id
    }

    #[getter]
    fn received_ns(&self) -> u64 {
        self.header.received_ns
    }

    #[getter]
    fn received_ms(&self) -> i64 {
        self.header.received_ms
    }
}

/// An event whose attributes are its constructor's arguments.
macro_rules! event {
    ($name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        #[pyclass(frozen, get_all, module = "pykafka_core._core")]
        struct $name {
            $($field: $type),*
        }

        #[pymethods]
        impl $name {
            #[new]
            fn new($($field: $type),*) -> $name {
                $name { $($field),* }
            }
        }
    };
}

event!(Cancelled { id: u64 });
event!(Appended { token: u64, error_code: i16, offset: i64 });
event!(Maintained { token: u64, error_code: i16, offset: i64 });
event!(LogDirs { token: u64, sizes: Py<PyList>, total_bytes: i64, usable_bytes: i64 });
event!(Producers { token: u64, error_code: i16, states: Py<PyList> });
event!(RecordsRead {
    token: u64,
    error_code: i16,
    records: Py<PyBytes>,
    offset: i64,
    next_offset: i64,
    log_end_offset: i64,
});
event!(VerifyTransaction {
    token: u64,
    transactional_id: Py<PyString>,
    producer_id: i64,
    producer_epoch: i16,
    partitions: Py<PyList>,
    add: bool,
    received_ns: u64,
});
event!(MarkersWritten { token: u64, error_codes: Py<PyList> });
event!(Replied {
    token: u64,
    error_code: i16,
    body: Py<PyBytes>,
    versions: Option<(i16, i16)>,
    reason: String,
});
event!(TopicsMissing { names: Vec<String>, principal: Py<PyString> });
event!(PartitionState { topic_id: Py<PyBytes>, partition: i32, faults: Py<PyDict> });
event!(Replica {
    topic_id: Py<PyBytes>,
    partition: i32,
    leader_epoch: i32,
    follower: i32,
    state: Py<PyString>,
    since_ns: u64,
});
event!(DiskState { state: Py<PyString>, reason: String });

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

fn records_read(py: Python<'_>, token: u64, read: Result<Records, i16>) -> RecordsRead {
    let (error_code, read) = match read {
        Ok(read) => (0, read),
        Err(error_code) => {
            let records = Bytes::new();
            (error_code, Records { records, offset: -1, next_offset: -1, log_end_offset: -1 })
        }
    };
    let Records { records, offset, next_offset, log_end_offset } = read;
    let records = PyBytes::new(py, &records).unbind();
    RecordsRead { token, error_code, records, offset, next_offset, log_end_offset }
}

fn replied(py: Python<'_>, token: u64, replied: &Reply) -> Replied {
    let (error_code, body, versions, reason) = match replied {
        Ok(body) => (0, &body[..], None, String::new()),
        Err(error) => {
            let versions = match error {
                SendError::UnsupportedVersion { min, max } => Some((*min, *max)),
                _ => None,
            };
            (code_of(error).code(), &[][..], versions, error.to_string())
        }
    };
    Replied { token, error_code, body: PyBytes::new(py, body).unbind(), versions, reason }
}

fn verify_transaction(py: Python<'_>, question: &Question) -> PyResult<VerifyTransaction> {
    let ids = question.partitions.iter().map(|(id, index)| (id_bytes(py, id), *index));
    Ok(VerifyTransaction {
        token: question.token,
        transactional_id: text(py, &question.transactional_id),
        producer_id: question.producer_id.get(),
        producer_epoch: question.producer_epoch.get(),
        partitions: PyList::new(py, ids.collect::<Vec<_>>())?.unbind(),
        add: question.add,
        received_ns: question.received_ns,
    })
}

pub(super) fn to_python(py: Python<'_>, event: Event) -> PyResult<Py<PyAny>> {
    match event {
        Event::Request(event) => object(py, Request::of(py, *event)),
        Event::Cancelled { id } => object(py, Cancelled { id }),
        Event::Appended { token, error_code, offset } => {
            object(py, Appended { token, error_code, offset })
        }
        Event::Maintained { token, error_code, offset } => {
            object(py, Maintained { token, error_code, offset })
        }
        Event::LogDirs { token, sizes, total_bytes, usable_bytes } => {
            let sizes = sizes.iter().map(|(id, index, size)| (id_bytes(py, id), *index, *size));
            let sizes = PyList::new(py, sizes.collect::<Vec<_>>())?.unbind();
            object(py, LogDirs { token, sizes, total_bytes, usable_bytes })
        }
        Event::Producers { token, error_code, producers } => {
            let states = producers.iter().map(|entry| Py::new(py, ProducerState::from(entry)));
            let states = PyList::new(py, states.collect::<PyResult<Vec<_>>>()?)?.unbind();
            object(py, Producers { token, error_code, states })
        }
        Event::RecordsRead { token, read } => object(py, records_read(py, token, read)),
        Event::VerifyTransaction(question) => object(py, verify_transaction(py, &question)?),
        Event::MarkersWritten { token, error_codes } => {
            let error_codes = PyList::new(py, error_codes)?.unbind();
            object(py, MarkersWritten { token, error_codes })
        }
        Event::Replied { token, replied: reply } => object(py, replied(py, token, &reply)),
        Event::TopicsMissing { names, principal } => {
            let names = names.iter().map(ToString::to_string).collect();
            object(py, TopicsMissing { names, principal: text(py, &principal) })
        }
        Event::PartitionState { topic_id, partition, faults } => {
            let topic_id = id_bytes(py, &topic_id);
            let faults = faults.iter().map(|(fault, reason)| (fault.name(), reason));
            let faults = faults.into_py_dict(py)?.unbind();
            object(py, PartitionState { topic_id, partition, faults })
        }
        Event::Replica { topic_id, partition, leader_epoch, follower, state, since_ns } => {
            let (topic_id, state) = (id_bytes(py, &topic_id), text(py, state.name()));
            let leader_epoch = leader_epoch.get();
            object(py, Replica { topic_id, partition, leader_epoch, follower, state, since_ns })
        }
        Event::DiskState { state, reason } => {
            object(py, DiskState { state: text(py, state.name()), reason })
        }
    }
}
