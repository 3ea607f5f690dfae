//! Partitions and fingerprints of whole columns: pure functions over Arrow's slices.
//!
//! A [`Column`] borrows the buffers of one Arrow array from any source. Offsets and views are
//! checked when they are used, row by row, so there is no extra pass over the column before the
//! hash. Invalid ones are errors, never reads outside of the slices.

mod column;
mod fingerprints;
mod lanes;
mod partitions;

pub use column::{Column, Validity, Values};
pub use fingerprints::{FINGERPRINT_SIZE, fingerprints};
pub use partitions::{Partitioner, UnknownPartitioner, partitions};

/// Why a column cannot be hashed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KernelError {
    /// A buffer has fewer rows than the column.
    #[error("an Arrow buffer is shorter than its column of {0} rows")]
    Short(usize),
    /// An offset or view is outside of the data.
    #[error("row {0} of an Arrow column points outside its data")]
    Outside(usize),
    /// A value exceeds the length prefix in a fingerprint of several columns.
    #[error("row {0} holds a value of 2 GiB or more; fingerprint that column by itself")]
    TooLarge(usize),
    /// Columns have different numbers of rows.
    #[error("columns of {0} and {1} rows cannot be fingerprinted together")]
    Lengths(usize, usize),
}
