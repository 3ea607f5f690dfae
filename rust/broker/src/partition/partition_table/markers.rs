//! Transaction markers, which the control plane writes to many partitions at once.

use std::sync::Arc;

use bytes::BytesMut;
use pykafka_forks::Mutex;
use pykafka_log::{AppendOrigin, TransactionRule};
use pykafka_record::{BatchBuilder, BatchOptions, EndTransactionMarker, ProducerEpoch, ProducerId};

use super::PartitionTable;
use super::command::{BatchKind, code_of};
use crate::control_api::event::queue::EventQueue;
use crate::control_api::event::{Event, Token};
use crate::control_api::image::PartitionId;
use crate::partition::append::outcome::{AppendOutcome, AppendRefusal};
use crate::partition::append::queued::Append;
use crate::partition::waiters::{AckWaiter, Promise};

/// The end of a transaction in one partition.
#[derive(Debug, Clone, Copy)]
pub struct Marker {
    /// The partition to write to.
    pub partition: PartitionId,
    /// The producer whose transaction ends.
    pub producer_id: ProducerId,
    /// From transaction version 2 on the new epoch of the producer; before, the epoch of the
    /// transaction.
    pub producer_epoch: ProducerEpoch,
    /// Commit or abort, and the epoch of the coordinator.
    pub marker: EndTransactionMarker,
    /// Level of Kafka's feature `transaction.version`; it determines which epochs are stale.
    pub transaction_version: i16,
}

impl Marker {
    fn encoded(&self, now_ms: i64) -> Vec<u8> {
        let kind = BatchKind::Transactional(self.producer_id, self.producer_epoch);
        let options = BatchOptions { control: true, ..kind.options() };
        let (mut builder, mut batch) = (BatchBuilder::new(options), Vec::new());
        let (key, value) = (self.marker.key(), self.marker.value());
        builder
            .append(now_ms, Some(&key), Some(&value), &[])
            .and_then(|()| builder.build(&mut batch))
            .expect("a marker is small and uncompressed");
        batch
    }
}

impl PartitionTable {
    /// Appends a marker to each partition, after all earlier appends. `MarkersWritten` follows when
    /// the high watermark has passed each marker, or the marker was refused.
    pub fn write_markers(&self, token: Token, markers: &[Marker]) {
        let round = MarkerRound::new(self.host().events.clone(), token, markers.len());
        let now_ms = self.host().clock.now_ms();
        for (slot, marker) in markers.iter().enumerate() {
            let appended = self.partition(&marker.partition).map(|partition| {
                partition.append(Append {
                    batch: BytesMut::from(&marker.encoded(now_ms)[..]),
                    origin: AppendOrigin::Coordinator,
                    connection: 0,
                    transaction: TransactionRule::Marker(marker.transaction_version),
                    needs_isr: true,
                    leader_epoch: None,
                    promise: Promise::Committed,
                    waiter: round.clone(),
                    slot,
                })
            });
            match appended {
                Ok(None) => {}
                Ok(Some(outcome)) => round.acknowledged(slot, outcome),
                Err(error) => round.acknowledged(slot, Err(AppendRefusal::Partition(error))),
            }
        }
    }
}

/// Collects the outcomes of markers, and reports them after the last one.
struct MarkerRound {
    events: Arc<EventQueue>,
    token: Token,
    due: Mutex<DueMarkers>,
}

struct DueMarkers {
    error_codes: Vec<i16>,
    remaining: usize,
}

impl MarkerRound {
    fn new(events: Arc<EventQueue>, token: Token, count: usize) -> Arc<MarkerRound> {
        let due = DueMarkers { error_codes: vec![0; count], remaining: count };
        let round = Arc::new(MarkerRound { events, token, due: Mutex::new(due) });
        if count == 0 {
            round.tell(Vec::new());
        }
        round
    }

    fn tell(&self, error_codes: Vec<i16>) {
        self.events.push(Event::MarkersWritten { token: self.token, error_codes });
    }
}

impl AckWaiter for MarkerRound {
    fn acknowledged(&self, slot: usize, outcome: AppendOutcome) {
        let mut due = self.due.lock();
        due.error_codes[slot] = code_of(&outcome);
        due.remaining -= 1;
        if due.remaining == 0 {
            let error_codes = std::mem::take(&mut due.error_codes);
            drop(due);
            self.tell(error_codes);
        }
    }
}
