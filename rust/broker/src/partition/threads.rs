//! Which threads wait for disks, how long they may, and what a panic in somebody's callback costs there.
//!
//! Nothing here knows what a partition's log is: whoever has work brings it as a closure.

pub(in crate::partition) mod contained;
pub(crate) mod lane;
pub(crate) mod pace;
pub(crate) mod pool;
