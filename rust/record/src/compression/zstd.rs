//! Zstandard frames, decoded in one call into a buffer that is large enough or at its limit.
//!
//! A streaming decoder allocates its own window, up to 2³¹ bytes if a frame requests it. Here the
//! output is the window: the block headers of a frame give an upper bound of its output (which is
//! reserved, not touched), and the decoder stops at that or at the limit. Frames with windows above
//! 128 MiB, or with dictionaries, are rejected, because Java consumers could not read them.
//! Contexts are kept per thread.
//!
//! Only a frame that may produce more than the sink's window is streamed, if its own window fits
//! there: at levels up to 8 it has 2 MiB. Its context, which contains the window, is dropped after
//! it.

use std::cell::RefCell;
use std::io::Cursor;

use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer};

use super::codec::Compression;
use super::error::CompressionError;
use super::sink::{Sink, Step};

const FRAME_MAGIC: u32 = 0xfd2f_b528;
/// The first of 16 magic numbers (the last 4 bits are free) of skippable frames.
const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;
/// The default limit of decoders.
const WINDOW_BYTES_MAX: u64 = 1 << 27;
const BLOCK_BYTES_MAX: u64 = 128 << 10;
/// Output of a streamed frame per step: a block.
const PIECE_BYTES: usize = BLOCK_BYTES_MAX as usize;
/// Memory of a streaming context besides its window: tables, input and output block, and the piece.
const STREAM_OVERHEAD_BYTES: u64 = 4 * BLOCK_BYTES_MAX;

/// Up to this level, a context takes a few megabytes, and windows have at most 2 MiB.
const LEVEL_UNBOUND_MAX: i32 = 8;
/// Limit for contexts of higher levels, which could take up to 700 MiB: binary logarithm of the
/// sizes of the window and of two tables with entries of four bytes.
const LOG_MAX: u32 = 20;
/// Input of this size needs no limit at any level.
const UNBOUND_INPUT_BYTES: usize = 256 << 10;
/// Maximum size of a thread's context between calls.
const CONTEXT_KEPT_BYTES: usize = 4 << 20;

thread_local! {
    static COMPRESS: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    static DECOMPRESS: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

pub(super) fn compress(
    level: i32,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    out.reserve(zstd::zstd_safe::compress_bound(input.len()));
    COMPRESS.with_borrow_mut(|context| {
        let is_bound = level > LEVEL_UNBOUND_MAX && input.len() > UNBOUND_INPUT_BYTES;
        set_level(context, level, is_bound)?;
        let start = out.len() as u64;
        let mut end = Cursor::new(out);
        end.set_position(start);
        let compressed = context.compress2(&mut end, input).map(drop).map_err(failed);
        if context.sizeof() > CONTEXT_KEPT_BYTES {
            *context = CCtx::create();
        }
        compressed
    })
}

fn set_level(
    context: &mut CCtx<'static>,
    level: i32,
    is_bound: bool,
) -> Result<(), CompressionError> {
    // 0 means the level's default.
    let log = if is_bound { LOG_MAX } else { 0 };
    let parameters = [
        CParameter::CompressionLevel(level),
        CParameter::WindowLog(log),
        CParameter::HashLog(log),
        CParameter::ChainLog(log),
    ];
    parameters
        .into_iter()
        .try_for_each(|parameter| context.set_parameter(parameter).map(drop).map_err(failed))
}

/// Streaming encoder of one frame. Its context is dropped with it, because it takes megabytes.
pub(crate) struct Encoder(CCtx<'static>);

impl Encoder {
    pub(super) fn new(level: i32) -> Result<Self, CompressionError> {
        let mut context = CCtx::try_create().ok_or_else(|| failed(0))?;
        set_level(&mut context, level, level > LEVEL_UNBOUND_MAX)?;
        Ok(Self(context))
    }

    pub(super) fn write(
        &mut self,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        let mut input = InBuffer::around(piece);
        while input.pos() < piece.len() {
            self.step(&mut input, out, ZSTD_EndDirective::ZSTD_e_continue)?;
        }
        Ok(())
    }

    pub(super) fn finish(
        mut self,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        let mut input = InBuffer::around(piece);
        while self.step(&mut input, out, ZSTD_EndDirective::ZSTD_e_end)? > 0 {}
        Ok(())
    }

    /// Advances the encoder; returns the number of bytes that remain to be written.
    fn step(
        &mut self,
        input: &mut InBuffer<'_>,
        out: &mut Vec<u8>,
        directive: ZSTD_EndDirective,
    ) -> Result<usize, CompressionError> {
        out.reserve(PIECE_BYTES);
        let end = out.len();
        let mut output = OutBuffer::around_pos(out, end);
        self.0.compress_stream2(&mut output, input, directive).map_err(failed)
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Encoder").finish_non_exhaustive()
    }
}

fn failed(_: usize) -> CompressionError {
    CompressionError::corrupt(Compression::Zstd, "does not compress")
}

/// Consecutive frames.
pub(super) struct Frames<'a> {
    /// Starts with the next frame.
    rest: &'a [u8],
    streamed: Option<StreamedFrame<'a>>,
}

impl<'a> Frames<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { rest: input, streamed: None }
    }

    /// Decode the next frame, or a piece of a streamed frame.
    pub(super) fn step(&mut self, sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
        if let Some(frame) = &mut self.streamed {
            if frame.step(sink)? == Step::Full {
                return Ok(Step::Full);
            }
            self.streamed = None;
            return Ok(if self.rest.is_empty() { Step::End } else { Step::More });
        }
        if self.rest.is_empty() {
            return Err(sink.corrupt("no frame"));
        }
        let mut rest = self.rest;
        let frame = Frame::read(rest).map_err(|reason| sink.corrupt(reason))?;
        let bytes = rest.split_off(..frame.size).ok_or_else(|| sink.corrupt(TRUNCATED))?;
        if let Some(output_bytes_max) = frame.output_bytes_max {
            let wanted = usize::try_from(output_bytes_max).unwrap_or(usize::MAX);
            if wanted.min(sink.room()) <= sink.window_room() {
                decompress_frame(bytes, wanted, sink)?;
            } else if sink.out.is_empty() {
                self.streamed = Some(StreamedFrame::new(bytes, &frame, wanted, sink)?);
            } else {
                return Ok(Step::Full);
            }
        }
        self.rest = rest;
        let is_over = rest.is_empty() && self.streamed.is_none();
        Ok(if is_over { Step::End } else { Step::More })
    }
}

