//! Errors of compression and decompression.

use super::codec::Compression;

/// The reason why bytes were not decompressed or compressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The output would exceed the limits.
    #[error("{codec} data decompresses to more than {bytes_max} bytes", codec = .codec.name())]
    TooLarge {
        /// The codec of the data.
        codec: Compression,
        /// The limit.
        bytes_max: usize,
    },
    /// The codec needs a larger part of the output at once than the window can hold.
    #[error("{codec} data needs a window of more than {window_bytes_max} bytes", codec = .codec.name())]
    Window {
        /// The codec of the data.
        codec: Compression,
        /// The maximum size of the window.
        window_bytes_max: usize,
    },
    /// The input is invalid for the codec, or for Kafka's readers.
    #[error("corrupt {codec} data: {reason}", codec = .codec.name())]
    Corrupt {
        /// The codec of the data.
        codec: Compression,
        /// The problem.
        reason: &'static str,
    },
    /// The codec does not have the level.
    #[error("{codec} has no level {level}", codec = .codec.name())]
    Level {
        /// The codec that was requested.
        codec: Compression,
        /// The requested level.
        level: i32,
    },
}

impl CompressionError {
    pub(super) fn corrupt(codec: Compression, reason: &'static str) -> Self {
        Self::Corrupt { codec, reason }
    }
}
