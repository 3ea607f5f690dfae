//! Limits of the output of decompression.

/// Limits of the output of decompression, and of the records in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the output.
    pub bytes_max: usize,
    /// Maximum ratio of output to input; not applied below [`Limits::RATIO_FREE_BYTES`].
    pub ratio_max: usize,
    /// Maximum size of a record in a compressed batch of format 2.
    pub record_bytes_max: usize,
}

impl Limits {
    /// No limits.
    pub const NONE: Limits =
        Limits { bytes_max: usize::MAX, ratio_max: usize::MAX, record_bytes_max: usize::MAX };

    /// Output below this size may have any ratio: a valid batch of equal records may shrink to a
    /// thousandth, and this size is harmless.
    pub const RATIO_FREE_BYTES: usize = 16 << 20;

    /// Maximum size of the output for `input_size` bytes.
    pub fn output_bytes_max(&self, input_size: usize) -> usize {
        let by_ratio = input_size.saturating_mul(self.ratio_max);
        self.bytes_max.min(by_ratio.max(Self::RATIO_FREE_BYTES))
    }
}

impl Default for Limits {
    /// 128 MiB and 1000 : 1. Kafka has no limits; a request has at most 100 MiB.
    fn default() -> Self {
        Self { bytes_max: 128 << 20, ratio_max: 1000, ..Self::NONE }
    }
}
