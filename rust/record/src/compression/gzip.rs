//! Gzip (RFC 1952): members around a raw deflate stream.
//!
//! The framing is implemented here, not by a stream reader, so that the deflate contexts (40 and
//! 270 KB) are kept per thread and output is written directly to its buffer or window. As in Java,
//! several members may follow each other, and bytes after the last member are ignored.

use std::cell::RefCell;

use crc_fast::{CrcAlgorithm, Digest};
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

use super::codec::Compression;
use super::error::CompressionError;
use super::sink::{Sink, Step, take};
use crate::crc::crc32;

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Magic, deflate, no flags, no time, no extra flags, Unix; Java writes 0 for the system.
const HEADER_WRITTEN: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
/// Initial guess of the ratio, typical for JSON.
const RATIO_GUESS: usize = 4;

thread_local! {
    /// [`Members`] takes it and returns it.
    static INFLATE: RefCell<Option<Decompress>> = const { RefCell::new(None) };
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
        deflate_all(deflate, input, out, FlushCompress::Finish)
    })?;
    out.extend_from_slice(&crc32(input).to_le_bytes());
    out.extend_from_slice(&(input.len() as u32).to_le_bytes());
    Ok(())
}

/// Streaming encoder of one member.
#[derive(Debug)]
pub(crate) struct Encoder {
    deflate: Compress,
    checksum: Checksum,
}

impl Encoder {
    pub(super) fn new(level: i32, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(&HEADER_WRITTEN);
        let deflate = Compress::new(flate2::Compression::new(level as u32), false);
        Self { deflate, checksum: Checksum::new() }
    }

    pub(super) fn write(
        &mut self,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        self.checksum.update(piece);
        deflate_all(&mut self.deflate, piece, out, FlushCompress::None)
    }

    #[expect(clippy::little_endian_bytes, reason = "gzip is little-endian")]
    pub(super) fn finish(
        mut self,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        self.checksum.update(piece);
        deflate_all(&mut self.deflate, piece, out, FlushCompress::Finish)?;
        let Checksum { crc, size } = self.checksum;
        out.extend_from_slice(&(crc.finalize() as u32).to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
        Ok(())
    }
}

fn deflate_all(
    deflate: &mut Compress,
    input: &[u8],
    out: &mut Vec<u8>,
    flush: FlushCompress,
) -> Result<(), CompressionError> {
    let before = deflate.total_in();
    loop {
        let rest = &input[(deflate.total_in() - before) as usize..];
        if rest.is_empty() && flush == FlushCompress::None {
            return Ok(());
        }
        out.reserve(rest.len() / RATIO_GUESS + 128);
        match deflate.compress_vec(rest, out, flush) {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) => {}
            Err(_) => {
                return Err(CompressionError::corrupt(Compression::Gzip, "does not deflate"));
            }
        }
    }
}

/// Consecutive members.
pub(super) struct Members<'a> {
    /// Starts with the current member's deflate stream, or with the next member's header.
    rest: &'a [u8],
    /// Set until drop.
    inflate: Option<Decompress>,
    /// Checksum of the current member's output so far.
    member: Option<Checksum>,
    /// Whether a member was read: from then on, bytes that are not a member are ignored.
    read_one: bool,
}

impl<'a> Members<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        let inflate = INFLATE.take().unwrap_or_else(|| Decompress::new(false));
        Self { rest: input, inflate: Some(inflate), member: None, read_one: false }
    }

    pub(super) fn step(&mut self, sink: &mut Sink<'_>) -> Result<Step, CompressionError> {
        let (Some(checksum), Some(inflate)) = (&mut self.member, &mut self.inflate) else {
            return self.begin(sink);
        };
        if sink.window_room() == 0 {
            return Ok(Step::Full);
        }
        let start = sink.out.len();
        let input = &self.rest[inflate.total_in() as usize..];
        let status = inflate_some(inflate, input, sink)?;
        checksum.update(&sink.out[start..]);
        if status == Status::StreamEnd {
            self.rest = &self.rest[inflate.total_in() as usize..];
            checksum.compare(&mut self.rest).map_err(|reason| sink.corrupt(reason))?;
            self.member = None;
        }
        Ok(Step::More)
    }

    /// Start the next member, if there is one.
    fn begin(&mut self, sink: &Sink<'_>) -> Result<Step, CompressionError> {
        if self.read_one && !self.rest.starts_with(&MAGIC) {
            return Ok(Step::End);
        }
        skip_header(&mut self.rest).ok_or_else(|| sink.corrupt("malformed header"))?;
        if let Some(inflate) = &mut self.inflate {
            inflate.reset(false);
        }
        self.member = Some(Checksum::new());
        self.read_one = true;
        Ok(Step::More)
    }
}

impl Drop for Members<'_> {
    fn drop(&mut self) {
        INFLATE.set(self.inflate.take());
    }
}

/// Skip a member's header with its optional fields.
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

/// Inflate as much as fits into the sink's capacity, which grows within its limits.
fn inflate_some(
    inflate: &mut Decompress,
    input: &[u8],
    sink: &mut Sink<'_>,
) -> Result<Status, CompressionError> {
    if sink.out.len() == sink.out.capacity() {
        // One byte above the limit, so that a stream that ends exactly at the limit can finish.
        let step = sink.out.len().max(input.len() * RATIO_GUESS).max(4096);
        sink.reserve(step.min(sink.room().saturating_add(1)).min(sink.window_room()))?;
    }
    let before = (inflate.total_in(), inflate.total_out());
    let status = inflate
        .decompress_vec(input, sink.out, FlushDecompress::None)
        .map_err(|_| sink.corrupt("malformed deflate stream"))?;
    if sink.is_above_bound() {
        return Err(sink.too_large());
    }
    let stuck = before == (inflate.total_in(), inflate.total_out());
    if status != Status::StreamEnd && stuck && sink.out.len() < sink.out.capacity() {
        return Err(sink.corrupt("deflate stream is truncated"));
    }
    Ok(status)
}

/// Checksum of a member's output, as in its trailer.
#[derive(Debug)]
struct Checksum {
    crc: Digest,
    size: u32,
}

impl Checksum {
    fn new() -> Self {
        Self { crc: Digest::new(CrcAlgorithm::Crc32IsoHdlc), size: 0 }
    }

    fn update(&mut self, output: &[u8]) {
        self.crc.update(output);
        // Modulo 2^32, as in RFC 1952.
        self.size = self.size.wrapping_add(output.len() as u32);
    }

    /// Take a trailer off `rest` and compare.
    #[expect(clippy::little_endian_bytes, reason = "gzip is little-endian")]
    fn compare(&self, rest: &mut &[u8]) -> Result<(), &'static str> {
        const TRUNCATED: &str = "trailer is truncated";
        let checksum = u32::from_le_bytes(take(rest).ok_or(TRUNCATED)?);
        let size = u32::from_le_bytes(take(rest).ok_or(TRUNCATED)?);
        if u64::from(checksum) != self.crc.finalize() || size != self.size {
            return Err("checksum or size differs");
        }
        Ok(())
    }
}
