//! Splits a byte stream into frames: a size and that many bytes.
//!
//! The buffer grows with the received bytes, never because of a size prefix: a prefix of 100 MiB
//! followed by silence takes the memory of one read. A handler gets the frame's region of the
//! buffer; when it has finished, the next frame reuses the same memory. The memory of large frames
//! and of read-ahead counts towards the broker's input memory (`memory`).

use bytes::{Buf, BufMut, BytesMut, buf::Limit};
use pykafka_wire::ApiKey;

use crate::network::memory::budget::{BudgetClass, Share};

pub(crate) const PREFIX_SIZE: usize = 4;
/// Size of a read while the size of the next frame is unknown.
const READ_BYTES_MIN: usize = 16 << 10;
const READ_BYTES_MAX: usize = 256 << 10;
/// Frames of at least this size are read exactly to their end: bytes of the next frame would have
/// to be moved.
const LARGE_FRAME_BYTES: usize = 48 << 10;

/// Bytes of small frames per connection that do not count.
const UNCOUNTED_BYTES_MAX: usize = 64 << 10;

/// A size prefix that is outside the valid range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {size} bytes is outside 1 to {size_max}")]
pub(crate) struct FrameSizeError {
    size: i32,
    size_max: usize,
}

/// The received bytes that are not handled yet.
#[derive(Debug)]
pub(crate) struct Input {
    buffer: BytesMut,
    /// Capacity from the start of the buffer, as far as known; all of it is reclaimed once every
    /// frame is dropped.
    whole_bytes: usize,
    read_bytes: usize,
    share: Share,
}

impl Input {
    pub(crate) fn new(share: Share) -> Input {
        Input { buffer: BytesMut::new(), whole_bytes: 0, read_bytes: READ_BYTES_MIN, share }
    }

    /// Reserves memory for the next read of a frame of `frame_size`; if it returns false, wait for
    /// [`Input::admit`].
    pub(crate) fn try_admit(&mut self, frame_size: Option<usize>) -> bool {
        match self.missing_share(frame_size) {
            Some((class, bytes)) => self.share.try_grow(class, bytes),
            None => true,
        }
    }

    /// Waits for memory for the next read of a frame of `frame_size`.
    pub(crate) async fn admit(&mut self, frame_size: Option<usize>) {
        if let Some((class, bytes)) = self.missing_share(frame_size) {
            self.share.grow(class, bytes).await;
        }
    }

    /// The memory that the share lacks for the next read; `None` for small frames.
    fn missing_share(&self, frame_size: Option<usize>) -> Option<(BudgetClass, usize)> {
        let size = frame_size.filter(|size| *size >= LARGE_FRAME_BYTES)?;
        let bytes = self.reach(size).saturating_sub(self.share.bytes());
        (bytes > 0).then_some((BudgetClass::of(size), bytes))
    }

    /// Maximum size of the buffer after the next read of a large frame: twice its current size.
    fn reach(&self, size: usize) -> usize {
        let received = self.buffer.len();
        (PREFIX_SIZE + size).min(received + received.max(self.read_bytes))
    }

