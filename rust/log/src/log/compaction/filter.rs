//! Decides which records of a batch are kept, from the batch and from facts about the log.
//!
//! A record is removed if a later one has the same key, if its transaction was aborted, if it has
//! no key, or if it is a tombstone whose delete horizon has passed. A marker is removed once the
//! log has no data of its transaction and its horizon has passed. Batches that end at or above the
//! end of the cleaning are kept unchanged.
//!
//! Some batches are kept without records: the last one of each producer, because the next batch
//! must follow its sequence, and the last one of a group of segments. Apache Kafka keeps the latter
//! only for a whole round. Because of it, segments adjoin after a compaction as before, and
//! recovery finds the same end for each.

use std::collections::HashMap;

use pykafka_record::{
    Batch, BatchHeader, BatchRewriter, BuildError, Limits, ProducerEpoch, ProducerId, Record,
    RecordError, Retention, upgrade, write_empty,
};

use super::keys::KeyMap;
use super::transactions::{Aborted, Control, OpenData};
use crate::config::LogConfig;
use crate::log::producer_state::ProducerEntry;

/// Facts about the log and the settings.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) keys: &'a KeyMap,
    pub(crate) aborted: &'a Aborted,
    pub(crate) last_batches: &'a LastBatches,
    pub(crate) config: &'a LogConfig,
    /// Everything below was cleaned before.
    pub(crate) first_dirty: i64,
    /// The keys of all records below are in `keys`.
    pub(crate) end: i64,
    pub(crate) now_ms: i64,
}

impl Rules<'_> {
    fn limits(&self) -> Limits {
        self.config.limits(Limits::default())
    }

    fn is_due(&self, batch: &BatchHeader<'_>) -> bool {
        batch.delete_horizon_ms().is_some_and(|horizon_ms| horizon_ms <= self.now_ms)
    }

    fn keeps(&self, record: &Record<'_>, keeps_tombstones: bool) -> bool {
        let Some(key) = record.key else { return false };
        !self.keys.has_later(self.keys.hash(key), record.offset)
            && (record.value.is_some() || keeps_tombstones)
    }

    fn retention(&self, batch: &BatchHeader<'_>, gets_horizon: bool) -> Retention {
        let horizon_ms = self.now_ms.saturating_add(self.config.delete_retention_ms);
        let level = batch.compression().ok().and_then(|codec| self.config.compression_level(codec));
        Retention { delete_horizon_ms: gets_horizon.then_some(horizon_ms), level }
    }
}

/// The last batch of each producer: the one with its last sequence, or the marker with its epoch.
#[derive(Debug, Default)]
pub(crate) struct LastBatches(HashMap<ProducerId, Last>);

#[derive(Debug, Clone, Copy)]
enum Last {
    Data { last_offset: i64 },
    Marker { epoch: ProducerEpoch },
}

impl LastBatches {
    pub(crate) fn of(producers: &[ProducerEntry]) -> LastBatches {
        let last = |producer: &ProducerEntry| match producer.batches().last() {
            Some(batch) => Last::Data { last_offset: batch.last_offset },
            None => Last::Marker { epoch: producer.producer_epoch },
        };
        LastBatches(producers.iter().map(|entry| (entry.producer_id, last(entry))).collect())
    }

    fn has(&self, batch: &BatchHeader<'_>) -> bool {
        match self.0.get(&batch.producer_id()) {
            Some(Last::Data { last_offset }) => {
                !batch.is_control() && batch.last_offset() == *last_offset
            }
            Some(Last::Marker { epoch }) => batch.is_control() && batch.producer_epoch() == *epoch,
            None => false,
        }
    }
}

/// How a batch passed the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Unchanged.
    Kept,
    /// Unchanged, and a marker whose transaction still has data in the log.
    KeptWithData,
    /// Written again.
    Changed,
    /// Removed.
    Gone,
}

/// Filters the batches of a log in order.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    open_data: OpenData,
    rewriter: BatchRewriter,
    /// For each record of the current batch: true if it is kept.
    kept: Vec<bool>,
    scratch: Vec<u8>,
    /// Offset of the last removed marker.
    pub(crate) last_marker_gone: Option<i64>,
    pub(crate) records_gone: u64,
    /// True once records were kept that should have been removed: a later tombstone may delete
    /// them.
    pub(crate) keeps_tombstones: bool,
}

/// The records that remain of a batch.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    count: i32,
    gone: i32,
    has_tombstone: bool,
}

impl Filter {
    /// Appends the remaining part of `batch` to `out`: at least an empty batch if it `must_stay`.
    pub(crate) fn pass(
        &mut self,
        rules: &Rules<'_>,
        batch: &Batch<'_>,
        must_stay: bool,
        out: &mut Vec<u8>,
    ) -> Fate {
        let must_stay = must_stay || (batch.has_producer_id() && rules.last_batches.has(batch));
        let start = out.len();
        let fate = if batch.is_control() {
            self.pass_control(rules, batch, must_stay, out)
        } else {
            self.pass_data(rules, batch, must_stay, out)
        };
        if matches!(fate, Fate::Kept | Fate::KeptWithData) {
            out.truncate(start);
            out.extend_from_slice(batch.bytes());
        }
        fate
    }

