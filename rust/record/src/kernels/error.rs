//! Errors of hashing columns.

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
