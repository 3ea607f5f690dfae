//! Rows of a table as records for a [`BatchBuilder`].
//!
//! Accepted are tables from [`super::Columns`] and typical data frames: keys and values as binary
//! or text with any offset width or as views, times of any unit or as integer milliseconds.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use super::error::ColumnsError;
use crate::builder::{BatchBuilder, BuildError};

/// A table with checked columns: `value` is required, `key`, `timestamp` and `headers` are
/// optional. Others, including `offset`, are ignored.
#[derive(Debug)]
pub struct Rows {
    count: usize,
    key: Option<BytesColumn>,
    value: BytesColumn,
    timestamp: Option<TimeColumn>,
    headers: Option<HeadersColumn>,
}

impl Rows {
    /// Checks the columns of `table`.
    pub fn new(table: &RecordBatch) -> Result<Self, ColumnsError> {
        let bytes = |name| table.column_by_name(name).map(|array| BytesColumn::new(name, array));
        Ok(Self {
            count: table.num_rows(),
            key: bytes("key").transpose()?,
            value: bytes("value").transpose()?.ok_or(ColumnsError::Missing("value"))?,
            timestamp: table.column_by_name("timestamp").map(TimeColumn::new).transpose()?,
            headers: table.column_by_name("headers").map(HeadersColumn::new).transpose()?,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The key of `row`, for the choice of its partition.
    pub fn key(&self, row: usize) -> Option<&[u8]> {
        self.key.as_ref()?.get(row)
    }

    /// Append `row`, which must be less than [`Self::len`]. Rows without a time get
    /// `timestamp_default` (ms).
    pub fn append_to(
        &self,
        row: usize,
        timestamp_default: i64,
        builder: &mut BatchBuilder,
    ) -> Result<(), BuildError> {
        let timestamp = self.timestamp.as_ref().and_then(|times| times.get(row));
        let timestamp = timestamp.unwrap_or(timestamp_default);
        let headers = self.headers.as_ref().map(|headers| headers.get(row)).unwrap_or_default();
        builder.append(timestamp, self.key(row), self.value.get(row), &headers)
    }
}

/// Bytes or text, in any of Arrow's layouts.
#[derive(Debug)]
struct BytesColumn(ArrayRef);

impl BytesColumn {
    fn new(column: &'static str, array: &ArrayRef) -> Result<Self, ColumnsError> {
        match array.data_type() {
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Null => Ok(Self(array.clone())),
            found => Err(ColumnsError::Type { column, found: found.clone() }),
        }
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        if self.0.is_null(row) {
            return None;
        }
        match self.0.data_type() {
            DataType::Binary => Some(self.0.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Some(self.0.as_binary::<i64>().value(row)),
            DataType::BinaryView => Some(self.0.as_binary_view().value(row)),
            DataType::Utf8 => Some(self.0.as_string::<i32>().value(row).as_bytes()),
            DataType::LargeUtf8 => Some(self.0.as_string::<i64>().value(row).as_bytes()),
            DataType::Utf8View => Some(self.0.as_string_view().value(row).as_bytes()),
            // Only columns of type null are left, whose validity is not a bitmap.
            _ => None,
        }
    }
}

/// Times, as 64-bit numbers with their unit.
#[derive(Debug)]
struct TimeColumn {
    values: ArrayRef,
    unit: Option<TimeUnit>,
}

impl TimeColumn {
    fn new(array: &ArrayRef) -> Result<Self, ColumnsError> {
        let unit = match array.data_type() {
            DataType::Int64 => None,
            DataType::Timestamp(unit, _) => Some(*unit),
            found => {
                return Err(ColumnsError::Type { column: "timestamp", found: found.clone() });
            }
        };
        Ok(Self { values: as_int64(array)?, unit })
    }

    /// Milliseconds, rounded down; `None` for null.
    fn get(&self, row: usize) -> Option<i64> {
        if self.values.is_null(row) {
            return None;
        }
        let value = self.values.as_primitive::<Int64Type>().value(row);
        Some(match self.unit {
            None | Some(TimeUnit::Millisecond) => value,
            Some(TimeUnit::Second) => value.saturating_mul(1000),
            Some(TimeUnit::Microsecond) => value.div_euclid(1000),
            Some(TimeUnit::Nanosecond) => value.div_euclid(1_000_000),
        })
    }
}

/// Drop the unit of the numbers.
fn as_int64(array: &ArrayRef) -> Result<ArrayRef, ColumnsError> {
    let data = array.to_data().into_builder().data_type(DataType::Int64).build()?;
    Ok(arrow_array::make_array(data))
}

/// Lists of structs (or map entries) of a key and a value.
#[derive(Debug)]
struct HeadersColumn {
    lists: ListArray,
    keys: BytesColumn,
    values: BytesColumn,
}

impl HeadersColumn {
    fn new(array: &ArrayRef) -> Result<Self, ColumnsError> {
        let lists = match array.data_type() {
            DataType::List(_) => array.as_list::<i32>().clone(),
            DataType::Map(..) => ListArray::from(array.as_map().clone()),
            found => return Err(ColumnsError::Type { column: "headers", found: found.clone() }),
        };
        let Some(items) = lists.values().as_struct_opt() else {
            let found = lists.values().data_type().clone();
            return Err(ColumnsError::Type { column: "headers", found });
        };
        let [keys, values] = items.columns() else {
            let found = items.data_type().clone();
            return Err(ColumnsError::Type { column: "headers", found });
        };
        let (keys, values) =
            (BytesColumn::new("headers", keys)?, BytesColumn::new("headers", values)?);
        Ok(Self { lists, keys, values })
    }

    /// The headers of `row`; empty for null. A null key becomes an empty one.
    fn get(&self, row: usize) -> Vec<(&[u8], Option<&[u8]>)> {
        if self.lists.is_null(row) {
            return Vec::new();
        }
        let offsets = self.lists.value_offsets();
        (offsets[row] as usize..offsets[row + 1] as usize)
            .map(|item| (self.keys.get(item).unwrap_or_default(), self.values.get(item)))
            .collect()
    }
}
