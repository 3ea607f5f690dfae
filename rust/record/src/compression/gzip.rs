//! Gzip (RFC 1952): members around a raw deflate stream.
//!
//! The framing is done here rather than by a stream reader, so that the deflate contexts
//! (40 and 270 KB) are kept per thread and output goes straight to its buffer. As in Java,
//! members may follow one another, and what follows the last and is no member is ignored.

use std::cell::RefCell;

use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Compression, CompressionError, Sink, take};
use crate::partitioner::crc32;

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Magic, deflate, no flags, no time, no extra flags, Unix; Java writes 0 for the system.
const HEADER_WRITTEN: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
/// A first guess of the ratio: what JSON comes to.
const RATIO_GUESS: usize = 4;

thread_local! {
    static INFLATE: RefCell<Decompress> = RefCell::new(Decompress::new(false));
    static DEFLATE: RefCell<Option<(i32, Compress)>> = const { RefCell::new(None) };
}

#[expect(clippy::little_endian_bytes, reason = "gzip is little-endian")]
pub(super) fn compress(
    level: i32,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    out.extend_from_slice(&HEADER_WRITTEN);
    DEFLATE.with_borrow_mut(|kept| {
        let deflate = match kept {
            Some((kept_level, deflate)) if *kept_level == level => {
                deflate.reset();
                deflate
            }
            _ => {
                let level_of_flate = flate2::Compression::new(level as u32);
                &mut kept.insert((level, Compress::new(level_of_flate, false))).1
            }
        };
        deflate_all(deflate, input, out)
    })?;
    out.extend_from_slice(&crc32(input).to_le_bytes());
    out.extend_from_slice(&(input.len() as u32).to_le_bytes());
    Ok(())
}

fn deflate_all(
    deflate: &mut Compress,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    loop {
        let rest = &input[deflate.total_in() as usize..];
        out.reserve(rest.len() / RATIO_GUESS + 128);
        match deflate.compress_vec(rest, out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) => {}
            Err(_) => {
                return Err(CompressionError::corrupt(Compression::Gzip, "does not deflate"));
            }
        }
    }
}

pub(super) fn decompress(input: &[u8], sink: &mut Sink<'_>) -> Result<(), CompressionError> {
    let mut rest = input;
    INFLATE.with_borrow_mut(|inflate| {
        decompress_member(inflate, &mut rest, sink)?;
        while rest.starts_with(&MAGIC) {
            decompress_member(inflate, &mut rest, sink)?;
        }
        Ok(())
    })
}

fn decompress_member(
    inflate: &mut Decompress,
    rest: &mut &[u8],
    sink: &mut Sink<'_>,
) -> Result<(), CompressionError> {
    skip_header(rest).ok_or_else(|| sink.corrupt("malformed header"))?;
    let start = sink.out.len();
    inflate.reset(false);
    inflate_all(inflate, rest, sink)?;
    *rest = &rest[inflate.total_in() as usize..];
    check_trailer(rest, &sink.out[start..]).map_err(|reason| sink.corrupt(reason))
}

/// Pass over a member's header with its optional fields.
#[expect(clippy::little_endian_bytes, reason = "gzip is little-endian")]
fn skip_header(rest: &mut &[u8]) -> Option<()> {
    let [a, b, c, flags, ..] = take::<10>(rest)?;
    if [a, b, c] != MAGIC || flags & 0b1110_0000 != 0 {
        return None;
    }
    if flags & 0b100 != 0 {
        let size = u16::from_le_bytes(take(rest)?);
        rest.split_off(..usize::from(size))?;
    }
    for text in [0b1000, 0b1_0000] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest.split_off(..=end)?;
        }
    }
    if flags & 0b10 != 0 {
        rest.split_off(..2)?;
    }
    Some(())
}

fn inflate_all(
    inflate: &mut Decompress,
    input: &[u8],
    sink: &mut Sink<'_>,
) -> Result<(), CompressionError> {
    loop {
        let rest = &input[inflate.total_in() as usize..];
        if sink.out.len() == sink.out.capacity() {
            // One byte above the bound, so that a stream that ends right at it can say so.
            let step = sink.out.len().max(rest.len() * RATIO_GUESS).max(4096);
            sink.reserve(step.min(sink.room().saturating_add(1)))?;
        }
        let before = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress_vec(rest, sink.out, FlushDecompress::None)
            .map_err(|_| sink.corrupt("malformed deflate stream"))?;
        if sink.out.len() > sink.bytes_max {
            return Err(sink.too_large());
        }
        if status == Status::StreamEnd {
            return Ok(());
        }
        let stuck = before == (inflate.total_in(), inflate.total_out());
        if stuck && sink.out.len() < sink.out.capacity() {
            return Err(sink.corrupt("deflate stream is truncated"));
        }
    }
}

#[expect(clippy::little_endian_bytes, reason = "gzip is little-endian")]
fn check_trailer(rest: &mut &[u8], output: &[u8]) -> Result<(), &'static str> {
    const TRUNCATED: &str = "trailer is truncated";
    let checksum = u32::from_le_bytes(take(rest).ok_or(TRUNCATED)?);
    let size = u32::from_le_bytes(take(rest).ok_or(TRUNCATED)?);
    if checksum != crc32(output) || size != output.len() as u32 {
        return Err("checksum or size differs");
    }
    Ok(())
}
