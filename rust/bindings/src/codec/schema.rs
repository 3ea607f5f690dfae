//! Schemas for Python: the tables from which it creates its classes, and the versions.

use pykafka_wire::schema::{Default, Type, messages};
use pykafka_wire::{ApiKey, supported_versions};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::layout::shared_default;
use super::whole::named;

/// A struct: its name, and for each field the name, `value` / `list` / `struct`, and the default
/// value or the name of the struct.
type Schema<'py> = (&'static str, Vec<(&'static str, &'static str, Bound<'py, PyAny>)>);

#[pyfunction]
pub fn message_names() -> Vec<&'static str> {
    messages().iter().map(|message| message.name).collect()
}

#[pyfunction]
pub fn message_schema<'py>(py: Python<'py>, name: &str) -> PyResult<Vec<Schema<'py>>> {
    let mut structs = Vec::new();
    for schema in named(name)?.structs {
        let mut fields = Vec::new();
        for field in schema.fields {
            let (kind, default) = match (field.default, field.is_list, field.kind) {
                (Default::Empty, true, _) => ("list", py.None().into_bound(py)),
                (Default::Empty, _, Type::Of(inner)) => {
                    ("struct", PyString::new(py, inner.name).into_any())
                }
                _ => ("value", shared_default(py, field)?),
            };
            fields.push((field.name, kind, default));
        }
        structs.push((schema.name, fields));
    }
    Ok(structs)
}

#[pyfunction]
pub fn message_versions(name: &str) -> PyResult<(i16, i16)> {
    let versions = named(name)?.versions;
    Ok((versions.0, versions.1))
}

#[pyfunction]
pub fn api_versions(api_key: i16) -> Option<(i16, i16)> {
    supported_versions(ApiKey(api_key)).map(|versions| (*versions.start(), *versions.end()))
}

#[pyfunction]
pub fn is_flexible(api_key: i16, version: i16) -> bool {
    pykafka_wire::is_flexible(ApiKey(api_key), version)
}
