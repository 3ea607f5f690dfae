//! Answers on their way to the socket: small ones are gathered in one buffer, record bytes are sent from where they are.
//!
//! Where that is a file, the transport is asked to send from it, which never brings the bytes here; a transport that cannot
//! is given them piece by piece, each still in the cache when it is sent. Either way an answer costs no more memory than
//! one piece.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use pykafka_wire::frame;

use crate::api::context::Header;
use crate::api::reply::{Reply, StoredRecords};
use crate::network::answers::Answers;
use crate::network::memory::budget::Share;

/// Chunks below this size are copied behind each other: an entry of their own costs more in `writev`.
const COPIED_BYTES_MAX: usize = 4 << 10;
const SLICES_MAX: usize = 64;
const SIZE_PREFIX: usize = 4;
/// What is read at once of a file that cannot be sent from: it fits the cache of a core.
const PIECE_BYTES: usize = 256 << 10;

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Part {
    Bytes(Bytes),
    Stored(StoredRecords),
}

/// Where answers go. What would wait is [`io::ErrorKind::WouldBlock`].
pub(crate) trait Transport {
    /// Sends bytes of `slices`, in order; `more` follows at once.
    fn write(&mut self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize>;

    /// Sends bytes of `file` from `position` on, at most `size`; 0 at its end.
    ///
    /// # Errors
    /// `Unsupported` if this transport or this file cannot do so.
    fn send_file(&mut self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize>;
}

/// What is to be sent, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    closed: VecDeque<Part>,
    open: BytesMut,
    size: usize,
    /// What the answers hold of the memory for answers, until all of them are sent.
    room: Option<Share>,
}

impl Output {
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Bytes that are not in a file.
    pub(crate) fn memory_size(&self) -> usize {
        let closed = self.closed.iter().map(|part| match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Stored(_) => 0,
        });
        closed.sum::<usize>() + self.open.len()
    }

    /// Adds the frame of one answer.
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

    /// Counts what is in memory now and was made without room: the peer does not take it at once. Returns all that counts.
    pub(crate) fn cover(&mut self, answers: &Answers) -> usize {
        let unsent = self.memory_size();
        let room = self.room.get_or_insert_with(|| answers.share());
        room.cover(unsent.saturating_sub(room.bytes()));
        room.bytes()
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push_back(Part::Bytes(self.open.split().freeze()));
        }
    }

    /// Hands what is left to `transport` until all is gone, `bytes_max` are sent or it fails. What is in memory may be more.
    ///
    /// # Errors
    /// Of the transport, which [`is_of_peer`] tells; or of a file that does not hold any more what was promised: the
    /// answer cannot be completed, and the partition knows if it is the file's fault.
    pub(crate) fn send(
        &mut self,
        transport: &mut impl Transport,
        bytes_max: usize,
    ) -> io::Result<()> {
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

    /// Writes what comes before the next slice.
    fn write(&self, transport: &mut impl Transport) -> io::Result<usize> {
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
        match transport.write(&slices[..count], more)? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            written => Ok(written),
        }
    }

    /// Brings the next piece of the slice at the front into memory.
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

    /// Gives the memory back while nothing is in it.
    pub(crate) fn release(&mut self) {
        if self.size == 0 {
            *self = Output::default();
        }
    }
}

/// Whether sending failed because of what the peer did.
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

