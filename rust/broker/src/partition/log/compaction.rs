//! Whether the log of a partition must be compacted, and the result of a compaction.

use std::sync::Arc;

use pykafka_log::{CompactionReport, Dirtiness, Log, StorageError};

use crate::control_api::event::faults::LogFault;
use crate::control_api::log_ring::Level;
use crate::partition::threads::may_wait::MayWait;
use crate::partition::{Host, Partition, TARGET};

impl Partition {
    /// Returns the opened log if it is due.
    pub(crate) fn log_if_due(&self, host: &Host, may_wait: &MayWait) -> Option<Arc<Log>> {
        // A failed open was reported, and the next round retries.
        let log = self.log(may_wait).ok()?;
        self.dirty_ratio_if_due(host, may_wait).map(|_| log)
    }

    /// The share of dirty bytes, if the log is due.
    pub(crate) fn dirty_ratio_if_due(&self, host: &Host, may_wait: &MayWait) -> Option<f64> {
        let config = {
            let guard = self.lock();
            if !guard.config.cleanup_policy.compact || guard.faults.has(LogFault::Uncleanable) {
                return None;
            }
            guard.config.clone()
        };
        let now_ms = host.clock.now_ms();
        let dirtiness = self.dirtiness(host, now_ms, may_wait)?;
        dirtiness.is_due(&config, now_ms).then(|| dirtiness.ratio())
    }

    /// Opens a closed log only if its directory does not contain the result.
    fn dirtiness(&self, host: &Host, now_ms: i64, may_wait: &MayWait) -> Option<Dirtiness> {
        if let Some(dirtiness) = self.dirtiness_on_disk(may_wait) {
            return Some(dirtiness);
        }
        let log = self.log(may_wait).ok()?;
        if log.is_read_only() {
            return None;
        }
        let dirtiness = host.directory.dirtiness(&log, self.high_watermark(), now_ms);
        dirtiness.map_err(|error| self.report_compaction(host, &log, Err(error))).ok()
    }

    /// A log that cannot be compacted is not tried again before the next start, as in Kafka, unless
    /// segments are deleted.
    pub(crate) fn report_compaction(
        &self,
        host: &Host,
        log: &Log,
        result: Result<CompactionReport, StorageError>,
    ) {
        let (topic, index) = (&self.topic, self.index);
        match result {
            Ok(report) => host
                .log_ring
                .log(Level::Debug, TARGET, || format!("{topic}-{index}: compacted {report:?}")),
            Err(StorageError::Closed) => {}
            Err(error) => {
                if log.write_error().is_some() {
                    self.note_storage_error(&error);
                } else if !error.is_refusal() {
                    let reason = error.to_string();
                    self.lock().change_faults(|faults| faults.begin(LogFault::Uncleanable, reason));
                }
                host.log_ring.log(Level::Warning, TARGET, || {
                    format!("{topic}-{index}: cannot be compacted: {error}")
                });
            }
        }
    }
}
