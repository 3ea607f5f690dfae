//! Decompression in pieces, with a window that does not grow with the output.

use super::codec::Compression;
use super::decoder::Decoder;
use super::error::CompressionError;
use super::limits::Limits;
use super::sink::{Sink, Step};

/// The output of `input`, in pieces.
pub(crate) struct Inflater<'a> {
    codec: Compression,
    decoder: Decoder<'a>,
    /// Size of the earlier pieces.
    consumed: usize,
    bytes_max: usize,
    window_bytes_max: usize,
    is_over: bool,
}

impl<'a> Inflater<'a> {
    /// Reads nothing yet. Uses at most `window_bytes_max`, with pieces, and 64 KiB more for gzip.
    pub(crate) fn new(
        codec: Compression,
        input: &'a [u8],
        limits: Limits,
        window_bytes_max: usize,
    ) -> Self {
        Self {
            codec,
            decoder: Decoder::new(codec, input),
            consumed: 0,
            bytes_max: limits.output_bytes_max(input.len()),
            window_bytes_max,
            is_over: false,
        }
    }

    /// Whether the last piece was returned. It may be empty.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Replace `window`, which has the previous piece, by the next one; empty after the last.
    ///
    /// # Errors
    /// See [`crate::decompress`]; or the codec needs more than the window at once. It ends then.
    pub(crate) fn next(&mut self, window: &mut Vec<u8>) -> Result<(), CompressionError> {
        self.consumed += window.len();
        window.clear();
        let mut sink = Sink {
            codec: self.codec,
            out: window,
            consumed: self.consumed,
            bytes_max: self.bytes_max,
            window_bytes_max: self.window_bytes_max,
        };
        while !self.is_over {
            match self.decoder.step(&mut sink) {
                Ok(Step::More) => {}
                Ok(Step::Full) => break,
                Ok(Step::End) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
