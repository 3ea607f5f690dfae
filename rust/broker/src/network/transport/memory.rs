//! A transport without a socket, for tests: data from the peer arrives at once, and data that the
//! peer does not receive fills a buffer.

use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use pykafka_forks::Mutex;
use rustix::io::Errno;
use tokio::io::{Interest, Ready};
use tokio::sync::Notify;

use super::Transport;

/// How a transport sends from files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Files {
    Sent,
    Unsupported,
    Failing(Errno),
}

/// The broker's end.
pub(crate) struct MemoryTransport {
    stream: Arc<Stream>,
    files: Files,
}

/// The peer's end.
pub(crate) struct Peer {
    stream: Arc<Stream>,
}

struct Stream {
    state: Mutex<State>,
    /// Notified of changes by the peer.
    of_peer: Notify,
    /// Notified of changes by the broker.
    of_broker: Notify,
}

#[derive(Default)]
struct State {
    /// Data that the broker has not read; then, data that the peer has not received.
    unread: BytesMut,
    untaken: BytesMut,
    untaken_max: usize,
    has_finished: bool,
    is_reset: bool,
    is_closed: bool,
}

/// Creates both ends. The peer's buffer has space for `untaken_max` bytes.
pub(crate) fn connected(untaken_max: usize, files: Files) -> (MemoryTransport, Peer) {
    let state = Mutex::new(State { untaken_max, ..State::default() });
    let stream = Arc::new(Stream { state, of_peer: Notify::new(), of_broker: Notify::new() });
    (MemoryTransport { stream: stream.clone(), files }, Peer { stream })
}

impl State {
    fn ready(&self) -> Ready {
        let mut ready = Ready::EMPTY;
        if self.is_reset {
            ready |= Ready::ERROR;
        }
        if !self.unread.is_empty() || self.has_finished || self.is_reset {
            ready |= Ready::READABLE;
        }
        if self.untaken.len() < self.untaken_max || self.is_reset {
            ready |= Ready::WRITABLE;
        }
        ready
    }

    /// Number of bytes, at most `size`, that can be written.
    fn room(&self, size: usize) -> io::Result<usize> {
        if self.is_reset {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match size.min(self.untaken_max - self.untaken.len()) {
            0 if size > 0 => Err(io::ErrorKind::WouldBlock.into()),
            room => Ok(room),
        }
    }
}

/// The events of `ready` that match `interest`; errors always match.
fn wanted(ready: Ready, interest: Interest) -> Ready {
    let mut wanted = Ready::ERROR;
    if interest.is_readable() {
        wanted |= Ready::READABLE;
    }
    if interest.is_writable() {
        wanted |= Ready::WRITABLE;
    }
    ready & wanted
}

impl Transport for MemoryTransport {
    async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        loop {
            let ready = wanted(self.stream.state.lock().ready(), interest);
            if !ready.is_empty() {
                return Ok(ready);
            }
            self.stream.of_peer.notified().await;
        }
    }

    fn try_read(&self, room: &mut impl BufMut) -> io::Result<usize> {
        let mut state = self.stream.state.lock();
        if state.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let size = room.remaining_mut().min(state.unread.len());
        if size == 0 && !state.has_finished {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        room.put(state.unread.split_to(size));
        Ok(size)
    }

    fn try_write(&self, slices: &[IoSlice<'_>], _more: bool) -> io::Result<usize> {
        let mut state = self.stream.state.lock();
        let room = state.room(slices.iter().map(|slice| slice.len()).sum())?;
        let end = state.untaken.len() + room;
        for slice in slices {
            state.untaken.extend_from_slice(slice);
        }
        state.untaken.truncate(end);
        self.stream.of_broker.notify_one();
        Ok(room)
    }

    fn try_send_file(&self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize> {
        match self.files {
            Files::Sent => {}
            Files::Unsupported => return Err(io::ErrorKind::Unsupported.into()),
            Files::Failing(error) => return Err(error.into()),
        }
        let mut bytes = vec![0; self.stream.state.lock().room(size)?];
        let read = std::fs::File::from(file.try_clone_to_owned()?).read_at(&mut bytes, position)?;
        self.try_write(&[IoSlice::new(&bytes[..read])], false)
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        self.stream.state.lock().is_closed = true;
        self.stream.of_broker.notify_one();
    }
}

impl Peer {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.stream.state.lock());
        self.stream.of_peer.notify_one();
    }

    pub(crate) fn send(&self, bytes: &[u8]) {
        self.change(|state| state.unread.extend_from_slice(bytes));
    }

    /// Closes the peer's sending side.
    pub(crate) fn finish(&self) {
        self.change(|state| state.has_finished = true);
    }

    pub(crate) fn reset(&self) {
        self.change(|state| state.is_reset = true);
    }

    /// Bytes that the broker has not read yet.
    pub(crate) fn unread(&self) -> usize {
        self.stream.state.lock().unread.len()
    }

    /// Bytes that were sent to the peer and are not received yet.
    pub(crate) fn untaken(&self) -> usize {
        self.stream.state.lock().untaken.len()
    }

    /// Receives everything that has arrived.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut taken = BytesMut::new();
        self.change(|state| taken = mem::take(&mut state.untaken));
        taken.into()
    }

    /// Waits for `size` bytes and receives them; `None` if the broker closes the stream first.
    pub(crate) async fn receive(&self, size: usize) -> Option<Vec<u8>> {
        let mut taken = Vec::with_capacity(size);
        loop {
            let mut is_closed = false;
            self.change(|state| {
                let missing = (size - taken.len()).min(state.untaken.len());
                taken.extend_from_slice(&state.untaken.split_to(missing));
                is_closed = state.is_closed && state.untaken.is_empty();
            });
            if taken.len() == size {
                return Some(taken);
            }
            if is_closed {
                return None;
            }
            self.stream.of_broker.notified().await;
        }
    }

    /// Waits until the broker closes the stream; returns true if it sent nothing before.
    pub(crate) async fn is_closed(&self) -> bool {
        self.receive(1).await.is_none()
    }
}
