//! The codec's exception, and its texts.

use pykafka_wire::schema::Message;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    pykafka_core._core,
    ProtocolError,
    PyValueError,
    "Bytes that are not the message they should be, or a value that a message cannot carry."
);

pub(super) fn unknown_api(api_key: i16) -> PyErr {
    ProtocolError::new_err(format!("API key {api_key} is not supported"))
}

pub(super) fn unsupported(message: &Message, version: i16) -> PyErr {
    ProtocolError::new_err(format!("{} has no version {version}", message.name))
}