    fn pass_control(
        &mut self,
        rules: &Rules<'_>,
        batch: &Batch<'_>,
        must_stay: bool,
        out: &mut Vec<u8>,
    ) -> Fate {
        let control = Control::of(batch);
        let has_data = control == Control::Marker && self.open_data.pass_marker(batch);
        if batch.last_offset() >= rules.end || has_data {
            return Fate::KeptWithData;
        }
        match (control, batch.delete_horizon_ms()) {
            (Control::Marker, None) => {
                let retention = rules.retention(batch, true);
                self.keep_all(batch);
                self.write(batch, rules.limits(), retention, out).unwrap_or(Fate::Kept)
            }
            (Control::Marker, Some(horizon_ms)) if horizon_ms <= rules.now_ms && !must_stay => {
                self.last_marker_gone = Some(batch.last_offset());
                Fate::Gone
            }
            (Control::Empty, _) if !must_stay => Fate::Gone,
            _ => Fate::Kept,
        }
    }

    fn pass_data(
        &mut self,
        rules: &Rules<'_>,
        batch: &Batch<'_>,
        must_stay: bool,
        out: &mut Vec<u8>,
    ) -> Fate {
        self.open_data.pass_data(batch);
        if batch.last_offset() >= rules.end {
            return Fate::Kept;
        }
        if batch.is_legacy() {
            return self.pass_legacy(rules, batch, must_stay, out);
        }
        self.pass_records(rules, batch, must_stay, out)
    }

    /// Filters a batch of format 0 or 1. If one of its records is removed, or a tombstone gets its
    /// horizon, the remaining records are written in format 2.
    fn pass_legacy(
        &mut self,
        rules: &Rules<'_>,
        batch: &Batch<'_>,
        must_stay: bool,
        out: &mut Vec<u8>,
    ) -> Fate {
        let mut upgraded = Vec::new();
        let codec = batch.compression().unwrap_or_default();
        let result = upgrade(batch, codec, Limits::default(), &mut upgraded);
        match result.ok().and_then(|()| Batch::split(&upgraded).ok()) {
            Some((upgraded, _)) => self.pass_records(rules, &upgraded, must_stay, out),
            None => self.leave(),
        }
    }

    fn pass_records(
        &mut self,
        rules: &Rules<'_>,
        batch: &Batch<'_>,
        must_stay: bool,
        out: &mut Vec<u8>,
    ) -> Fate {
        if batch.records_count() == 0 {
            return if must_stay { Fate::Kept } else { Fate::Gone };
        }
        if rules.aborted.has(batch) {
            return self.empty(batch, batch.records_count(), must_stay, out);
        }
        let keeps_tombstones = self.keeps_tombstones || !rules.is_due(batch);
        // An unreadable batch has unknown keys, so none of its records is removed.
        let Ok(left) = self.judge(rules, batch, keeps_tombstones) else { return self.leave() };
        let gets_horizon = left.has_tombstone
            && batch.delete_horizon_ms().is_none()
            && batch.last_offset() >= rules.first_dirty;
        if left.count == 0 {
            return self.empty(batch, left.gone, must_stay, out);
        }
        if left.gone == 0 && !gets_horizon {
            return Fate::Kept;
        }
        let retention = rules.retention(batch, gets_horizon);
        // If a timestamp exceeds the range of a delta, or the codec fails, the batch is kept
        // unchanged.
        let Ok(fate) = self.write(batch, rules.limits(), retention, out) else {
            return self.leave();
        };
        self.note_gone(left.gone);
        fate
    }

    /// Removes all records of a batch.
    fn empty(
        &mut self,
        batch: &Batch<'_>,
        records_gone: i32,
        must_stay: bool,
        out: &mut Vec<u8>,
    ) -> Fate {
        self.note_gone(records_gone);
        if !must_stay {
            return Fate::Gone;
        }
        write_empty(batch, out);
        Fate::Changed
    }

    fn note_gone(&mut self, records: i32) {
        self.records_gone += u64::try_from(records).unwrap_or(0);
    }

    fn keep_all(&mut self, batch: &Batch<'_>) {
        self.kept.clear();
        self.kept.resize(usize::try_from(batch.records_count()).unwrap_or(0), true);
    }

    /// Keeps a batch unchanged although records of it should be removed.
    fn leave(&mut self) -> Fate {
        self.keeps_tombstones = true;
        Fate::Kept
    }

    fn judge(
        &mut self,
        rules: &Rules<'_>,
        batch: &Batch<'_>,
        keeps_tombstones: bool,
    ) -> Result<Left, RecordError> {
        self.kept.clear();
        let mut left = Left::default();
        for record in batch.records(&mut self.scratch, rules.limits())? {
            let record = record?;
            let is_kept = rules.keeps(&record, keeps_tombstones);
            left.count += i32::from(is_kept);
            left.gone += i32::from(!is_kept);
            left.has_tombstone |= is_kept && record.value.is_none();
            self.kept.push(is_kept);
        }
        Ok(left)
    }

    /// Writes a batch with the records that are kept.
    fn write(
        &mut self,
        batch: &Batch<'_>,
        limits: Limits,
        retention: Retention,
        out: &mut Vec<u8>,
    ) -> Result<Fate, BuildError> {
        let Filter { rewriter, scratch, kept, .. } = self;
        let records = batch.records(scratch, limits).map_err(|_| BuildError::Empty)?;
        rewriter.begin(batch, retention);
        for (record, _) in records.zip(kept).filter(|(_, is_kept)| **is_kept) {
            rewriter.append(batch, &record.map_err(|_| BuildError::Empty)?)?;
        }
        rewriter.finish(batch, retention, out)?;
        Ok(Fate::Changed)
    }
}
