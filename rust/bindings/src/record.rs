//! Record batches at Python's door: hashes, CRC, building, decompressing, Arrow.
//!
//! `pykafka_core._records` (Cython) makes the `Record` objects; what it needs of Rust is here.

use std::ops::Range;

use arrow_array::{Array, RecordBatch, StructArray};
use pykafka_record::columns::{Columns, ColumnsError};
use pykafka_record::{
    Batch, BatchBuilder, BatchError, BatchOptions, Compression, CompressionError, Limits,
    RecordError, TimestampType, batches, decompress,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyCapsule, PyTuple};

use super::arrow_export::{export_array, export_schema};

/// Add this file's functions and classes to `_core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ArrowBatch>()?;
    module.add_function(wrap_pyfunction!(murmur2, module)?)?;
    module.add_function(wrap_pyfunction!(partition_for_key, module)?)?;
    module.add_function(wrap_pyfunction!(crc32c, module)?)?;
    module.add_function(wrap_pyfunction!(check_batches, module)?)?;
    module.add_function(wrap_pyfunction!(decompress_batch, module)?)?;
    module.add_function(wrap_pyfunction!(build_batch, module)?)?;
    module.add_function(wrap_pyfunction!(batches_to_arrow, module)?)
}

#[pyfunction]
#[pyo3(signature = (key, /))]
fn murmur2(key: &[u8]) -> i32 {
    pykafka_record::murmur2(key) as i32
}

#[pyfunction]
#[pyo3(signature = (key, partitions, /))]
fn partition_for_key(key: &[u8], partitions: i32) -> PyResult<i32> {
    if partitions < 1 {
        return Err(PyValueError::new_err("a topic has 1 partition at least"));
    }
    Ok(pykafka_record::partition_for_key(key, partitions))
}

#[pyfunction]
#[pyo3(signature = (data, /))]
fn crc32c(py: Python<'_>, data: &[u8]) -> u32 {
    py.detach(|| pykafka_record::crc32c(data))
}

/// Check magic and CRC of each whole batch; return the size of all of them.
#[pyfunction]
#[pyo3(signature = (data, /))]
fn check_batches(py: Python<'_>, data: &[u8]) -> PyResult<usize> {
    let size = py.detach(|| {
        let mut walk = batches(data);
        for batch in &mut walk {
            let batch = batch.map_err(|error| error.to_string())?;
            if !batch.is_crc_valid() {
                return Err(format!("CRC of the batch at {} differs", batch.base_offset()));
            }
        }
        Ok(data.len() - walk.rest().len())
    });
    size.map_err(|text| kafka_error(py, "CorruptMessageError", &text))
}

/// The records of one batch without compression.
#[pyfunction]
#[pyo3(signature = (batch, /))]
fn decompress_batch<'py>(py: Python<'py>, batch: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let (batch, _) = Batch::split(batch).map_err(|error| batch_error(py, error))?;
    let mut out = Vec::new();
    let done = py.detach(|| {
        let codec = batch.compression()?;
        Ok(decompress(codec, batch.payload(), &mut out, Limits::default())?)
    });
    done.map_err(|error| record_error(py, &error))?;
    Ok(PyBytes::new(py, &out))
}

#[pyfunction]
#[pyo3(signature = (
    records, /, *, compression = "none", level = None, base_offset = 0, leader_epoch = -1,
    producer_id = -1, producer_epoch = -1, base_sequence = -1, transactional = false,
    timestamp_default = -1, control = false,
))]
#[expect(clippy::too_many_arguments, reason = "keyword-only at Python's door")]
fn build_batch<'py>(
    py: Python<'py>,
    records: &Bound<'py, PyAny>,
    compression: &str,
    level: Option<i32>,
    base_offset: i64,
    leader_epoch: i32,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    timestamp_default: i64,
    control: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let compression =
        Compression::from_name(compression).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let mut builder = BatchBuilder::new(BatchOptions {
        compression,
        level,
        timestamp_type: TimestampType::CreateTime,
        base_offset,
        partition_leader_epoch: leader_epoch,
        producer_id,
        producer_epoch,
        base_sequence,
        transactional,
        control,
    });
    for record in records.try_iter()? {
        append_record(&mut builder, &record?, timestamp_default)?;
    }
    let mut out = Vec::new();
    let built = py.detach(|| builder.build(&mut out));
    built.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &out))
}

type Headers = Vec<(PyBackedStr, Option<PyBackedBytes>)>;

