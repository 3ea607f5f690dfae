//! Appends, and the state of those that are queued.

use std::sync::Arc;

use bytes::BytesMut;
use pykafka_log::{AppendOrigin, TransactionRule, Validated};
use pykafka_record::LeaderEpoch;

use crate::partition::waiters::{AckWaiter, Promise};

/// A batch to append, and the waiter for its outcome.
pub struct Append {
    /// The batch; it is stamped in place with its offsets and leader epoch.
    pub batch: BytesMut,
    /// The kind of sender.
    pub origin: AppendOrigin,
    /// The connection of the client ([`crate::request::ConnectionInfo::id`]); 0 for other
    /// senders.
    pub connection: u64,
    /// The rule for a transactional batch.
    pub transaction: TransactionRule,
    /// True if the append fails with fewer in-sync replicas than `min.insync.replicas`.
    pub needs_isr: bool,
    /// The leader epoch to append in; `None` for the current one.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The condition for the acknowledgement.
    pub promise: Promise,
    /// Notified of the outcome, unless it is known at once.
    pub waiter: Arc<dyn AckWaiter>,
    /// Index of this append among those of the waiter; passed back to it.
    pub slot: usize,
}

/// A queued append; validated already if that was fast.
pub(in crate::partition) struct Queued {
    pub(super) append: Append,
    pub(super) validated: Option<Validated>,
    pub(super) is_quick: bool,
    /// True if it decompresses to more than may be decompressed concurrently with others.
    pub(super) is_large: bool,
    /// Time when it was queued, or when its write started.
    pub(in crate::partition) since_ns: u64,
}

impl Queued {
    /// An append of a follower: the leader has validated it.
    pub(in crate::partition) fn followed(append: Append) -> Queued {
        Queued { append, validated: None, is_quick: true, is_large: false, since_ns: 0 }
    }

    pub(in crate::partition) fn append(&self) -> &Append {
        &self.append
    }

    pub(in crate::partition) fn into_append(self) -> Append {
        self.append
    }

    /// True if only the disk can make it slow.
    pub(in crate::partition) fn is_quick(&self) -> bool {
        self.is_quick
    }

    pub(in crate::partition) fn is_large(&self) -> bool {
        self.is_large
    }

    pub(in crate::partition) fn is_of(&self, waiter: &Arc<dyn AckWaiter>) -> bool {
        Arc::ptr_eq(&self.append.waiter, waiter)
    }
}
