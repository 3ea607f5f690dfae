//! A growing column of nullable bytes, each copied once.

use arrow_array::BinaryArray;
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};

use super::ColumnsError;

/// Bytes behind one another, and where each value ends.
///
/// Arrow's own builder checks and grows per value; here a batch's worth is reserved at once
/// ([`Self::reserve`]).
#[derive(Debug)]
pub(super) struct BinaryColumn {
    name: &'static str,
    bytes: Vec<u8>,
    /// The first is 0, as Arrow has it.
    ends: Vec<i32>,
    validity: NullBufferBuilder,
}

impl BinaryColumn {
    /// An empty column, named in errors.
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, bytes: Vec::new(), ends: vec![0], validity: NullBufferBuilder::new(0) }
    }

    /// Bytes so far.
    pub(super) fn bytes_count(&self) -> usize {
        self.bytes.len()
    }

    /// Have room for so many rows and bytes; both are guesses from what is there to be read.
    pub(super) fn reserve(&mut self, rows: usize, bytes: usize) {
        self.ends.reserve(rows);
        self.bytes.reserve(bytes);
    }

    /// Whether `value` fits; asked of all columns before a row is appended to any.
    #[inline]
    pub(super) fn check(&self, value: Option<&[u8]>) -> Result<(), ColumnsError> {
        let size = self.bytes.len() + value.map_or(0, <[u8]>::len);
        if size > i32::MAX as usize { Err(ColumnsError::TooLarge(self.name)) } else { Ok(()) }
    }

    /// Append a value that was found to fit.
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

    /// The array; the column is empty again.
    pub(super) fn finish(&mut self) -> BinaryArray {
        let full = std::mem::replace(self, Self::new(self.name));
        let mut validity = full.validity;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(full.ends));
        BinaryArray::new(offsets, Buffer::from_vec(full.bytes), validity.finish())
    }
}