/// Append a record given from Python: `(key, value[, headers[, timestamp]])`, or an object with
/// these attributes. A timestamp of `None` becomes `timestamp_default`.
pub(crate) fn append_record(
    builder: &mut BatchBuilder,
    record: &Bound<'_, PyAny>,
    timestamp_default: i64,
) -> PyResult<()> {
    let (key, value, headers, timestamp) = fields_of(record)?;
    let headers: Vec<_> =
        headers.iter().map(|(key, value)| (key.as_bytes(), value.as_deref())).collect();
    builder
        .append(timestamp.unwrap_or(timestamp_default), key.as_deref(), value.as_deref(), &headers)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

type Fields = (Option<PyBackedBytes>, Option<PyBackedBytes>, Headers, Option<i64>);

fn fields_of(record: &Bound<'_, PyAny>) -> PyResult<Fields> {
    let Ok(tuple) = record.cast::<PyTuple>() else {
        return Ok((
            record.getattr("key")?.extract()?,
            record.getattr("value")?.extract()?,
            headers_of(&record.getattr("headers")?)?,
            record.getattr("timestamp")?.extract()?,
        ));
    };
    if !(2..=4).contains(&tuple.len()) {
        return Err(PyTypeError::new_err("a record is (key, value[, headers[, timestamp]])"));
    }
    let headers = tuple.get_item(2).ok().map(|headers| headers_of(&headers)).transpose()?;
    let timestamp = tuple.get_item(3).ok().map(|timestamp| timestamp.extract()).transpose()?;
    Ok((
        tuple.get_item(0)?.extract()?,
        tuple.get_item(1)?.extract()?,
        headers.unwrap_or_default(),
        timestamp.flatten(),
    ))
}

fn headers_of(headers: &Bound<'_, PyAny>) -> PyResult<Headers> {
    if headers.is_none() { Ok(Headers::new()) } else { headers.extract() }
}

/// Rows in Arrow's C data interface, for pyarrow and every other library that takes capsules.
#[pyclass(frozen, module = "pykafka_core._core")]
pub(crate) struct ArrowBatch(RecordBatch);

impl ArrowBatch {
    /// Hand `rows` to Python.
    pub(crate) fn new(rows: RecordBatch) -> Self {
        Self(rows)
    }
}

#[pymethods]
impl ArrowBatch {
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, self.0.schema().as_ref())
    }

    /// `requested_schema` is a wish that the protocol allows not to fulfil.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        export_array(py, &StructArray::from(self.0.clone()).to_data())
    }
}

/// The records of whole batches with `start` ≤ offset < `end` as Arrow; control batches left out.
#[pyfunction]
#[pyo3(signature = (data, /, start = 0, end = i64::MAX))]
fn batches_to_arrow(py: Python<'_>, data: &[u8], start: i64, end: i64) -> PyResult<ArrowBatch> {
    let rows = py.detach(|| collect_rows(data, &(start..end)));
    match rows {
        Ok(rows) => Ok(ArrowBatch::new(rows)),
        Err(RowsError::Batch(error)) => Err(batch_error(py, error)),
        Err(RowsError::Columns(error)) => Err(columns_error(py, &error)),
    }
}

enum RowsError {
    Batch(BatchError),
    Columns(ColumnsError),
}

fn collect_rows(data: &[u8], wanted: &Range<i64>) -> Result<RecordBatch, RowsError> {
    let mut columns = Columns::new(Limits::default());
    for batch in batches(data) {
        let batch = batch.map_err(RowsError::Batch)?;
        if !batch.is_control() {
            columns.append_batch(batch, wanted).map_err(RowsError::Columns)?;
        }
    }
    columns.finish().map_err(RowsError::Columns)
}

/// An instance of a class of `pykafka_core.errors`.
fn kafka_error(py: Python<'_>, class: &str, text: &str) -> PyErr {
    let made = py
        .import("pykafka_core.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

fn batch_error(py: Python<'_>, error: BatchError) -> PyErr {
    kafka_error(py, "CorruptMessageError", &error.to_string())
}

/// What Python raises for records that cannot be read.
pub(crate) fn record_error(py: Python<'_>, error: &RecordError) -> PyErr {
    let class = match error {
        RecordError::Compression(CompressionError::TooLarge { .. }) => "MessageTooLargeError",
        _ => "InvalidRecordError",
    };
    kafka_error(py, class, &error.to_string())
}

/// What Python raises for batches that cannot become columns.
pub(crate) fn columns_error(py: Python<'_>, error: &ColumnsError) -> PyErr {
    match error {
        ColumnsError::Record(error) => record_error(py, error),
        ColumnsError::TooLarge(_) => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
