//! Measures whether the disk is fast enough for connection threads to write to it.

use std::sync::atomic::{AtomicU32, Ordering};

/// A longer write is slow. A write of a megabyte takes a third of this.
const QUICK_NS_MAX: u64 = 2_000_000;
/// Number of consecutive fast writes that are required.
const QUICK_WRITES_MIN: u32 = 64;

/// Number of fast writes since the last slow one, up to [`QUICK_WRITES_MIN`].
#[derive(Debug, Default)]
pub struct DiskLatency {
    quick_writes: AtomicU32,
}

impl DiskLatency {
    /// Records a write that took `duration_ns`.
    pub(in crate::partition) fn wrote_for(&self, duration_ns: u64) {
        let quick_writes = self.quick_writes.load(Ordering::Relaxed);
        if duration_ns > QUICK_NS_MAX {
            self.quick_writes.store(0, Ordering::Relaxed);
        } else if quick_writes < QUICK_WRITES_MIN {
            // Fails if another write was slow or was counted in the meantime; that is fine.
            let _ = self.quick_writes.compare_exchange(
                quick_writes,
                quick_writes + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// True if the last writes were all fast.
    pub(in crate::partition) fn is_quick(&self) -> bool {
        self.quick_writes.load(Ordering::Relaxed) >= QUICK_WRITES_MIN
    }
}
