//! Responses from memory and from files, through a transport that accepts them in portions.

use super::*;
use proptest::prelude::*;
use pykafka_log::{
    AppendOptions, AppendOrigin, BufferPool, Checkpointed, FetchedRecords, Log, LogConfig,
    LogOptions, ManualClock, OnDamage, RealDisk, RecordsSlice,
};
use pykafka_record::{BatchBuilder, BatchOptions, LeaderEpoch};
use pykafka_wire::{ApiKey, Chunks, Sink};
use rustix::io::Errno;
use std::sync::Arc;

use crate::control_api::event::Event;
use crate::control_api::event::faults::LogFault;
use crate::network::transport::memory::{Files, MemoryTransport, Peer, connected};
use crate::partition::Partition;
use crate::testing::{Broker, TOPIC};

fn header(correlation_id: i32) -> Header {
    Header {
        api_key: ApiKey::METADATA,
        api_version: 9,
        correlation_id,
        client_id: Arc::from(""),
        bytes: 0,
        received_ns: 0,
        received_ms: 0,
    }
}

/// Sends all of `output`; the peer receives whenever the transport is full.
fn drain(output: &mut Output, transport: &MemoryTransport, peer: &Peer) -> io::Result<Vec<u8>> {
    let mut taken = Vec::new();
    loop {
        let sent = output.send(transport, 50_000);
        taken.extend(peer.take());
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(()) if output.size() > 0 => {}
            Ok(()) => return Ok(taken),
            Err(error) => return Err(error),
        }
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
        identity: None,
        producer_id_expiration_ms: 1,
        read_only: false,
        jitter_seed: 0,
        buffers: Arc::new(BufferPool::default()),
    })
    .unwrap();
    let options = AppendOptions::new(LeaderEpoch::ZERO, AppendOrigin::Client);
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
    Reply::new(chunks, [StoredRecords { slice: slice.clone(), failures: partition.clone() }])
}

fn frame_of(index: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as i32 + 5).to_be_bytes().to_vec();
    bytes.extend_from_slice(&index.to_be_bytes());
    bytes.push(0);
    bytes.extend_from_slice(body);
    bytes
}

#[test]
fn slices_arrive_in_position_whether_files_can_be_sent_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let (_log, slice, records) = sliced(dir.path());
    let (broker, partition) = broker();
    let body = [&b"before"[..], &records, b"after"].concat();
    for (portion, files) in [
        (100_000, Files::Sent),
        (usize::MAX, Files::Sent),
        (70_000, Files::Unsupported),
        (usize::MAX, Files::Failing(Errno::IO)),
    ] {
        let mut output = Output::default();
        output.push(&header(0), with_slice(&slice, &partition));
        output.push(&header(1), with_slice(&slice, &partition));
        let (transport, peer) = connected(portion, files);
        let taken = drain(&mut output, &transport, &peer).unwrap();
        assert!(taken == [frame_of(0, &body), frame_of(1, &body)].concat());
        assert_eq!(output.size(), 0);
    }
    assert!(broker.events().is_empty());
}

#[test]
fn truncated_log_ends_the_reply_with_an_error_and_no_other_bytes() {
    for files in [Files::Sent, Files::Unsupported] {
        let dir = tempfile::tempdir().unwrap();
        let (log, slice, records) = sliced(dir.path());
        let (broker, partition) = broker();
        let mut output = Output::default();
        output.push(&header(0), with_slice(&slice, &partition));
        let (transport, peer) = connected(150_000, files);
        assert!(output.send(&transport, usize::MAX).is_err(), "it does not fit");
        let mut taken = peer.take();
        log.truncate_to(2).unwrap();
        let error = drain(&mut output, &transport, &peer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Other);
        taken.extend(peer.take());
        let sent = &taken[4 + 5 + b"before".len()..];
        assert!(records.starts_with(sent), "only what was promised was sent");
        assert!(broker.events().is_empty(), "the partition is as it should be");
    }
}

#[test]
fn file_that_ends_early_ends_the_reply_and_takes_its_partition_offline() {
    for files in [Files::Sent, Files::Unsupported, Files::Failing(Errno::IO)] {
        let dir = tempfile::tempdir().unwrap();
        let (_log, slice, _) = sliced(dir.path());
        let (broker, partition) = broker();
        let path = dir.path().join("t-0/00000000000000000000.log");
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(500_000).unwrap();
        let mut output = Output::default();
        output.push(&header(0), with_slice(&slice, &partition));
        let (transport, peer) = connected(70_000, files);
        let error = drain(&mut output, &transport, &peer).unwrap_err();
        assert!(!is_of_peer(&error), "{error}");
        assert!(broker.events().iter().any(|event| matches!(
            event,
            Event::PartitionState { faults, .. }
                if faults.iter().any(|(fault, reason)| {
                    fault == LogFault::Offline && reason.contains("cannot read")
                })
        )));
    }
}

#[test]
fn peer_that_disconnects_while_a_file_is_sent_is_not_a_fault_of_the_partition() {
    let dir = tempfile::tempdir().unwrap();
    let (_log, slice, _) = sliced(dir.path());
    let (broker, partition) = broker();
    let mut output = Output::default();
    output.push(&header(0), with_slice(&slice, &partition));
    let (transport, _peer) = connected(usize::MAX, Files::Failing(Errno::PIPE));
    assert!(is_of_peer(&output.send(&transport, usize::MAX).unwrap_err()));
    assert!(broker.events().is_empty());
}

#[test]
fn a_file_is_sent_in_parts_so_that_other_connections_get_turns() {
    let dir = tempfile::tempdir().unwrap();
    let (_log, slice, _) = sliced(dir.path());
    let (_broker, partition) = broker();
    let mut output = Output::default();
    output.push(&header(0), with_slice(&slice, &partition));
    let (transport, _peer) = connected(usize::MAX, Files::Sent);
    while output.size() > 0 {
        let before = output.size();
        output.send(&transport, 50_000).unwrap();
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
        let (transport, peer) = connected(portion, Files::Sent);
        prop_assert_eq!(drain(&mut output, &transport, &peer).unwrap(), expected);
        prop_assert_eq!(output.size(), 0);
    }
}
