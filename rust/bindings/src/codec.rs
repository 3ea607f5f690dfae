//! Python's door to the codec: messages as objects of slot classes (`pykafka_core.protocol`).

mod layout;
mod metadata;
mod objects;
pub(crate) mod parts;
mod schema;
mod slots;

use pykafka_wire::schema::{Message, message_by_name, request_of, response_of};
use pykafka_wire::{ApiKey, codec};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use layout::{layouts_of, message_of};
use objects::{Objects, Slots};

create_exception!(
    pykafka_core._core,
    ProtocolError,
    PyValueError,
    "Bytes that are not the message they should be, or a value that a message cannot carry."
);

/// Adds the codec's functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ProtocolError", module.py().get_type::<ProtocolError>())?;
    module.add_class::<parts::RequestDecoder>()?;
    module.add_class::<parts::MessageEncoder>()?;
    module.add_class::<parts::EncodedMessage>()?;
    for function in [
        wrap_pyfunction!(decode_request, module)?,
        wrap_pyfunction!(decode_response, module)?,
        wrap_pyfunction!(decode_message, module)?,
        wrap_pyfunction!(encode_message, module)?,
        wrap_pyfunction!(metadata::decode_metadata_record, module)?,
        wrap_pyfunction!(metadata::encode_metadata_record, module)?,
        wrap_pyfunction!(metadata::decode_metadata_records, module)?,
        wrap_pyfunction!(schema::message_names, module)?,
        wrap_pyfunction!(schema::message_schema, module)?,
        wrap_pyfunction!(schema::message_versions, module)?,
        wrap_pyfunction!(schema::api_versions, module)?,
        wrap_pyfunction!(schema::is_flexible, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}

#[pyfunction]
fn decode_request<'py>(
    py: Python<'py>,
    api_key: i16,
    version: i16,
    body: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let message = request_of(ApiKey(api_key)).ok_or_else(|| unknown_api(api_key))?;
    decode(py, message, version, body)
}

#[pyfunction]
fn decode_response<'py>(
    py: Python<'py>,
    api_key: i16,
    version: i16,
    body: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let message = response_of(ApiKey(api_key)).ok_or_else(|| unknown_api(api_key))?;
    decode(py, message, version, body)
}

#[pyfunction]
fn decode_message<'py>(
    py: Python<'py>,
    name: &str,
    version: i16,
    body: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    decode(py, named(name)?, version, body)
}

#[pyfunction]
fn encode_message<'py>(
    py: Python<'py>,
    message: &Bound<'py, PyAny>,
    version: i16,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::with_capacity(256);
    encode(message, version, &mut out)?;
    Ok(PyBytes::new(py, &out))
}

fn named(name: &str) -> PyResult<&'static Message> {
    message_by_name(name).ok_or_else(|| ProtocolError::new_err(format!("no message {name:?}")))
}

fn unknown_api(api_key: i16) -> PyErr {
    ProtocolError::new_err(format!("API key {api_key} is not supported"))
}

fn decode<'py>(
    py: Python<'py>,
    message: &'static Message,
    version: i16,
    body: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let plan = message.plan(version).map_err(|_| unsupported(message, version))?;
    let mut objects = Objects::new(py, layouts_of(py, message)?);
    Ok(codec::decode(plan, body, &mut objects)?)
}

/// Appends a message to `out`.
fn encode(object: &Bound<'_, PyAny>, version: i16, out: &mut Vec<u8>) -> PyResult<()> {
    let message = message_of(object)?;
    let plan = message.plan(version).map_err(|_| unsupported(message, version))?;
    let slots = Slots::new(layouts_of(object.py(), message)?);
    Ok(codec::encode(plan, object.as_borrowed(), &slots, out)?)
}

fn unsupported(message: &Message, version: i16) -> PyErr {
    ProtocolError::new_err(format!("{} has no version {version}", message.name))
}
