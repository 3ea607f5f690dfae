//! Decompression by each codec.

use super::codec::Compression;
use super::error::CompressionError;
use super::limits::Limits;
use super::sink::{Sink, Step};
use super::{gzip, lz4, snappy, zstd};

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

/// A codec's state while it decodes `input`.
pub(super) enum Decoder<'a> {
    None(&'a [u8]),
    Gzip(Box<gzip::Members<'a>>),
    Snappy(snappy::Blocks<'a>),
    Lz4(lz4::Blocks<'a>),
    Zstd(zstd::Frames<'a>),
}

impl<'a> Decoder<'a> {
    pub(super) fn new(codec: Compression, input: &'a [u8]) -> Self {
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
    pub(super) fn step(&mut self, sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
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
