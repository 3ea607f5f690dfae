//! Callbacks of whoever waits: a panic in one ends that one alone, not those behind it or what their caller has to do yet.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `callback`. A panic in it was reported by its thread, and goes no further: what it had hold of is dropped.
pub(in crate::partition) fn contained(callback: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(callback));
}
