//! LZ4 frames as Kafka's clients write and read them.
//!
//! Written: version 1, independent blocks of 64 KiB, only a header checksum. Read: any block size,
//! block checksums (verified), content size (skipped) and content checksum: if the header announces
//! one, it must exist but may be wrong, as in Java (contract/kafka.md#58). Dependent blocks and
//! dictionaries are rejected, because Java consumers could not read them. Bytes after the end mark
//! are ignored, as in Java.
//!
//! Levels are as in Java: the default is the fast encoder, all others are the high compression
//! encoder of the C library, whose levels end at 12 (it limits higher ones).

use std::cell::RefCell;

use lz4_flex::block::{CompressTable, DecompressError};

use super::codec::{Compression, LZ4_LEVEL_FAST};
use super::error::CompressionError;
use super::sink::{Sink, Step, take};
use super::xxh32::xxh32;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Version 1, independent blocks.
const FLAGS_WRITTEN: u8 = 0b0110_0000;
/// Blocks of at most 64 KiB.
const SIZES_WRITTEN: u8 = 0b0100_0000;
const BLOCK_BYTES_WRITTEN: usize = 64 << 10;
/// Bit of a block size that marks a stored (uncompressed) block.
const STORED: u32 = 1 << 31;
/// Each byte of an LZ4 match produces less than 256 bytes.
const RATIO_MAX: usize = 256;

thread_local! {
    static TABLE: RefCell<CompressTable> = RefCell::new(CompressTable::large());
}

pub(super) fn compress(
    level: i32,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    begin(out);
    append_blocks(level, input, out)?;
    end(out);
    Ok(())
}

pub(super) fn begin(out: &mut Vec<u8>) {
    let descriptor = [FLAGS_WRITTEN, SIZES_WRITTEN];
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&descriptor);
    out.push(header_checksum(&descriptor));
}

/// Only the last block of a frame may be short.
pub(super) fn append_blocks(
    level: i32,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    let mut blocks = input.chunks(BLOCK_BYTES_WRITTEN);
    blocks.try_for_each(|block| append_block(level, block, out))
}

pub(super) fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; 4]);
}

/// Append a block's size and bytes; it is stored uncompressed if compression does not shrink it.
#[expect(clippy::little_endian_bytes, reason = "LZ4 frames are little-endian")]
fn append_block(level: i32, block: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let start = out.len();
    out.resize(start + 4 + lz4_flex::block::get_maximum_output_size(block.len()), 0);
    let size = compress_block(level, block, &mut out[start + 4..])
        .ok_or_else(|| CompressionError::corrupt(Compression::Lz4, "block does not compress"))?;
    let word = if size < block.len() {
        out.truncate(start + 4 + size);
        size as u32
    } else {
        out.truncate(start + 4);
        out.extend_from_slice(block);
        block.len() as u32 | STORED
    };
    out[start..start + 4].copy_from_slice(&word.to_le_bytes());
    Ok(())
}

/// Compress into `out`, which must have space for the worst case; returns the size.
fn compress_block(level: i32, block: &[u8], out: &mut [u8]) -> Option<usize> {
    if level == LZ4_LEVEL_FAST {
        return TABLE.with_borrow_mut(|table| {
            lz4_flex::block::compress_into_with_table(block, out, table).ok()
        });
    }
    let mode = lz4::block::CompressionMode::HIGHCOMPRESSION(level);
    lz4::block::compress_to_buffer(block, Some(mode), false, out).ok()
}

fn header_checksum(descriptor: &[u8]) -> u8 {
    (xxh32(descriptor) >> 8) as u8
}

/// Properties of a frame's blocks, from its header.
#[derive(Clone, Copy)]
struct Frame {
    block_bytes_max: usize,
    block_checksums: bool,
    content_checksum: bool,
}

