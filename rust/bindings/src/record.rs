//! Record batches for Python: hashes, CRC, building, decompressing, Arrow.
//!
//! `pykafka_core._records` (Cython) creates the `Record` objects; its Rust functions are here.

use std::ops::Range;

use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::SchemaRef;
use pykafka_record::columns::{Columns, ColumnsError};
use pykafka_record::{
    Batch, BatchBuilder, BatchError, BatchOptions, Compression, CompressionError, LeaderEpoch,
    Limits, ProducerEpoch, ProducerId, RecordError, TimestampType, UpgradeError, batches,
    decompress, upgrade,
};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyCapsule, PyIterator, PyList, PyString, PyTuple};

use super::arrow_export::{export_array, export_schema, export_stream};

/// Add this file's functions and classes to `_core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ArrowBatch>()?;
    module.add_class::<ArrowBatches>()?;
    module.add_function(wrap_pyfunction!(murmur2, module)?)?;
    module.add_function(wrap_pyfunction!(partition_for_key, module)?)?;
    module.add_function(wrap_pyfunction!(crc32c, module)?)?;
    module.add_function(wrap_pyfunction!(check_batches, module)?)?;
    module.add_function(wrap_pyfunction!(decompress_batch, module)?)?;
    module.add_function(wrap_pyfunction!(upgrade_batch, module)?)?;
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

/// The records of one batch of format 0 or 1 as a batch of format 2 without compression.
#[pyfunction]
#[pyo3(signature = (batch, /))]
fn upgrade_batch<'py>(py: Python<'py>, batch: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let (batch, _) = Batch::split(batch).map_err(|error| batch_error(py, error))?;
    let mut out = Vec::new();
    let done = py.detach(|| upgrade(&batch, Compression::None, Limits::default(), &mut out));
    done.map_err(|error| match error {
        UpgradeError::Read(error) => record_error(py, &error),
        UpgradeError::Build(error) => kafka_error(py, "InvalidRecordError", &error.to_string()),
    })?;
    Ok(PyBytes::new(py, &out))
}

/// The decompressed records of one batch.
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
        partition_leader_epoch: LeaderEpoch::from_wire(leader_epoch),
        producer_id: ProducerId::new(producer_id),
        producer_epoch: ProducerEpoch::new(producer_epoch),
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

/// Append a record from Python: `(key, value[, headers[, timestamp]])`, or an object with these
/// attributes. A timestamp of `None` becomes `timestamp_default`.
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
        let field = |name| record.getattr(name).map_err(|_| no_record(record));
        return Ok((
            bytes_of(&field("key")?, "key")?,
            bytes_of(&field("value")?, "value")?,
            headers_of(&field("headers")?)?,
            timestamp_of(&field("timestamp")?)?,
        ));
    };
    if !(2..=4).contains(&tuple.len()) {
        return Err(no_record(record));
    }
    let headers = tuple.get_item(2).ok().map(|headers| headers_of(&headers)).transpose()?;
    let timestamp = tuple.get_item(3).ok().map(|timestamp| timestamp_of(&timestamp)).transpose()?;
    Ok((
        bytes_of(&tuple.get_item(0)?, "key")?,
        bytes_of(&tuple.get_item(1)?, "value")?,
        headers.unwrap_or_default(),
        timestamp.flatten(),
    ))
}

fn no_record(given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a record is a tuple (key, value[, headers[, timestamp]]) or an object with these attributes, not {}; \
         several records are an iterable of them, and one is [(key, value)]",
        type_name(given)
    ))
}

fn bytes_of(given: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<PyBackedBytes>> {
    given.extract().map_err(|_| {
        let advice = if given.is_instance_of::<PyString>() {
            ": encode it, as in text.encode()"
        } else {
            ""
        };
        let name = type_name(given);
        PyTypeError::new_err(format!("a record's {what} is bytes or None, not {name}{advice}"))
    })
}

fn headers_of(given: &Bound<'_, PyAny>) -> PyResult<Headers> {
    if given.is_none() {
        return Ok(Headers::new());
    }
    given.extract().map_err(|_| {
        PyTypeError::new_err("a record's headers are a list of (str, bytes or None), or None")
    })
}

fn timestamp_of(given: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    given.extract().map_err(|_| {
        let name = type_name(given);
        PyTypeError::new_err(format!(
            "a record's timestamp is milliseconds since 1970 as a 64-bit int, or None, not {name}"
        ))
    })
}

fn type_name(given: &Bound<'_, PyAny>) -> String {
    given.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string())
}

/// Rows in Arrow's C data interface, for pyarrow and other libraries that accept capsules.
#[pyclass(frozen, module = "pykafka_core._core")]
pub(crate) struct ArrowBatch(RecordBatch);

impl ArrowBatch {
    /// Wrap `rows` for Python.
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

    /// `requested_schema` is ignored, as the protocol allows.
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

/// Batches of rows with one schema, which is known even without batches: a table for libraries that
/// accept stream capsules.
#[pyclass(frozen, sequence, module = "pykafka_core._core")]
pub(crate) struct ArrowBatches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl ArrowBatches {
    /// Wrap `batches` for Python; each has this `schema`.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

#[pymethods]
impl ArrowBatches {
    fn __len__(&self) -> usize {
        self.batches.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<ArrowBatch> {
        let count = self.batches.len();
        let from_start =
            if index < 0 { count.checked_add_signed(index) } else { Some(index as usize) };
        let batch = from_start.and_then(|index| self.batches.get(index));
        batch.cloned().map(ArrowBatch).ok_or_else(|| PyIndexError::new_err("no such batch"))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.batches.iter().cloned().map(ArrowBatch))?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<ArrowBatches {} rows in {} batches>", self.num_rows(), self.batches.len())
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, self.schema.as_ref())
    }

    /// `requested_schema` is ignored, as the protocol allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        export_stream(py, &self.schema, self.batches.clone())
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

/// The exception for unreadable records.
pub(crate) fn record_error(py: Python<'_>, error: &RecordError) -> PyErr {
    let class = match error {
        RecordError::Compression(CompressionError::TooLarge { .. }) => "MessageTooLargeError",
        _ => "InvalidRecordError",
    };
    kafka_error(py, class, &error.to_string())
}

/// The exception for batches that cannot be converted to columns.
pub(crate) fn columns_error(py: Python<'_>, error: &ColumnsError) -> PyErr {
    match error {
        ColumnsError::Record(error) => record_error(py, error),
        ColumnsError::TooLarge(_) => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
