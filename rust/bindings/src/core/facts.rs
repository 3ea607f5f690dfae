//! Results of `Core` about partitions.

use pykafka_broker::PartitionOffsets;
use pykafka_log::ProducerEntry;
use pyo3::prelude::*;

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LogOffsets>()?;
    module.add_class::<ProducerState>()
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
pub(super) struct LogOffsets {
    log_start_offset: i64,
    high_watermark: i64,
    last_stable_offset: i64,
    log_end_offset: i64,
    leader_epoch: i32,
}

impl From<PartitionOffsets> for LogOffsets {
    fn from(offsets: PartitionOffsets) -> LogOffsets {
        LogOffsets {
            log_start_offset: offsets.log_start_offset,
            high_watermark: offsets.high_watermark,
            last_stable_offset: offsets.last_stable_offset,
            log_end_offset: offsets.log_end_offset,
            leader_epoch: offsets.leader_epoch.get(),
        }
    }
}

#[pyclass(frozen, get_all, module = "pykafka_core._core")]
pub(super) struct ProducerState {
    producer_id: i64,
    producer_epoch: i16,
    last_sequence: i32,
    last_timestamp_ms: i64,
    coordinator_epoch: i32,
    current_txn_start_offset: i64,
}

impl From<&ProducerEntry> for ProducerState {
    fn from(entry: &ProducerEntry) -> ProducerState {
        ProducerState {
            producer_id: entry.producer_id.get(),
            producer_epoch: entry.producer_epoch.get(),
            last_sequence: entry.last_sequence(),
            last_timestamp_ms: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            current_txn_start_offset: entry.current_txn_first_offset.unwrap_or(-1),
        }
    }
}