/// Sends from the file of `records`; `None` if they have to be read.
fn send_stored(
    records: &StoredRecords,
    transport: &mut impl Transport,
    bytes_max: usize,
) -> io::Result<Option<usize>> {
    let slice = &records.slice;
    let Some(file) = slice.descriptor().map_err(|error| records.failed(error))? else {
        return Ok(None);
    };
    match transport.send_file(file, slice.position(), slice.len().min(bytes_max)) {
        Ok(sent) if sent > 0 => Ok(Some(sent)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_of_peer(&error) => Err(error),
        // The end of the file, a file that cannot be sent from, or an error that may be the file's: reading tells.
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pykafka_log::{
        AppendOptions, AppendOrigin, BufferPool, Checkpointed, FetchedRecords, Log, LogConfig,
        LogOptions, ManualClock, OnDamage, RealDisk, RecordsSlice,
    };
    use pykafka_record::{BatchBuilder, BatchOptions};
    use pykafka_wire::{ApiKey, Chunks, Sink};
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    use crate::partition::Partition;
    use crate::seam::event::{Event, PartitionStateKind};
    use crate::testing::{Broker, TOPIC};

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

    /// What a transport does with files.
    #[derive(Clone, Copy, PartialEq)]
    enum Files {
        Sent,
        Unsupported,
        /// Sending fails, and not because of the peer.
        Failing,
    }

    /// Takes `portion` bytes a call, and would block at every other.
    struct Portions {
        portion: usize,
        files: Files,
        blocks: bool,
        sent: Vec<u8>,
    }

    impl Portions {
        fn new(portion: usize, files: Files) -> Portions {
            Portions { portion, files, blocks: false, sent: Vec::new() }
        }

        fn block(&mut self) -> io::Result<()> {
            self.blocks = !self.blocks;
            if self.blocks { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        }

        /// Everything that `output` has.
        fn drain(&mut self, output: &mut Output) -> io::Result<()> {
            loop {
                match output.send(self, 50_000) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Ok(()) if output.size() > 0 => {}
                    result => return result,
                }
            }
        }
    }

    impl Transport for Portions {
        fn write(&mut self, slices: &[IoSlice<'_>], _more: bool) -> io::Result<usize> {
            self.block()?;
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            let taken = all.len().min(self.portion);
            self.sent.extend_from_slice(&all[..taken]);
            Ok(taken)
        }

        fn send_file(
            &mut self,
            file: BorrowedFd<'_>,
            position: u64,
            size: usize,
        ) -> io::Result<usize> {
            match self.files {
                Files::Sent => self.block()?,
                Files::Unsupported => return Err(io::ErrorKind::Unsupported.into()),
                Files::Failing => return Err(rustix::io::Errno::IO.into()),
            }
            let mut bytes = vec![0; size.min(self.portion)];
            let file = std::fs::File::from(file.try_clone_to_owned()?);
            let read = file.read_at(&mut bytes, position)?;
            self.sent.extend_from_slice(&bytes[..read]);
            Ok(read)
        }
    }

    /// A log on the real disk with a megabyte of records, and a slice of it.
    fn sliced(dir: &std::path::Path) -> (Log, RecordsSlice, Vec<u8>) {
        let (log, _) = Log::open(LogOptions {
            dir: dir.join("t-0"),
            config: Arc::new(LogConfig::default()),
            disk: Arc::new(RealDisk),
            clock: Arc::new(ManualClock::new(0)),
            checkpointed: Checkpointed::default(),
            on_damage: OnDamage::Keep,
            clean: true,
            topic_id: None,
            producer_id_expiration_ms: 1,
            read_only: false,
            jitter_seed: 0,
            buffers: Arc::new(BufferPool::default()),
        })
        .unwrap();
        let options = AppendOptions { leader_epoch: 0, origin: AppendOrigin::Client };
        for index in 0..20_u8 {
            let mut builder = BatchBuilder::new(BatchOptions::default());
            builder.append(0, None, Some(&vec![index; 50_000]), &[]).unwrap();
            let mut bytes = Vec::new();
            builder.build(&mut bytes).unwrap();
            log.append_as_leader(&mut bytes, options).unwrap();
        }
        let FetchedRecords::Slice(slice) = log.fetch(3, 800_000, 20, true).unwrap().records else {
            panic!("not a slice")
        };
        let expected = log.read(3, 800_000, 20, true).unwrap().bytes.to_vec();
        assert_eq!(slice.len(), expected.len());
        (log, slice, expected)
    }

    fn broker() -> (Broker, Arc<Partition>) {
        let broker = Broker::in_memory().with_topic(1, &[]);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        broker.events();
        (broker, partition)
    }

    fn with_slice(slice: &RecordsSlice, partition: &Arc<Partition>) -> Reply {
        let mut chunks = Chunks::new();
        chunks.put(b"before");
        chunks.put_room(slice.len()).unwrap();
        chunks.put(b"after");
        Reply::new(chunks, [StoredRecords { slice: slice.clone(), partition: partition.clone() }])
    }

    fn frame_of(index: i32, body: &[u8]) -> Vec<u8> {
        let mut bytes = (body.len() as i32 + 5).to_be_bytes().to_vec();
        bytes.extend_from_slice(&index.to_be_bytes());
        bytes.push(0);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn slices_arrive_in_their_place_whether_files_can_be_sent_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let (_log, slice, records) = sliced(dir.path());
        let (broker, partition) = broker();
        let body = [&b"before"[..], &records, b"after"].concat();
        for (portion, files) in [
            (100_000, Files::Sent),
            (usize::MAX, Files::Sent),
            (70_000, Files::Unsupported),
            (usize::MAX, Files::Failing),
        ] {
            let mut output = Output::default();
            output.push(&header(0), with_slice(&slice, &partition));
            output.push(&header(1), with_slice(&slice, &partition));
            let mut transport = Portions::new(portion, files);
            transport.drain(&mut output).unwrap();
            assert!(transport.sent == [frame_of(0, &body), frame_of(1, &body)].concat());
            assert_eq!(output.size(), 0);
        }
        assert!(broker.events().is_empty());
    }

    #[test]
    fn truncated_log_ends_the_answer_with_an_error_and_nothing_else_in_its_place() {
        for files in [Files::Sent, Files::Unsupported] {
            let dir = tempfile::tempdir().unwrap();
            let (log, slice, records) = sliced(dir.path());
            let (broker, partition) = broker();
            let mut output = Output::default();
            output.push(&header(0), with_slice(&slice, &partition));
            let mut transport = Portions::new(100_000, files);
            while transport.sent.len() < 150_000 {
                assert!(
                    output.send(&mut transport, usize::MAX).is_err(),
                    "it blocks at every other call"
                );
            }
            log.truncate_to(2).unwrap();
            assert_eq!(transport.drain(&mut output).unwrap_err().kind(), io::ErrorKind::Other);
            let sent = &transport.sent[4 + 5 + b"before".len()..];
            assert!(records.starts_with(sent), "only what was promised was sent");
            assert!(broker.events().is_empty(), "the partition is as it should be");
        }
    }

    #[test]
    fn file_that_ends_early_ends_the_answer_and_takes_its_partition_offline() {
        for files in [Files::Sent, Files::Unsupported, Files::Failing] {
            let dir = tempfile::tempdir().unwrap();
            let (_log, slice, _) = sliced(dir.path());
            let (broker, partition) = broker();
            let path = dir.path().join("t-0/00000000000000000000.log");
            std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(500_000).unwrap();
            let mut output = Output::default();
            output.push(&header(0), with_slice(&slice, &partition));
            let error = Portions::new(70_000, files).drain(&mut output).unwrap_err();
            assert!(!is_of_peer(&error), "{error}");
            assert!(broker.events().iter().any(|event| matches!(
                event,
                Event::PartitionState { state: PartitionStateKind::Offline, reason, .. }
                    if reason.contains("cannot read")
            )));
        }
    }

    #[test]
    fn peer_that_goes_away_while_a_file_is_sent_is_no_fault_of_the_partition() {
        struct Gone;
        impl Transport for Gone {
            fn write(&mut self, slices: &[IoSlice<'_>], _more: bool) -> io::Result<usize> {
                Ok(slices.iter().map(|slice| slice.len()).sum())
            }
            fn send_file(&mut self, _: BorrowedFd<'_>, _: u64, _: usize) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let (_log, slice, _) = sliced(dir.path());
        let (broker, partition) = broker();
        let mut output = Output::default();
        output.push(&header(0), with_slice(&slice, &partition));
        assert!(is_of_peer(&output.send(&mut Gone, usize::MAX).unwrap_err()));
        assert!(broker.events().is_empty());
    }

    #[test]
    fn a_file_is_sent_in_parts_so_that_others_can_have_their_turn() {
        let dir = tempfile::tempdir().unwrap();
        let (_log, slice, _) = sliced(dir.path());
        let (_broker, partition) = broker();
        let mut output = Output::default();
        output.push(&header(0), with_slice(&slice, &partition));
        let mut transport = Portions::new(usize::MAX, Files::Sent);
        while output.size() > 0 {
            let before = output.size();
            if let Err(error) = output.send(&mut transport, 50_000) {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            }
            assert!(before - output.size() <= 50_000);
        }
    }

    proptest! {
        #[test]
        fn every_byte_is_written_once_and_in_order(
            bodies in proptest::collection::vec((0_usize..40, any::<bool>()), 1..40),
            portion in 700_usize..10_000,
        ) {
            let (mut output, mut expected) = (Output::default(), Vec::new());
            for (index, &(size, shared)) in bodies.iter().enumerate() {
                let body = vec![index as u8; if shared { size * 500 } else { size }];
                expected.extend_from_slice(&frame_of(index as i32, &body));
                let mut chunks = Chunks::new();
                chunks.put_shared(&body.into());
                output.push(&header(index as i32), chunks.into());
            }
            prop_assert_eq!(output.size(), expected.len());
            let mut transport = Portions::new(portion, Files::Sent);
            prop_assert!(transport.drain(&mut output).is_ok());
            prop_assert_eq!(transport.sent, expected);
            prop_assert_eq!(output.size(), 0);
        }
    }
}
