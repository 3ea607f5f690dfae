//! Responses on the way to the socket: small parts are gathered in one buffer, large records are
//! sent from where they are.
//!
//! Records in a file are sent by the transport from the file, without being copied to user space.
//! If the transport does not support this, it gets them in pieces, each of which is still in the
//! CPU cache when it is sent. In both cases a response takes no more memory than one piece.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, BufMut, BytesMut};
use pykafka_wire::frame;

use crate::network::memory::budget::Share;
use crate::network::reply::{Part, Reply, StoredRecords};
use crate::network::response_memory::ResponseMemory;
use crate::network::transport::Transport;
use crate::request::Header;

/// Chunks below this size are copied into one buffer; a separate `writev` entry costs more.
const COPIED_BYTES_MAX: usize = 4 << 10;
const SLICES_MAX: usize = 64;
const SIZE_PREFIX: usize = 4;
/// Size of a piece of a file that cannot be sent from; it fits into the cache of a core.
const PIECE_BYTES: usize = 256 << 10;

/// The data to send, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    closed: VecDeque<Part>,
    open: BytesMut,
    size: usize,
    /// The share of the response budget, until all responses are sent.
    room: Option<Share>,
}

impl Output {
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Bytes in memory, without those in files.
    pub(crate) fn memory_size(&self) -> usize {
        let closed = self.closed.iter().map(|part| match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Stored(_) => 0,
        });
        closed.sum::<usize>() + self.open.len()
    }

    /// Adds the frame of one response.
    pub(crate) fn push(&mut self, header: &Header, reply: Reply) {
        let start = self.open.len();
        self.open.put_i32(0);
        let Header { api_key, api_version, correlation_id, .. } = *header;
        frame::response_header(api_key, api_version, correlation_id, &mut self.open);
        let size = self.open.len() - start - SIZE_PREFIX + reply.size();
        self.open[start..start + SIZE_PREFIX].copy_from_slice(&(size as i32).to_be_bytes());
        self.size += SIZE_PREFIX + size;
        let (room, parts) = reply.into_parts();
        self.take_room(room);
        for part in parts {
            match part {
                Part::Bytes(bytes) if bytes.len() < COPIED_BYTES_MAX => {
                    self.open.extend_from_slice(&bytes);
                }
                part => {
                    self.close();
                    self.closed.push_back(part);
                }
            }
        }
    }

    fn take_room(&mut self, room: Option<Share>) {
        match (&mut self.room, room) {
            (Some(held), Some(room)) => held.absorb(room),
            (held @ None, room) => *held = room,
            (Some(_), None) => {}
        }
    }

    /// Accounts for bytes in memory that have no share yet, because the peer does not receive them
    /// at once. Returns all bytes that are accounted for.
    pub(crate) fn cover(&mut self, responses: &ResponseMemory) -> usize {
        let unsent = self.memory_size();
        let room = self.room.get_or_insert_with(|| responses.share());
        room.cover(unsent.saturating_sub(room.bytes()));
        room.bytes()
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push_back(Part::Bytes(self.open.split().freeze()));
        }
    }

    /// Sends to `transport` until everything is sent, `bytes_max` are sent, or it fails. Data in
    /// memory may exceed `bytes_max`.
    ///
    /// # Errors
    /// Errors of the transport, see [`is_of_peer`]. Or an error of a file that does not have the
    /// promised data any more: the response cannot be completed, and the partition is notified if
    /// the file caused it.
    pub(crate) fn send(&mut self, transport: &impl Transport, bytes_max: usize) -> io::Result<()> {
        let end = self.size.saturating_sub(bytes_max);
        while self.size > end {
            let room = self.size - end;
            let sent = match self.closed.front() {
                Some(Part::Stored(records)) => send_stored(records, transport, room)?,
                _ => Some(self.write(transport)?),
            };
            match sent {
                Some(sent) => self.advance(sent),
                None => self.read_piece()?,
            }
        }
        Ok(())
    }

    /// Writes the bytes before the next file slice.
    fn write(&self, transport: &impl Transport) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        let open = Some(&self.open[..]).filter(|open| !open.is_empty());
        let mut more = false;
        let parts = self.closed.iter().map(|part| match part {
            Part::Bytes(bytes) => Some(&bytes[..]),
            Part::Stored(_) => None,
        });
        for bytes in parts.chain(open.map(Some)).take(SLICES_MAX) {
            let Some(bytes) = bytes else {
                more = true;
                break;
            };
            slices[count] = IoSlice::new(bytes);
            count += 1;
        }
        match transport.try_write(&slices[..count], more)? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            written => Ok(written),
        }
    }

    /// Reads the next piece of the first file slice into memory.
    fn read_piece(&mut self) -> io::Result<()> {
        if let Some(Part::Stored(records)) = self.closed.front_mut() {
            let mut piece = vec![0; records.slice.len().min(PIECE_BYTES)];
            records.slice.read(&mut piece).map_err(|error| records.failed(error))?;
            records.slice.advance(piece.len());
            if records.slice.is_empty() {
                self.closed.pop_front();
            }
            self.closed.push_front(Part::Bytes(piece.into()));
        }
        Ok(())
    }

    fn advance(&mut self, mut sent: usize) {
        self.size -= sent;
        while let Some(part) = self.closed.front_mut() {
            let size = match part {
                Part::Bytes(bytes) => bytes.len(),
                Part::Stored(records) => records.slice.len(),
            };
            if sent < size {
                match part {
                    Part::Bytes(bytes) => bytes.advance(sent),
                    Part::Stored(records) => records.slice.advance(sent),
                }
                return;
            }
            sent -= size;
            self.closed.pop_front();
        }
        if sent == self.open.len() {
            self.open.clear();
            self.room = None;
        } else {
            self.open.advance(sent);
        }
    }

    /// Frees the memory if everything is sent.
    pub(crate) fn release(&mut self) {
        if self.size == 0 {
            *self = Output::default();
        }
    }
}

/// True if the peer caused the error.
pub(crate) fn is_of_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::TimedOut
            | io::ErrorKind::NotConnected
    )
}

/// Sends from the file of `records`; `None` if they must be read instead.
fn send_stored(
    records: &StoredRecords,
    transport: &impl Transport,
    bytes_max: usize,
) -> io::Result<Option<usize>> {
    let slice = &records.slice;
    let Some(file) = slice.descriptor().map_err(|error| records.failed(error))? else {
        return Ok(None);
    };
    match transport.try_send_file(file, slice.position(), slice.len().min(bytes_max)) {
        Ok(sent) if sent > 0 => Ok(Some(sent)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_of_peer(&error) => Err(error),
        // The end of the file, a file that does not support this, or an error that the file may
        // have caused: a read finds out.
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
