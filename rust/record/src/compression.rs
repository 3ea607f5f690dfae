//! The five codecs of batches, with bounded decompression.
//!
//! The size that a frame claims is untrusted. Output only grows up to
//! [`Limits::output_bytes_max`], and no memory is allocated for a claim above it.
//!
//! Each codec decodes in steps, into a [`Sink`]: the whole output for [`decompress`], or a window
//! that is emptied between steps for [`Inflater`].
//!
//! Contexts of gzip and zstd are expensive to create, so they are kept per thread.

mod encoder;
mod gzip;
mod inflater;
mod lz4;
mod snappy;
mod xxh32;
mod zstd;

pub(crate) use self::encoder::Encoder;
pub(crate) use self::inflater::Inflater;

use std::ops::RangeInclusive;

/// A batch's codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Uncompressed records.
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

/// A codec id or name that Kafka does not define.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown compression codec {0}")]
pub struct UnknownCompression(pub String);

impl Compression {
    /// All codecs, by id.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Its id in a batch's attributes.
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

    /// The valid levels of `compression.<codec>.level`; `None` for codecs without levels.
    ///
    /// They are equal to Kafka's.
    pub fn levels(self) -> Option<RangeInclusive<i32>> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some(1..=9),
            Self::Lz4 => Some(1..=17),
            Self::Zstd => Some(-131_072..=22),
        }
    }

    /// The default level; `None` for codecs without levels.
    pub fn level_default(self) -> Option<i32> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some(6),
            Self::Lz4 => Some(lz4::LEVEL_FAST),
            Self::Zstd => Some(3),
        }
    }

    /// The codec with that name; topics may also use `uncompressed` for `none`.
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

/// Limits of the output of decompression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the output.
    pub bytes_max: usize,
    /// Maximum ratio of output to input; not applied below [`Limits::RATIO_FREE_BYTES`].
    pub ratio_max: usize,
}

impl Limits {
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
        Self { bytes_max: 128 << 20, ratio_max: 1000 }
    }
}

/// Why bytes were not decompressed or compressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The output would exceed the limits.
    #[error("{codec} data decompresses to more than {bytes_max} bytes", codec = .codec.name())]
    TooLarge {
        /// The codec.
        codec: Compression,
        /// The limit.
        bytes_max: usize,
    },
    /// The codec needs a larger part of the output at once than the window can hold.
    #[error("{codec} data needs a window of more than {window_bytes_max} bytes", codec = .codec.name())]
    Window {
        /// The codec.
        codec: Compression,
        /// The maximum size of the window.
        window_bytes_max: usize,
    },
    /// The input is invalid for the codec, or for Kafka's readers.
    #[error("corrupt {codec} data: {reason}", codec = .codec.name())]
    Corrupt {
        /// The codec.
        codec: Compression,
        /// The problem.
        reason: &'static str,
    },
    /// The codec does not have the level.
    #[error("{codec} has no level {level}", codec = .codec.name())]
    Level {
        /// The codec.
        codec: Compression,
        /// The requested level.
        level: i32,
    },
}

impl CompressionError {
    fn corrupt(codec: Compression, reason: &'static str) -> Self {
        Self::Corrupt { codec, reason }
    }
}

/// Compress `input` and append the result to `out`.
///
/// `level` is one of [`Compression::levels`]; `None` means the codec's default. Codecs without
/// levels ignore it.
pub fn compress(
    codec: Compression,
    level: Option<i32>,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    let level = checked_level(codec, level)?;
    match codec {
        Compression::None => out.extend_from_slice(input),
        Compression::Gzip => gzip::compress(level, input, out)?,
        Compression::Snappy => snappy::compress(input, out)?,
        Compression::Lz4 => lz4::compress(level, input, out)?,
        Compression::Zstd => zstd::compress(level, input, out)?,
    }
    Ok(())
}

fn checked_level(codec: Compression, level: Option<i32>) -> Result<i32, CompressionError> {
    let default = codec.level_default().unwrap_or_default();
    match (codec.levels(), level) {
        (Some(levels), Some(level)) if !levels.contains(&level) => {
            Err(CompressionError::Level { codec, level })
        }
        (Some(_), Some(level)) => Ok(level),
        _ => Ok(default),
    }
}

/// Decompress `input` and replace the content of `out` by the result.
///
/// `out` keeps its capacity, so that callers reuse it. On error its content is unspecified.
pub fn decompress(
    codec: Compression,
    input: &[u8],
    out: &mut Vec<u8>,
    limits: Limits,
) -> Result<(), CompressionError> {
    decompress_from(Source::Other, codec, input, out, limits)
}

/// The container of compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A message of format 0. Its writers calculated the header checksum of an LZ4 frame over the
    /// wrong bytes (KAFKA-3160), so it is not verified.
    Format0,
    /// Any other container.
    Other,
}