/// A frame that may produce more than the window can hold.
struct StreamedFrame<'a> {
    context: DCtx<'static>,
    rest: &'a [u8],
    /// Whether its maximum output is within the limit.
    fits: bool,
}

impl<'a> StreamedFrame<'a> {
    fn new(
        bytes: &'a [u8],
        frame: &Frame,
        wanted: usize,
        sink: &mut Sink<'_>,
    ) -> Result<Self, CompressionError> {
        if frame.window_bytes + STREAM_OVERHEAD_BYTES > sink.window_bytes_max as u64 {
            return Err(sink.window_too_small());
        }
        // The context's window replaces the sink's.
        *sink.out = Vec::new();
        let context = DCtx::try_create().ok_or_else(|| sink.too_large())?;
        Ok(Self { context, rest: bytes, fits: wanted <= sink.room() })
    }

    /// Write a piece: `Full` while more follows, `End` after the last.
    fn step(&mut self, sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
        if !sink.out.is_empty() {
            return Ok(Step::Full);
        }
        sink.reserve(PIECE_BYTES)?;
        let mut input = InBuffer::around(self.rest);
        let mut output = OutBuffer::around(&mut *sink.out);
        let left = loop {
            let before = (input.pos(), output.pos());
            match self.context.decompress_stream(&mut output, &mut input) {
                Ok(left) if left == 0 || output.pos() == output.capacity() => break left,
                // A complete frame always makes progress.
                Ok(_) if before != (input.pos(), output.pos()) => {}
                _ if self.fits => return Err(sink.corrupt("malformed frame")),
                _ => return Err(sink.too_large()),
            }
        };
        let position = input.pos();
        self.rest = &self.rest[position..];
        if sink.is_above_bound() {
            return Err(sink.too_large());
        }
        Ok(if left == 0 { Step::End } else { Step::Full })
    }
}

fn decompress_frame(
    frame: &[u8],
    wanted: usize,
    sink: &mut Sink<'_>,
) -> Result<(), CompressionError> {
    sink.reserve(wanted.min(sink.room()))?;
    // Kept capacity may exceed the limit: it is already allocated, and the size is checked below.
    let enough = sink.out.capacity() - sink.out.len() >= wanted;
    let start = sink.out.len() as u64;
    let mut end = Cursor::new(&mut *sink.out);
    end.set_position(start);
    let done = DECOMPRESS.with_borrow_mut(|context| context.decompress(&mut end, frame));
    match done {
        Ok(_) if !sink.is_above_bound() => Ok(()),
        Err(_) if enough => Err(sink.corrupt("malformed frame")),
        // Probably out of space: the maximum output of the frame exceeds the limit.
        _ => Err(sink.too_large()),
    }
}

const TRUNCATED: &str = "frame is truncated";

/// A frame's extent, from its header and its block headers.
struct Frame {
    size: usize,
    /// Maximum output; `None` for a skippable frame.
    output_bytes_max: Option<u64>,
    /// Maximum distance of its back references.
    window_bytes: u64,
}

