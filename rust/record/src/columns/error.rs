//! Errors of converting batches and columns.

use arrow_schema::DataType;

use crate::record::RecordError;

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
        /// Its name in the schema.
        column: &'static str,
        /// Its actual type.
        found: DataType,
    },
    /// Arrow rejected the arrays.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
}
