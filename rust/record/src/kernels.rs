//! Partitions and fingerprints of whole columns: pure functions over Arrow's slices.
//!
//! A [`Column`] borrows the buffers of one Arrow array and knows nothing of where they came from.
//! Offsets and views are checked where they are used, row by row, so no pass over the column comes
//! before the one that hashes it; what is inconsistent is an error, never a read outside the slices.

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
    /// A buffer holds fewer rows than the column has.
    #[error("an Arrow buffer is shorter than its column of {0} rows")]
    Short(usize),
    /// An offset or view that does not lie in the data.
    #[error("row {0} of an Arrow column points outside its data")]
    Outside(usize),
    /// A value that the length prefix of a fingerprint over many columns cannot tell.
    #[error("row {0} holds a value of 2 GiB or more; fingerprint that column by itself")]
    TooLarge(usize),
    /// Columns that are no columns of one table.
    #[error("columns of {0} and {1} rows cannot be fingerprinted together")]
    Lengths(usize, usize),
}
