//! The names of topics whose partitions are being removed. `P` is a partition.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use pykafka_forks::Mutex;

use crate::control_api::cow_collections::Pages;
use crate::control_api::image::TopicId;

/// The partitions that are being removed, and those that wait for their names.
pub(crate) struct PendingDeletions<P>(pub(super) Mutex<HashMap<Arc<str>, Successors<P>>>);

impl<P> Default for PendingDeletions<P> {
    fn default() -> Self {
        PendingDeletions(Mutex::default())
    }
}

/// Partitions of a topic that are being removed; at least one of them is not removed yet.
pub(super) type Gone<P> = (TopicId, Pages<Arc<P>>);

/// Topics with the same name.
pub(super) struct Successors<P> {
    /// Partitions that are not removed yet, by topic.
    pub(super) leaving: Vec<Gone<P>>,
    /// Partitions that wait for their predecessors, by index.
    pub(super) waiting: HashMap<i32, VecDeque<Arc<P>>>,
}

impl<P> Default for Successors<P> {
    fn default() -> Self {
        Successors { leaving: Vec::new(), waiting: HashMap::new() }
    }
}
