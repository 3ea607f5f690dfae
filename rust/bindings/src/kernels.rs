//! Partitions and fingerprints of Arrow columns; `pykafka_core.kernels` is their public interface.

use std::num::NonZero;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, Int32Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use pykafka_record::kernels::{self, Column, FINGERPRINT_SIZE, Partitioner, Validity};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::arrow_export::{export_array, export_schema};
use super::arrow_import::{ImportedArray, Types, value_error};

/// Add this file's functions and classes to `_core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ArrowColumn>()?;
    module.add_function(wrap_pyfunction!(partitions, module)?)?;
    module.add_function(wrap_pyfunction!(fingerprints, module)?)
}

/// One column in Arrow's C data interface.
#[pyclass(frozen, module = "pykafka_core._core")]
struct ArrowColumn(ArrayRef);

#[pymethods]
impl ArrowColumn {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, self.0.data_type())
    }

    /// `requested_schema` is ignored, as the protocol allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        export_array(py, &self.0.to_data())
    }
}

#[pyfunction]
#[pyo3(signature = (keys, num_partitions, partitioner, /))]
fn partitions(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    num_partitions: i32,
    partitioner: &str,
) -> PyResult<ArrowColumn> {
    let num_partitions = u32::try_from(num_partitions).ok().and_then(NonZero::new);
    let Some(num_partitions) = num_partitions else {
        return Err(PyValueError::new_err("a topic has 1 partition at least"));
    };
    let partitioner: Partitioner = partitioner.parse().map_err(value_error)?;
    let imported = ImportedArray::new(keys, Types::Keys)?;
    let keys = imported.column()?;
    let found = py.detach(|| kernels::partitions(&keys, num_partitions, partitioner));
    let found = found.map_err(value_error)?;
    Ok(ArrowColumn(Arc::new(Int32Array::new(found.into(), nulls_of(&keys)))))
}

#[pyfunction]
#[pyo3(signature = (*columns, seed))]
fn fingerprints(py: Python<'_>, columns: &Bound<'_, PyTuple>, seed: u32) -> PyResult<ArrowColumn> {
    let imported: Vec<_> = columns
        .iter()
        .map(|column| ImportedArray::new(&column, Types::Ids))
        .collect::<PyResult<_>>()?;
    let columns: Vec<_> = imported.iter().map(ImportedArray::column).collect::<PyResult<_>>()?;
    let digests = py.detach(|| kernels::fingerprints(&columns, seed)).map_err(value_error)?;
    let nulls = match columns.as_slice() {
        [only] => nulls_of(only),
        _ => None,
    };
    let digests = FixedSizeBinaryArray::try_new(FINGERPRINT_SIZE as i32, digests.into(), nulls);
    Ok(ArrowColumn(Arc::new(digests.map_err(value_error)?)))
}

/// A copy of a column's bitmap; `None` if no row is null.
fn nulls_of(column: &Column<'_>) -> Option<NullBuffer> {
    let (bits, offset) = column.validity().map(Validity::parts)?;
    let (first, last) = (offset / 8, (offset + column.len()).div_ceil(8));
    let bits = Buffer::from(&bits[first..last]);
    let nulls = NullBuffer::new(BooleanBuffer::new(bits, offset % 8, column.len()));
    (nulls.null_count() > 0).then_some(nulls)
}