impl Frame {
    fn read(input: &[u8]) -> Result<Self, &'static str> {
        let mut rest = input;
        let magic = take_number(&mut rest, 4)? as u32;
        if magic & !0xf == SKIPPABLE_MAGIC {
            let size = take_number(&mut rest, 4)? as usize;
            return Ok(Self { size: 8 + size, output_bytes_max: None, window_bytes: 0 });
        }
        if magic != FRAME_MAGIC {
            return Err("not a zstd frame");
        }
        let header = Header::read(&mut rest)?;
        if header.window_bytes > WINDOW_BYTES_MAX {
            return Err("window is larger than 128 MiB");
        }
        let by_blocks = walk_blocks(&mut rest, header.window_bytes.min(BLOCK_BYTES_MAX))?;
        take(&mut rest, if header.checksum { 4 } else { 0 })?;
        let output_bytes_max = by_blocks.min(header.content_bytes.unwrap_or(u64::MAX));
        let size = input.len() - rest.len();
        let window_bytes = header.window_bytes;
        Ok(Self { size, output_bytes_max: Some(output_bytes_max), window_bytes })
    }
}

struct Header {
    window_bytes: u64,
    content_bytes: Option<u64>,
    checksum: bool,
}

impl Header {
    fn read(rest: &mut &[u8]) -> Result<Self, &'static str> {
        let flags = take(rest, 1)?[0];
        let single_segment = flags & 0b10_0000 != 0;
        if flags & 0b1000 != 0 {
            return Err("reserved bit is set");
        }
        let window = if single_segment { None } else { Some(take(rest, 1)?[0]) };
        let dictionary = take_number(rest, [0, 1, 2, 4][usize::from(flags & 0b11)])?;
        if dictionary != 0 {
            return Err("dictionaries are not supported");
        }
        let content_bytes = match (flags >> 6, single_segment) {
            (0, false) => None,
            (0, true) => Some(take_number(rest, 1)?),
            (1, _) => Some(take_number(rest, 2)? + 256),
            (2, _) => Some(take_number(rest, 4)?),
            _ => Some(take_number(rest, 8)?),
        };
        let window_bytes = match window {
            Some(window) => {
                let base = 1_u64 << (10 + (window >> 3));
                base + base / 8 * u64::from(window & 0b111)
            }
            None => content_bytes.unwrap_or_default(),
        };
        Ok(Self { window_bytes, content_bytes, checksum: flags & 0b100 != 0 })
    }
}

/// Skip a frame's blocks; return their maximum output, assuming that each compressed block is
/// full.
fn walk_blocks(rest: &mut &[u8], block_bytes_max: u64) -> Result<u64, &'static str> {
    let mut output_bytes_max = 0;
    loop {
        let header = take_number(rest, 3)?;
        let size = header >> 3;
        // Stored, one byte repeated, compressed.
        let (stored, output) = match (header >> 1) & 0b11 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, block_bytes_max),
            _ => return Err("reserved block type"),
        };
        take(rest, stored as usize)?;
        output_bytes_max += output;
        if header & 1 == 1 {
            return Ok(output_bytes_max);
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Result<&'a [u8], &'static str> {
    rest.split_off(..size).ok_or(TRUNCATED)
}

/// A little-endian number of up to 8 bytes; 0 if `size` is 0.
fn take_number(rest: &mut &[u8], size: usize) -> Result<u64, &'static str> {
    let bytes = take(rest, size)?;
    Ok(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contexts of the highest level took 70 MiB here, and 640 MiB for more than 4 MiB of input.
    const CONTEXT_BYTES_MAX: usize = 24 << 20;

    fn text(size: usize) -> Vec<u8> {
        (0_u32..).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).take(size).collect()
    }

    #[test]
    fn a_thread_keeps_no_large_context() {
        let mut out = Vec::new();
        for level in [3, 9, 19, 22, 3, -5] {
            compress(level, &text(300 << 10), &mut out).unwrap();
            let kept = COMPRESS.with_borrow(CCtx::sizeof);
            assert!(kept <= CONTEXT_KEPT_BYTES, "level {level}: {kept} bytes");
        }
    }

    #[test]
    fn contexts_are_bounded_whatever_the_level() {
        for level in [1, 8, 9, 13, 17, 20, 22] {
            let mut out = Vec::new();
            let mut encoder = Encoder::new(level).unwrap();
            encoder.write(&text(300 << 10), &mut out).unwrap();
            let taken = encoder.0.sizeof();
            assert!(taken <= CONTEXT_BYTES_MAX, "level {level}: {taken} bytes");
        }
    }
}