    /// True if it holds memory that others wait for.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.share.bytes() > 0 && self.share.budget().waiting() > 0
    }

    /// Frees memory that is not needed between frames, if others might need it.
    pub(crate) fn settle(&mut self) {
        if self.share.is_wanted() {
            self.release();
        }
    }

    /// Returns a share that covers a removed frame of `bytes` until its request has a response;
    /// then the next frame needs separate memory. `held` bytes of the connection's requests are
    /// pending already.
    pub(crate) fn lend(&mut self, bytes: usize, held: usize) -> Option<Share> {
        if bytes >= LARGE_FRAME_BYTES {
            return Some(self.share.split_off(PREFIX_SIZE + bytes));
        }
        (held >= UNCOUNTED_BYTES_MAX).then(|| {
            let mut share = self.share.budget().share();
            share.cover(bytes);
            share
        })
    }

    /// True if a connection with `held` bytes of pending requests must not start more, because
    /// memory is scarce.
    pub(crate) fn is_full(&self, held: usize) -> bool {
        held >= UNCOUNTED_BYTES_MAX && self.share.budget().is_tight()
    }

    /// Received bytes.
    pub(crate) fn size(&self) -> usize {
        self.buffer.len()
    }

    /// True if no frame has started.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Size of the current frame; `None` while it is unknown.
    pub(crate) fn frame_size(&self, size_max: usize) -> Result<Option<usize>, FrameSizeError> {
        let Some(prefix) = self.buffer.first_chunk::<PREFIX_SIZE>() else { return Ok(None) };
        let size = i32::from_be_bytes(*prefix);
        match usize::try_from(size) {
            Ok(bytes @ 1..) if bytes <= size_max => Ok(Some(bytes)),
            _ => Err(FrameSizeError { size, size_max }),
        }
    }

    /// API key of the current frame; `None` while it is unknown.
    pub(crate) fn next_api_key(&self) -> Option<ApiKey> {
        let key = self.buffer.get(PREFIX_SIZE..)?.first_chunk()?;
        Some(ApiKey(i16::from_be_bytes(*key)))
    }

    /// Removes and returns the next whole frame, without its prefix.
    pub(crate) fn next_frame(
        &mut self,
        size_max: usize,
    ) -> Result<Option<BytesMut>, FrameSizeError> {
        let Some(size) = self.frame_size(size_max)? else { return Ok(None) };
        if self.buffer.len() < PREFIX_SIZE + size {
            return Ok(None);
        }
        self.buffer.advance(PREFIX_SIZE);
        Ok(Some(self.buffer.split_to(size)))
    }

    /// The space for the next read.
    pub(crate) fn room(&mut self, frame_size: Option<usize>) -> Limit<&mut BytesMut> {
        let Some(size) = frame_size.filter(|size| *size >= LARGE_FRAME_BYTES) else {
            let read_bytes = self.read_bytes_spared();
            self.reserve(read_bytes);
            return (&mut self.buffer).limit(read_bytes);
        };
        let received = self.buffer.len();
        self.reserve(self.reach(size) - received);
        let room = self.buffer.capacity().min(self.share.bytes()).saturating_sub(received);
        (&mut self.buffer).limit((PREFIX_SIZE + size - received).min(room))
    }

    /// Size of a read of small frames; less if memory is scarce.
    fn read_bytes_spared(&mut self) -> usize {
        let reach = self.buffer.len() + self.read_bytes;
        let missing = reach.saturating_sub(self.share.bytes());
        if self.read_bytes == READ_BYTES_MIN || missing == 0 || self.share.try_spare(missing) {
            self.read_bytes
        } else {
            READ_BYTES_MIN
        }
    }

    /// Reserves space for `size` bytes. An empty buffer starts again at its beginning; otherwise a
    /// large frame would reach its end and have to be moved.
    fn reserve(&mut self, size: usize) {
        if self.buffer.is_empty() && !self.buffer.try_reclaim(self.whole_bytes) {
            self.whole_bytes = 0;
        }
        self.buffer.reserve(size);
        self.whole_bytes = self.whole_bytes.max(self.buffer.capacity());
    }

    /// Adapts the size of the next read to a read of `read` into `room` bytes: larger if it was
    /// full.
    pub(crate) fn adapt(&mut self, read: usize, room: usize) {
        if read == room {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
    }

    /// Frees the memory if the buffer is empty.
    pub(crate) fn release(&mut self) {
        if self.buffer.is_empty() {
            *self = Input::new(self.share.budget().share());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::memory::Memory;
    use proptest::prelude::*;

    fn input() -> Input {
        Input::new(Memory::new(1 << 40).input.share())
    }

    fn receive(input: &mut Input, bytes: &[u8]) {
        input.buffer.extend_from_slice(bytes);
    }

    #[test]
    fn sizes_outside_the_bounds_are_rejected_without_an_allocation() {
        for size in [0, -1, i32::MIN, 101, i32::MAX] {
            let mut input = input();
            receive(&mut input, &size.to_be_bytes());
            assert_eq!(input.next_frame(100), Err(FrameSizeError { size, size_max: 100 }));
            assert!(input.buffer.capacity() < 1_024);
        }
    }

    #[test]
    fn buffer_grows_with_the_received_bytes_and_not_with_the_prefix() {
        let mut input = input();
        let size = 100 << 20;
        receive(&mut input, &(size as i32).to_be_bytes());
        assert!(input.try_admit(Some(size)));
        assert_eq!(input.room(Some(size)).remaining_mut(), READ_BYTES_MIN);
        receive(&mut input, &vec![0; 1 << 20]);
        assert!(input.try_admit(Some(size)));
        let room = input.room(Some(size)).remaining_mut();
        assert!(room <= 3 << 20, "{room}");
    }

    #[test]
    fn a_large_frame_is_read_to_its_end_and_no_further() {
        let mut input = input();
        let size = 1 << 20;
        receive(&mut input, &(size as i32).to_be_bytes());
        receive(&mut input, &vec![0; size - 20_000]);
        assert!(input.try_admit(Some(size)));
        assert_eq!(input.room(Some(size)).remaining_mut(), 20_000);
        assert_eq!(input.next_frame(size).map(|frame| frame.is_some()), Ok(false));
    }

    #[test]
    fn consecutive_large_frames_stay_where_they_were_read() {
        let mut input = input();
        let size = 1 << 20;
        let mut stream = (size as i32).to_be_bytes().to_vec();
        stream.resize(PREFIX_SIZE + size, 7);
        let stream = stream.repeat(8);
        let (mut at, mut moved, mut frames) = (0, 0, 0);
        while at < stream.len() {
            let frame_size = input.frame_size(size).expect("sizes are allowed");
            let before = input.buffer.as_ptr();
            assert!(input.try_admit(frame_size));
            let (held, mut room) = (input.size(), input.room(frame_size));
            let taken = room.remaining_mut().min(stream.len() - at);
            room.put_slice(&stream[at..at + taken]);
            input.adapt(taken, taken);
            moved += if input.buffer.as_ptr() == before { 0 } else { held };
            at += taken;
            frames += usize::from(input.next_frame(size).expect("sizes are allowed").is_some());
        }
        assert_eq!(frames, 8);
        // The buffer grows with the first frames; after that, each frame starts where the previous
        // one started.
        assert!(moved < 3 << 20, "{moved} bytes were moved");
    }

    proptest! {
        #[test]
        fn frames_are_unchanged_however_their_bytes_are_split(
            frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..200), 0..20),
            cut in 1_usize..64,
        ) {
            let mut stream = Vec::new();
            for frame in &frames {
                stream.extend_from_slice(&(frame.len() as i32).to_be_bytes());
                stream.extend_from_slice(frame);
            }
            let mut input = input();
            let mut got = Vec::new();
            for piece in stream.chunks(cut) {
                receive(&mut input, piece);
                while let Some(frame) = input.next_frame(1_000).expect("sizes are allowed") {
                    got.push(frame.to_vec());
                }
            }
            prop_assert_eq!(got, frames);
            prop_assert!(input.is_empty());
        }
    }
}
