//! The body of a response: an encoded message with gaps, and the file slices that fill them.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use pykafka_log::{RecordsSlice, SliceError, StorageError};
use pykafka_wire::{Chunk, Chunks};

use crate::network::memory::budget::Share;
/// Receives the errors of a file from which records are sent.
pub trait ReadFailures: fmt::Debug + Send + Sync {
    /// The file could not be read.
    fn read_failed(&self, error: &StorageError);
}

/// Records that are sent from their file.
#[derive(Debug, Clone)]
pub struct StoredRecords {
    /// Their position in the file.
    pub slice: RecordsSlice,
    /// Notified if the file cannot be read.
    pub failures: Arc<dyn ReadFailures>,
}

impl StoredRecords {
    /// Ends the response: it has no space for an error code any more. The next response has the
    /// code.
    pub(crate) fn failed(&self, error: SliceError) -> io::Error {
        if let SliceError::Storage(error) = &error {
            self.failures.read_failed(error);
        }
        io::Error::other(error)
    }
}

/// A part of a response.
#[derive(Debug)]
pub(crate) enum Part {
    Bytes(Bytes),
    Stored(StoredRecords),
}

/// The body of a response; the connection writes the size and the header.
#[derive(Debug, Default)]
pub struct Reply {
    body: Chunks,
    slices: VecDeque<StoredRecords>,
    /// The share of the response budget that covers the body; `None` for a small one.
    room: Option<Share>,
}

impl Reply {
    /// Creates a reply whose `body` has a gap for each of the `slices`, in their order.
    pub fn new(body: Chunks, slices: impl IntoIterator<Item = StoredRecords>) -> Reply {
        Reply { body, slices: slices.into_iter().collect(), room: None }
    }

    /// Attaches the `room` that was reserved before the body was built, adjusted to the body's
    /// size.
    pub(crate) fn in_room(mut self, mut room: Share) -> Reply {
        let bytes = self.memory_size();
        room.cover(bytes.saturating_sub(room.bytes()));
        room.shrink_to(bytes);
        self.room = (bytes > 0).then_some(room);
        self
    }

    /// Bytes in memory, without those in files.
    fn memory_size(&self) -> usize {
        self.body.size() - self.slices.iter().map(|records| records.slice.len()).sum::<usize>()
    }

    /// Bytes that are sent.
    pub fn size(&self) -> usize {
        self.body.size()
    }

    pub(crate) fn into_parts(self) -> (Option<Share>, impl Iterator<Item = Part>) {
        let Reply { body, mut slices, room } = self;
        let parts = body.into_vec().into_iter().map(move |chunk| match chunk {
            Chunk::Bytes(bytes) => Part::Bytes(bytes),
            Chunk::Room(size) => {
                let records = slices.pop_front().expect("each gap has a slice");
                assert_eq!(records.slice.len(), size, "a slice is as long as its gap");
                Part::Stored(records)
            }
        });
        (room, parts)
    }

    /// Copies the whole body, including the file slices, into one buffer.
    #[cfg(test)]
    pub(crate) fn to_bytes(&self) -> bytes::Bytes {
        let mut all = bytes::BytesMut::new();
        let copy = Reply { body: self.body.clone(), slices: self.slices.clone(), room: None };
        for part in copy.into_parts().1 {
            match part {
                Part::Bytes(bytes) => all.extend_from_slice(&bytes),
                Part::Stored(StoredRecords { slice, .. }) => {
                    let start = all.len();
                    all.resize(start + slice.len(), 0);
                    slice.read(&mut all[start..]).expect("the log was not truncated");
                }
            }
        }
        all.freeze()
    }
}

impl From<Chunks> for Reply {
    fn from(body: Chunks) -> Reply {
        Reply { body, slices: VecDeque::new(), room: None }
    }
}