/// The blocks of a frame.
pub(super) struct Blocks<'a> {
    rest: &'a [u8],
    /// `None` until the header is read.
    frame: Option<Frame>,
    compares_header_checksum: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { rest: input, frame: None, compares_header_checksum: true }
    }

    /// The blocks of a frame in a message of format 0, whose header checksum is not verified.
    pub(super) fn of_format_0(input: &'a [u8]) -> Self {
        Self { compares_header_checksum: false, ..Self::new(input) }
    }

    /// Decode the next block.
    pub(super) fn step(&mut self, sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
        let mut rest = self.rest;
        let step = match self.frame {
            None => {
                let frame = read_header(&mut rest, self.compares_header_checksum);
                let frame = frame.map_err(|reason| sink.corrupt(reason))?;
                self.frame = Some(frame);
                Step::More
            }
            Some(frame) => {
                match read_block(&mut rest, &frame).map_err(|reason| sink.corrupt(reason))? {
                    None => Step::End,
                    Some((word, block)) if word & STORED != 0 => append_stored(block, sink)?,
                    Some((_, block)) => decompress_block(block, &frame, sink)?,
                }
            }
        };
        if step == Step::More {
            self.rest = rest;
        }
        Ok(step)
    }
}

fn append_stored(block: &[u8], sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
    if block.len() <= sink.room() && !sink.has_window(block.len())? {
        return Ok(Step::Full);
    }
    sink.append(block)?;
    Ok(Step::More)
}

fn read_header(rest: &mut &[u8], compares_checksum: bool) -> Result<Frame, &'static str> {
    const TRUNCATED: &str = "frame header is truncated";
    let input = *rest;
    if input.first_chunk() != Some(&MAGIC) {
        return Err("not an LZ4 frame");
    }
    let [flags, sizes] = *input[4..].first_chunk().ok_or(TRUNCATED)?;
    if flags >> 6 != 1 || flags & 0b11 != 0 {
        return Err("unsupported version, reserved bit or dictionary");
    }
    if flags & 0b0010_0000 == 0 {
        return Err("dependent blocks are not supported");
    }
    let content_size = if flags & 0b1000 != 0 { 8 } else { 0 };
    let end = 6 + content_size;
    let checksum = *input.get(end).ok_or(TRUNCATED)?;
    if compares_checksum && checksum != header_checksum(&input[4..end]) {
        return Err("header checksum differs");
    }
    if sizes & 0b1000_1111 != 0 || sizes >> 4 < 4 {
        return Err("unsupported block size");
    }
    *rest = &input[end + 1..];
    let block_bytes_max = 1 << (8 + 2 * (sizes >> 4));
    Ok(Frame {
        block_bytes_max,
        block_checksums: flags & 0b1_0000 != 0,
        content_checksum: flags & 0b100 != 0,
    })
}

/// Take a block off `rest`: its size and bytes; `None` at the end of the frame.
#[expect(clippy::little_endian_bytes, reason = "LZ4 frames are little-endian")]
fn read_block<'a>(
    rest: &mut &'a [u8],
    frame: &Frame,
) -> Result<Option<(u32, &'a [u8])>, &'static str> {
    const TRUNCATED: &str = "frame ends without its mark";
    let word = u32::from_le_bytes(take(rest).ok_or(TRUNCATED)?);
    if word == 0 {
        if frame.content_checksum {
            take::<4>(rest).ok_or("frame ends without its checksum")?;
        }
        return Ok(None);
    }
    let size = (word & !STORED) as usize;
    if size > frame.block_bytes_max {
        return Err("block is larger than the frame allows");
    }
    let block = rest.split_off(..size).ok_or(TRUNCATED)?;
    if frame.block_checksums {
        let checksum = take(rest).ok_or(TRUNCATED)?;
        if u32::from_le_bytes(checksum) != xxh32(block) {
            return Err("block checksum differs");
        }
    }
    Ok(Some((word, block)))
}

fn decompress_block(
    block: &[u8],
    frame: &Frame,
    sink: &mut Sink<'_>,
) -> Result<Step, CompressionError> {
    let start = sink.out.len();
    let wanted = frame.block_bytes_max.min(block.len() * RATIO_MAX);
    let room = wanted.min(sink.room());
    if !sink.has_window(room)? {
        return Ok(Step::Full);
    }
    match decode(block, sink.grow(room)?) {
        Ok(size) => {
            sink.out.truncate(start + size);
            Ok(Step::More)
        }
        Err(DecompressError::OutputTooSmall { .. }) if room < wanted => Err(sink.too_large()),
        Err(_) => Err(sink.corrupt("malformed block")),
    }
}

/// Not inlined: as a part of `Blocks::step`, its inner loop takes a quarter longer.
#[inline(never)]
fn decode(block: &[u8], out: &mut [u8]) -> Result<usize, DecompressError> {
    lz4_flex::block::decompress_into(block, out)
}
