//! Batches as Arrow columns, and rows back into batches.
//!
//! | column | type | |
//! |---|---|---|
//! | `offset` | `int64` | |
//! | `timestamp` | `timestamp[ms, UTC]` | −1 ms for records without one |
//! | `key`, `value` | `binary`, or `binary_view` | null and empty differ |
//! | `headers` | `list<struct<key: utf8, value: binary>>` | in order; keys may repeat |
//!
//! [`Columns`] copies each byte once. In [`ColumnViews`], keys and values point into the buffer of
//! the batches, so the arrays keep that buffer alive; compressed batches are copied. Neither checks
//! CRCs: the caller must do that first.

mod binary;
mod copied;
mod headers;
mod rows;
mod views;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use crate::record::{Record, RecordError};

pub use copied::Columns;
pub use rows::Rows;
pub use views::ColumnViews;

/// Why batches cannot be converted to columns, or columns to batches.
#[derive(Debug, thiserror::Error)]
pub enum ColumnsError {
    /// A batch cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A column would exceed 2 GiB of bytes; convert fewer records at once.
    #[error("column {0} would pass 2 GiB")]
    TooLarge(&'static str),
    /// A required column is missing.
    #[error("column {0} is missing")]
    Missing(&'static str),
    /// A column has an unsupported type.
    #[error("column {column} cannot be of type {found}")]
    Type {
        /// The column.
        column: &'static str,
        /// Its type.
        found: DataType,
    },
    /// Arrow rejected the arrays.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
}

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| schema_of(&DataType::Binary));
static SCHEMA_OF_VIEWS: LazyLock<SchemaRef> = LazyLock::new(|| schema_of(&DataType::BinaryView));

/// The schema of [`Columns`].
pub fn schema() -> SchemaRef {
    SCHEMA.clone()
}

/// The schema of [`ColumnViews`]: keys and values as `binary_view`.
pub fn schema_of_views() -> SchemaRef {
    SCHEMA_OF_VIEWS.clone()
}

fn schema_of(bytes: &DataType) -> SchemaRef {
    let timestamp = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("offset", DataType::Int64, false),
        Field::new("timestamp", timestamp, false),
        Field::new("key", bytes.clone(), true),
        Field::new("value", bytes.clone(), true),
        Field::new("headers", DataType::List(header_item()), false),
    ]))
}

fn header_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Binary, true),
    ])
}

fn header_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(header_fields()), false))
}

/// The columns that both forms have in common.
#[derive(Debug, Default)]
struct Shared {
    offsets: Vec<i64>,
    timestamps: Vec<i64>,
    headers: headers::HeaderColumn,
}

impl Shared {
    fn reserve(&mut self, rows: usize) {
        self.offsets.reserve(rows);
        self.timestamps.reserve(rows);
    }

    /// Whether a record is in `wanted`, which is half-open. Its offset must be above that of the
    /// previous row; Kafka's consumers skip others, too.
    #[inline]
    fn wants(&self, wanted: &Range<i64>, record: &Record<'_>) -> bool {
        wanted.contains(&record.offset)
            && self.offsets.last().is_none_or(|last| *last < record.offset)
    }

    #[inline]
    fn append(&mut self, record: &Record<'_>) -> Result<(), ColumnsError> {
        self.headers.append(record.headers)?;
        self.offsets.push(record.offset);
        self.timestamps.push(record.timestamp);
        Ok(())
    }

    fn finish(
        &mut self,
        schema: SchemaRef,
        key: ArrayRef,
        value: ArrayRef,
    ) -> Result<RecordBatch, ColumnsError> {
        let offsets = Int64Array::from(std::mem::take(&mut self.offsets));
        let timestamps = TimestampMillisecondArray::from(std::mem::take(&mut self.timestamps));
        let timestamps = timestamps.with_timezone("UTC");
        let headers = Arc::new(self.headers.finish());
        let columns: Vec<ArrayRef> =
            vec![Arc::new(offsets), Arc::new(timestamps), key, value, headers];
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}
