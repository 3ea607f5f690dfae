//! Compresses with each codec, either a whole payload, or pieces to limit the memory.

use super::codec::Compression;
use super::error::CompressionError;
use super::{gzip, lz4, snappy, zstd};

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

/// Streaming compressor. Appends its output to the given buffer.
#[derive(Debug)]
pub(crate) enum Encoder {
    None,
    Gzip(Box<gzip::Encoder>),
    Snappy,
    Lz4 { level: i32 },
    Zstd(zstd::Encoder),
}

impl Encoder {
    /// Sizes of pieces except the last are multiples of this: a block end in LZ4 and Snappy.
    pub(crate) const PIECE_BYTES: usize = 256 << 10;

    /// Starts the output; for `level` see [`compress`].
    pub(crate) fn new(
        codec: Compression,
        level: Option<i32>,
        out: &mut Vec<u8>,
    ) -> Result<Self, CompressionError> {
        let level = checked_level(codec, level)?;
        Ok(match codec {
            Compression::None => Self::None,
            Compression::Gzip => Self::Gzip(Box::new(gzip::Encoder::new(level, out))),
            Compression::Snappy => {
                snappy::begin(out);
                Self::Snappy
            }
            Compression::Lz4 => {
                lz4::begin(out);
                Self::Lz4 { level }
            }
            Compression::Zstd => Self::Zstd(zstd::Encoder::new(level)?),
        })
    }

    /// Compresses a piece other than the last.
    pub(crate) fn write(
        &mut self,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        match self {
            Self::None => out.extend_from_slice(piece),
            Self::Gzip(encoder) => encoder.write(piece, out)?,
            Self::Snappy => snappy::append_blocks(piece, out)?,
            Self::Lz4 { level } => lz4::append_blocks(*level, piece, out)?,
            Self::Zstd(encoder) => encoder.write(piece, out)?,
        }
        Ok(())
    }

    /// Compresses the last piece and ends the output.
    pub(crate) fn finish(
        mut self,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        match self {
            Self::Gzip(encoder) => encoder.finish(piece, out),
            Self::Zstd(encoder) => encoder.finish(piece, out),
            Self::Lz4 { .. } => {
                self.write(piece, out)?;
                lz4::end(out);
                Ok(())
            }
            Self::None | Self::Snappy => self.write(piece, out),
        }
    }
}
