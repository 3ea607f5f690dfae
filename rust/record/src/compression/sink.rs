//! Destination of decompressed bytes, with its limits.

use super::codec::Compression;
use super::error::CompressionError;

/// Result of a decoder's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// There may be output; call again.
    More,
    /// The next part does not fit into the window, which is not empty.
    Full,
    /// All output was written.
    End,
}

/// Destination and limits of decompressed bytes.
pub(super) struct Sink<'a> {
    pub(super) codec: Compression,
    pub(super) out: &'a mut Vec<u8>,
    /// Size of earlier output that is no longer in `out`.
    pub(super) consumed: usize,
    /// Maximum size of the output, including consumed bytes.
    pub(super) bytes_max: usize,
    /// Maximum size of `out`.
    pub(super) window_bytes_max: usize,
}

impl Sink<'_> {
    pub(super) fn corrupt(&self, reason: &'static str) -> CompressionError {
        CompressionError::corrupt(self.codec, reason)
    }

    pub(super) fn too_large(&self) -> CompressionError {
        CompressionError::TooLarge { codec: self.codec, bytes_max: self.bytes_max }
    }

    pub(super) fn window_too_small(&self) -> CompressionError {
        CompressionError::Window { codec: self.codec, window_bytes_max: self.window_bytes_max }
    }

    /// Whether the output exceeds the limit.
    pub(super) fn is_above_bound(&self) -> bool {
        self.consumed + self.out.len() > self.bytes_max
    }

    /// Number of bytes until the limit of the output.
    pub(super) fn room(&self) -> usize {
        self.bytes_max.saturating_sub(self.consumed + self.out.len())
    }

    /// Number of bytes until the limit of the window.
    pub(super) fn window_room(&self) -> usize {
        self.window_bytes_max.saturating_sub(self.out.len())
    }

    /// Whether the window has space for `size` bytes. If not, it must be emptied first.
    ///
    /// Fails if even an empty window is too small.
    pub(super) fn has_window(&self, size: usize) -> Result<bool, CompressionError> {
        if size > self.window_bytes_max {
            return Err(self.window_too_small());
        }
        Ok(size <= self.window_room())
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), CompressionError> {
        if bytes.len() > self.room() {
            return Err(self.too_large());
        }
        self.reserve(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Reserve capacity for `size` bytes, which must fit into the window and within
    /// [`Self::room`]. A failed allocation is reported as too large.
    pub(super) fn reserve(&mut self, size: usize) -> Result<(), CompressionError> {
        if self.out.capacity() - self.out.len() >= size {
            return Ok(());
        }
        // Double the capacity like `Vec`, but not beyond the window.
        let doubled = self.out.len().min(self.window_room());
        self.out.try_reserve_exact(size.max(doubled)).map_err(|_| self.too_large())
    }

    /// Append `size` zeroed bytes for a block decoder to fill; the caller truncates the rest.
    pub(super) fn grow(&mut self, size: usize) -> Result<&mut [u8], CompressionError> {
        let start = self.out.len();
        self.reserve(size)?;
        self.out.resize(start + size, 0);
        Ok(&mut self.out[start..])
    }
}

/// Take `N` bytes off the front of `rest` if it is long enough.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (front, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*front)
}
