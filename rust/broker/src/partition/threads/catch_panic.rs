//! Callbacks of waiters: a panic in one ends only that one, not the callbacks after it or the work
//! of their caller.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `callback`. A panic was reported by its thread and is not propagated; captured values are
/// dropped.
pub(in crate::partition) fn contained(callback: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(callback));
}
