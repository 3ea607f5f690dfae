//! The threads that wait for disks, the limits of their waits, and the containment of panics in
//! callbacks.
//!
//! This module does not depend on the log of a partition: work is passed to it as closures.

pub(crate) mod background;
pub(in crate::partition) mod catch_panic;
pub(crate) mod disk_latency;
pub(crate) mod may_wait;
pub(crate) mod pool;
