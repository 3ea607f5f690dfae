//! How quick the disk is: whether a thread that serves connections may write to it.

use std::sync::atomic::{AtomicU32, Ordering};

/// A write that takes longer is slow. One of a megabyte takes a third of it.
const QUICK_NS_MAX: u64 = 2_000_000;
/// Writes in a row that must have been quick.
const QUICK_WRITES_MIN: u32 = 64;

/// The writes since the last slow one, as far as they matter.
#[derive(Debug, Default)]
pub struct Pace {
    quick_writes: AtomicU32,
}

impl Pace {
    /// Takes note of a write that took `duration_ns`.
    pub(in crate::partition) fn wrote_for(&self, duration_ns: u64) {
        let quick_writes = self.quick_writes.load(Ordering::Relaxed);
        if duration_ns > QUICK_NS_MAX {
            self.quick_writes.store(0, Ordering::Relaxed);
        } else if quick_writes < QUICK_WRITES_MIN {
            // Fails where another write was slow meanwhile, or was counted.
            let _ = self.quick_writes.compare_exchange(
                quick_writes,
                quick_writes + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// Whether the last writes were all quick.
    pub(in crate::partition) fn is_quick(&self) -> bool {
        self.quick_writes.load(Ordering::Relaxed) >= QUICK_WRITES_MIN
    }
}
