//! A growing column of nullable bytes; each byte is copied once.

use arrow_array::BinaryArray;
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};

use super::error::ColumnsError;

/// Concatenated bytes, and the end of each value.
///
/// Arrow's own builder checks and grows per value; here the capacity for a batch is reserved at
/// once ([`Self::reserve`]).
#[derive(Debug)]
pub(super) struct BinaryColumn {
    name: &'static str,
    bytes: Vec<u8>,
    /// The first one is 0, as in Arrow.
    ends: Vec<i32>,
    validity: NullBufferBuilder,
}

impl BinaryColumn {
    /// Creates an empty column; `name` is used in errors.
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, bytes: Vec::new(), ends: vec![0], validity: NullBufferBuilder::new(0) }
    }

    /// Number of bytes so far.
    pub(super) fn bytes_count(&self) -> usize {
        self.bytes.len()
    }

    /// Reserve capacity for this estimated number of rows and bytes.
    pub(super) fn reserve(&mut self, rows: usize, bytes: usize) {
        self.ends.reserve(rows);
        self.bytes.reserve(bytes);
    }

    /// Whether `value` fits; all columns are checked before a row is appended to any.
    #[inline]
    pub(super) fn check(&self, value: Option<&[u8]>) -> Result<(), ColumnsError> {
        let size = self.bytes.len() + value.map_or(0, <[u8]>::len);
        if size > i32::MAX as usize { Err(ColumnsError::TooLarge(self.name)) } else { Ok(()) }
    }

    /// Append a value for which [`Self::check`] succeeded.
    #[inline]
    pub(super) fn append(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => {
                self.bytes.extend_from_slice(value);
                self.validity.append_non_null();
            }
            None => self.validity.append_null(),
        }
        self.ends.push(self.bytes.len() as i32);
    }

    /// Return the array and clear the column.
    pub(super) fn finish(&mut self) -> BinaryArray {
        let full = std::mem::replace(self, Self::new(self.name));
        let mut validity = full.validity;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(full.ends));
        BinaryArray::new(offsets, Buffer::from_vec(full.bytes), validity.finish())
    }
}
