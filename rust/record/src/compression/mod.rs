//! The five codecs of batches, decompressed within bounds.
//!
//! What a frame says about its own size is a claim. Output grows only while it is below
//! [`Limits::output_bytes_max`], whatever the claim; nothing is allocated by a claim above it.

/// A batch's codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Records as they are.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy blocks in the framing of snappy-java ("xerial"), or one bare block.
    Snappy,
    /// LZ4 frames of independent blocks.
    Lz4,
    /// RFC 8878.
    Zstd,
}

/// A codec id or name that Kafka has not given out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown compression codec {0}")]
pub struct UnknownCompression(pub String);

impl Compression {
    /// All codecs, by id.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Its number in a batch's attributes.
    pub fn id(self) -> i16 {
        self as i16
    }

    /// Its name in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of that name; `uncompressed`, as topics call `none`, is one too.
    pub fn from_name(name: &str) -> Result<Self, UnknownCompression> {
        let name = if name == "uncompressed" { "none" } else { name };
        let found = Self::ALL.into_iter().find(|codec| codec.name() == name);
        found.ok_or_else(|| UnknownCompression(name.to_owned()))
    }
}

impl TryFrom<i16> for Compression {
    type Error = UnknownCompression;

    fn try_from(id: i16) -> Result<Self, UnknownCompression> {
        let found = usize::try_from(id).ok().and_then(|id| Self::ALL.get(id));
        found.copied().ok_or_else(|| UnknownCompression(id.to_string()))
    }
}

/// How much decompression may put out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes out, at most.
    pub bytes_max: usize,
    /// Bytes out per byte in, at most; not applied below [`Limits::RATIO_FREE_BYTES`].
    pub ratio_max: usize,
}

impl Limits {
    /// Output below this passes at any ratio: a batch of equal records shrinks a
    /// thousandfold in good faith, and so little does no harm.
    pub const RATIO_FREE_BYTES: usize = 16 << 20;

    /// Bytes that `input_size` bytes may become.
    pub fn output_bytes_max(&self, input_size: usize) -> usize {
        let by_ratio = input_size.saturating_mul(self.ratio_max);
        self.bytes_max.min(by_ratio.max(Self::RATIO_FREE_BYTES))
    }
}

impl Default for Limits {
    /// 128 MiB and 1000 : 1: Kafka has none; a request is at most 100 MiB.
    fn default() -> Self {
        Self { bytes_max: 128 << 20, ratio_max: 1000 }
    }
}

/// Why bytes were not decompressed or compressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The output would pass the limits.
    #[error("{codec} data decompresses to more than {bytes_max} bytes", codec = .codec.name())]
    TooLarge {
        /// The codec.
        codec: Compression,
        /// The bound it would pass.
        bytes_max: usize,
    },
    /// The input is not what the codec writes, or not what Kafka's readers accept.
    #[error("corrupt {codec} data: {reason}", codec = .codec.name())]
    Corrupt {
        /// The codec.
        codec: Compression,
        /// What is wrong.
        reason: &'static str,
    },
}

/// Replace `out` by what `input` decompresses to.
///
/// `out` keeps its capacity, so that callers reuse it. On error its content is unspecified.
pub fn decompress(
    codec: Compression,
    input: &[u8],
    out: &mut Vec<u8>,
    limits: Limits,
) -> Result<(), CompressionError> {
    out.clear();
    let bytes_max = limits.output_bytes_max(input.len());
    match codec {
        Compression::None if input.len() > bytes_max => {
            Err(CompressionError::TooLarge { codec, bytes_max })
        }
        Compression::None => {
            out.extend_from_slice(input);
            Ok(())
        }
        _ => Err(CompressionError::Corrupt { codec, reason: "not built yet" }),
    }
}
