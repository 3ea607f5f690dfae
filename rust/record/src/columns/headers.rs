//! The column of headers. Most records have no headers and then only need one number.

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{Array, ListArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use std::sync::Arc;

use super::error::ColumnsError;
use super::schema::{header_fields, header_item};
use crate::record::Headers;

/// A list of key and value for each record.
#[derive(Debug, Default)]
pub(super) struct HeaderColumn {
    /// The end of each record's headers.
    ends: Vec<i32>,
    keys: StringBuilder,
    values: BinaryBuilder,
}

impl HeaderColumn {
    /// Add a record's headers. Invalid UTF-8 in keys is replaced, as in Java.
    #[inline]
    pub(super) fn append(&mut self, headers: Headers<'_>) -> Result<(), ColumnsError> {
        let end = self.ends.last().copied().unwrap_or_default();
        let end = i32::try_from(headers.count()).ok().and_then(|count| end.checked_add(count));
        let end = end.ok_or(ColumnsError::TooLarge("headers"))?;
        if !headers.is_empty() {
            self.append_each(headers)?;
        }
        self.ends.push(end);
        Ok(())
    }

    fn append_each(&mut self, headers: Headers<'_>) -> Result<(), ColumnsError> {
        // Replacement can triple the size of a key.
        let size = headers.bytes().len().saturating_mul(3);
        let taken = self.keys.values_slice().len().max(self.values.values_slice().len());
        if taken.saturating_add(size) > i32::MAX as usize {
            return Err(ColumnsError::TooLarge("headers"));
        }
        for (key, value) in headers.iter() {
            self.keys.append_value(String::from_utf8_lossy(key));
            self.values.append_option(value);
        }
        Ok(())
    }

    /// Return the array and clear the column.
    pub(super) fn finish(&mut self) -> ListArray {
        let ends = std::mem::take(&mut self.ends);
        let offsets: Vec<i32> = std::iter::once(0).chain(ends).collect();
        let keys: Arc<dyn Array> = Arc::new(self.keys.finish());
        let values = Arc::new(self.values.finish());
        let items = StructArray::new(header_fields(), vec![keys, values], None);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        ListArray::new(header_item(), offsets, Arc::new(items), None)
    }
}
