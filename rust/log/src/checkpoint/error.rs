//! Errors of reading checkpoints.

/// The reason why a checkpoint cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not text.
    #[error("the file is not UTF-8")]
    Encoding,
    /// A version that is not supported.
    #[error("unknown version {0:?}")]
    Version(String),
    /// A line that cannot be parsed; lines are counted from 1.
    #[error("line {number} cannot be read: {line:?}")]
    Line {
        /// Number of the line.
        number: usize,
        /// Its first 100 characters.
        line: String,
    },
    /// The number of lines differs from the declared number.
    #[error("{found} entries instead of {declared}")]
    Count {
        /// The count in the file.
        declared: String,
        /// The count of its lines.
        found: usize,
    },
    /// The last line has no line end: its number may have lost digits.
    #[error("the last line is cut: {0:?}")]
    Cut(String),
    /// A file without bytes that had content before.
    #[error("it is empty")]
    Empty,
    /// A required field is missing or malformed.
    #[error("field {0} is missing or malformed")]
    Field(&'static str),
}

impl CheckpointError {
    pub(super) fn line(number: usize, line: &str) -> Self {
        CheckpointError::Line { number, line: line.chars().take(100).collect() }
    }
}
