//! Answers on their way to the socket: small ones are gathered in one buffer, record bytes are sent from where they are.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use pykafka_wire::{Chunks, frame};

use crate::Header;

/// Chunks below this size are copied behind each other: an entry of their own costs more in `writev`.
const COPIED_BYTES_MAX: usize = 4 << 10;
const SLICES_MAX: usize = 64;
const SIZE_PREFIX: usize = 4;

/// What is to be sent, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    closed: VecDeque<Bytes>,
    open: BytesMut,
    size: usize,
}

impl Output {
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Adds the frame of one answer.
    pub(crate) fn push(&mut self, header: &Header, body: Chunks) {
        let start = self.open.len();
        self.open.put_i32(0);
        let Header { api_key, api_version, correlation_id, .. } = *header;
        frame::response_header(api_key, api_version, correlation_id, &mut self.open);
        let size = self.open.len() - start - SIZE_PREFIX + body.size();
        self.open[start..start + SIZE_PREFIX].copy_from_slice(&(size as i32).to_be_bytes());
        self.size += SIZE_PREFIX + size;
        for chunk in body.into_vec() {
            if chunk.len() < COPIED_BYTES_MAX {
                self.open.extend_from_slice(&chunk);
            } else {
                self.close();
                self.closed.push_back(chunk);
            }
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push_back(self.open.split().freeze());
        }
    }

    /// Hands the next bytes to `write` until all are gone or it fails; returns bytes written by the last call.
    pub(crate) fn write_with(
        &mut self,
        mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<()> {
        while self.size > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            let open = (!self.open.is_empty()).then_some(&self.open[..]);
            for bytes in self.closed.iter().map(|chunk| &chunk[..]).chain(open).take(SLICES_MAX) {
                slices[count] = IoSlice::new(bytes);
                count += 1;
            }
            let written = write(&slices[..count])?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(written);
        }
        Ok(())
    }

    fn advance(&mut self, mut written: usize) {
        self.size -= written;
        while let Some(chunk) = self.closed.front_mut() {
            if written < chunk.len() {
                chunk.advance(written);
                return;
            }
            written -= chunk.len();
            self.closed.pop_front();
        }
        if written == self.open.len() {
            self.open.clear();
        } else {
            self.open.advance(written);
        }
    }

    /// Gives the memory back while nothing is in it.
    pub(crate) fn release(&mut self) {
        if self.size == 0 {
            *self = Output::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pykafka_wire::{ApiKey, Sink};
    use std::sync::Arc;

    fn header(correlation_id: i32) -> Header {
        Header {
            api_key: ApiKey::METADATA,
            api_version: 9,
            correlation_id,
            client_id: Arc::from(""),
            received_ns: 0,
            received_ms: 0,
        }
    }

    proptest! {
        #[test]
        fn every_byte_is_written_once_and_in_order(
            bodies in proptest::collection::vec((0_usize..40, any::<bool>()), 1..40),
            portion in 700_usize..10_000,
        ) {
            let (mut output, mut expected, mut sent) = (Output::default(), Vec::new(), Vec::new());
            for (index, &(size, shared)) in bodies.iter().enumerate() {
                let body = vec![index as u8; if shared { size * 500 } else { size }];
                expected.extend_from_slice(&(body.len() as i32 + 5).to_be_bytes());
                expected.extend_from_slice(&(index as i32).to_be_bytes());
                expected.push(0);
                expected.extend_from_slice(&body);
                let mut chunks = Chunks::new();
                chunks.put_shared(&body.into());
                output.push(&header(index as i32), chunks);
            }
            prop_assert_eq!(output.size(), expected.len());
            let written = output.write_with(|slices| {
                let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
                let taken = all.len().min(portion);
                sent.extend_from_slice(&all[..taken]);
                Ok(taken)
            });
            prop_assert!(written.is_ok());
            prop_assert_eq!(sent, expected);
            prop_assert_eq!(output.size(), 0);
        }
    }
}
