//! The body of an answer: an encoded message, and the slices of files that go into the room it leaves.

use std::collections::VecDeque;

use pykafka_log::RecordsSlice;
use pykafka_wire::{Chunk, Chunks};

use crate::output::Part;

/// A response's body; the connection writes size and header.
#[derive(Debug, Default)]
pub struct Reply {
    body: Chunks,
    slices: VecDeque<RecordsSlice>,
}

impl Reply {
    /// `body` has room for each of the `slices`, in their order.
    pub fn new(body: Chunks, slices: impl IntoIterator<Item = RecordsSlice>) -> Reply {
        Reply { body, slices: slices.into_iter().collect() }
    }

    /// Bytes on the wire.
    pub fn size(&self) -> usize {
        self.body.size()
    }

    pub(crate) fn into_parts(self) -> impl Iterator<Item = Part> {
        let Reply { body, mut slices } = self;
        body.into_vec().into_iter().map(move |chunk| match chunk {
            Chunk::Bytes(bytes) => Part::Bytes(bytes),
            Chunk::Room(size) => {
                let slice = slices.pop_front().expect("there is a slice for each room");
                assert_eq!(slice.len(), size, "a slice is as long as its room");
                Part::Slice(slice)
            }
        })
    }

    /// Everything in one buffer, copied from the files.
    #[cfg(test)]
    pub(crate) fn to_bytes(&self) -> bytes::Bytes {
        let mut all = bytes::BytesMut::new();
        let copy = Reply { body: self.body.clone(), slices: self.slices.clone() };
        for part in copy.into_parts() {
            match part {
                Part::Bytes(bytes) => all.extend_from_slice(&bytes),
                Part::Slice(slice) => {
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
        Reply { body, slices: VecDeque::new() }
    }
}
