//! Exports Arrow data to Python: the C data interface in capsules.

use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_data::ArrayData;
use arrow_schema::SchemaRef;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Return value of `__arrow_c_schema__` for a `DataType` or a `Schema`.
pub(crate) fn export_schema<'py, T>(py: Python<'py>, schema: &T) -> PyResult<Bound<'py, PyCapsule>>
where
    for<'a> FFI_ArrowSchema: TryFrom<&'a T, Error = arrow_schema::ArrowError>,
{
    let schema = FFI_ArrowSchema::try_from(schema).map_err(arrow_error)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Return value of `__arrow_c_array__`: the capsules of schema and array.
pub(crate) fn export_array<'py>(
    py: Python<'py>,
    data: &ArrayData,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let (array, schema) = to_ffi(data).map_err(arrow_error)?;
    Ok((
        PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
        PyCapsule::new_with_value(py, array, c"arrow_array")?,
    ))
}

/// Return value of `__arrow_c_stream__`; a new stream for each call.
pub(crate) fn export_stream<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema.clone());
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn arrow_error(error: arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