/// Like [`decompress`], for `input` from this container.
pub(crate) fn decompress_from(
    source: Source,
    codec: Compression,
    input: &[u8],
    out: &mut Vec<u8>,
    limits: Limits,
) -> Result<(), CompressionError> {
    out.clear();
    let bytes_max = limits.output_bytes_max(input.len());
    let mut sink = Sink { codec, out, consumed: 0, bytes_max, window_bytes_max: usize::MAX };
    let mut decoder = match (source, codec) {
        (Source::Format0, Compression::Lz4) => Decoder::Lz4(lz4::Blocks::of_format_0(input)),
        _ => Decoder::new(codec, input),
    };
    while decoder.step(&mut sink)? == Step::More {}
    Ok(())
}

/// Result of a decoder's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// There may be output; call again.
    More,
    /// The next part does not fit into the window, which is not empty.
    Full,
    /// All output was written.
    End,
}

/// A codec's state while it decodes `input`.
enum Decoder<'a> {
    None(&'a [u8]),
    Gzip(Box<gzip::Members<'a>>),
    Snappy(snappy::Blocks<'a>),
    Lz4(lz4::Blocks<'a>),
    Zstd(zstd::Frames<'a>),
}

impl<'a> Decoder<'a> {
    fn new(codec: Compression, input: &'a [u8]) -> Self {
        match codec {
            Compression::None => Self::None(input),
            Compression::Gzip => Self::Gzip(Box::new(gzip::Members::new(input))),
            Compression::Snappy => Self::Snappy(snappy::Blocks::new(input)),
            Compression::Lz4 => Self::Lz4(lz4::Blocks::new(input)),
            Compression::Zstd => Self::Zstd(zstd::Frames::new(input)),
        }
    }

    /// Write the next part of the output; the sink's window limits its size.
    ///
    /// After an error the decoder must not be used.
    fn step(&mut self, sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
        match self {
            Self::None(rest) => step_stored(rest, sink),
            Self::Gzip(members) => members.step(sink),
            Self::Snappy(blocks) => blocks.step(sink),
            Self::Lz4(blocks) => blocks.step(sink),
            Self::Zstd(frames) => frames.step(sink),
        }
    }
}

fn step_stored(rest: &mut &[u8], sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
    if rest.is_empty() {
        return Ok(Step::End);
    }
    let size = rest.len().min(sink.window_room());
    let (front, behind) = rest.split_at(size);
    *rest = behind;
    sink.append(front)?;
    Ok(if behind.is_empty() { Step::End } else { Step::Full })
}

/// Destination and limits of decompressed bytes.
struct Sink<'a> {
    codec: Compression,
    out: &'a mut Vec<u8>,
    /// Size of earlier output that is no longer in `out`.
    consumed: usize,
    /// Maximum size of the output, including consumed bytes.
    bytes_max: usize,
    /// Maximum size of `out`.
    window_bytes_max: usize,
}

impl Sink<'_> {
    fn corrupt(&self, reason: &'static str) -> CompressionError {
        CompressionError::corrupt(self.codec, reason)
    }

    fn too_large(&self) -> CompressionError {
        CompressionError::TooLarge { codec: self.codec, bytes_max: self.bytes_max }
    }

    fn window_too_small(&self) -> CompressionError {
        CompressionError::Window { codec: self.codec, window_bytes_max: self.window_bytes_max }
    }

    /// Whether the output exceeds the limit.
    fn is_above_bound(&self) -> bool {
        self.consumed + self.out.len() > self.bytes_max
    }

    /// Number of bytes until the limit of the output.
    fn room(&self) -> usize {
        self.bytes_max.saturating_sub(self.consumed + self.out.len())
    }

    /// Number of bytes until the limit of the window.
    fn window_room(&self) -> usize {
        self.window_bytes_max.saturating_sub(self.out.len())
    }

    /// Whether the window has space for `size` bytes. If not, it must be emptied first.
    ///
    /// Fails if even an empty window is too small.
    fn has_window(&self, size: usize) -> Result<bool, CompressionError> {
        if size > self.window_bytes_max {
            return Err(self.window_too_small());
        }
        Ok(size <= self.window_room())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), CompressionError> {
        if bytes.len() > self.room() {
            return Err(self.too_large());
        }
        self.reserve(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Reserve capacity for `size` bytes, which must fit into the window and within
    /// [`Self::room`]. A failed allocation is reported as too large.
    fn reserve(&mut self, size: usize) -> Result<(), CompressionError> {
        if self.out.capacity() - self.out.len() >= size {
            return Ok(());
        }
        // Double the capacity like `Vec`, but not beyond the window.
        let doubled = self.out.len().min(self.window_room());
        self.out.try_reserve_exact(size.max(doubled)).map_err(|_| self.too_large())
    }

    /// Append `size` zeroed bytes for a block decoder to fill; the caller truncates the rest.
    fn grow(&mut self, size: usize) -> Result<&mut [u8], CompressionError> {
        let start = self.out.len();
        self.reserve(size)?;
        self.out.resize(start + size, 0);
        Ok(&mut self.out[start..])
    }
}

/// Take `N` bytes off the front of `rest` if it is long enough.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (front, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*front)
}
