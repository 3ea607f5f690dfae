//! Snappy in the framing of snappy-java ("xerial"), or bare.
//!
//! Written: the 16-byte header, then blocks of at most 32 KiB, each with its compressed size, as in
//! Java. Read: the same, with optional repeated headers between blocks, as in concatenated streams;
//! and one bare block, as written by librdkafka.

use std::cell::RefCell;

use super::codec::Compression;
use super::error::CompressionError;
use super::sink::{Sink, Step, take};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Version 1, readable by version 1.
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
const BLOCK_BYTES_WRITTEN: usize = 32 << 10;
/// No element produces more than 64 bytes, and each has at least 2 bytes.
const RATIO_MAX: usize = 32;

thread_local! {
    static ENCODER: RefCell<snap::raw::Encoder> = RefCell::new(snap::raw::Encoder::new());
}

pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    begin(out);
    append_blocks(input, out)
}

pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSIONS);
}

/// Only the last block of a frame may be short.
pub(super) fn append_blocks(input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    ENCODER.with_borrow_mut(|encoder| {
        for block in input.chunks(BLOCK_BYTES_WRITTEN) {
            let start = out.len() + 4;
            out.resize(start + snap::raw::max_compress_len(block.len()), 0);
            let size = encoder.compress(block, &mut out[start..]).map_err(|_| {
                CompressionError::corrupt(Compression::Snappy, "block does not compress")
            })?;
            out[start - 4..start].copy_from_slice(&(size as u32).to_be_bytes());
            out.truncate(start + size);
        }
        Ok(())
    })
}

/// The blocks of a frame, or a bare block.
pub(super) struct Blocks<'a> {
    rest: &'a [u8],
    bare: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { rest: input, bare: !input.starts_with(&MAGIC) }
    }

    /// Decode the next block.
    pub(super) fn step(&mut self, sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
        if self.bare {
            let step = decompress_block(self.rest, sink)?;
            return Ok(if step == Step::More { Step::End } else { step });
        }
        if self.rest.is_empty() {
            return Ok(Step::End);
        }
        let mut rest = self.rest;
        let step = if rest.starts_with(&MAGIC) {
            rest = rest.get(16..).ok_or_else(|| sink.corrupt("header is truncated"))?;
            Step::More
        } else {
            let block = read_block(&mut rest).ok_or_else(|| sink.corrupt("truncated block"))?;
            decompress_block(block, sink)?
        };
        if step == Step::More {
            self.rest = rest;
        }
        Ok(step)
    }
}

/// Take a size and that many bytes off `rest`.
fn read_block<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = u32::from_be_bytes(take(rest)?);
    rest.split_off(..size as usize)
}

fn decompress_block(block: &[u8], sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
    let claimed = snap::raw::decompress_len(block).map_err(|_| sink.corrupt("malformed size"))?;
    if claimed > sink.room() {
        return Err(sink.too_large());
    }
    if claimed > block.len().saturating_mul(RATIO_MAX) {
        return Err(sink.corrupt("size claimed is more than the block can hold"));
    }
    if !sink.has_window(claimed)? {
        return Ok(Step::Full);
    }
    let reason = sink.corrupt("malformed block");
    let filled = snap::raw::Decoder::new().decompress(block, sink.grow(claimed)?);
    // The decoder fills the claimed size or fails.
    filled.map(|_| Step::More).map_err(|_| reason)
}
