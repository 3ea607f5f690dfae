//! Partitions and fingerprints of whole columns: pure functions over Arrow's slices.
//!
//! A [`Column`] borrows the buffers of one Arrow array from any source. Offsets and views are
//! checked when they are used, row by row, so there is no extra pass over the column before the
//! hash. Invalid ones are errors, never reads outside of the slices.

mod column;
mod error;
mod fingerprints;
mod lanes;
mod partitions;

pub use column::{Column, Validity, Values};
pub use error::KernelError;
pub use fingerprints::{FINGERPRINT_SIZE, fingerprints};
pub use partitions::{Partitioner, UnknownPartitioner, partitions};
