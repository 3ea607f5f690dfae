//! The fetching side of a fetch session (KIP-227): a request names only changed partitions.

use std::collections::HashMap;

use pykafka_record::LeaderEpoch;

use crate::control_api::image::PartitionId;
use crate::partition::follower::log::Position;

const NONE: i32 = 0;
const EPOCH_INITIAL: i32 = 0;

/// The parameters of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) leader_epoch: LeaderEpoch,
    /// The position of its log; it is fetched from the log end offset.
    pub(super) position: Position,
    /// True if only one batch is requested.
    pub(super) is_one_batch: bool,
}

/// The contents of the next request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) session_id: i32,
    pub(super) session_epoch: i32,
    /// New or changed partitions; all partitions in a full request.
    pub(super) wanted: Vec<(PartitionId, Spec)>,
    /// Removed partitions.
    pub(super) forgotten: Vec<PartitionId>,
}

/// A fetch session as a value; it sends nothing.
#[derive(Debug, Default)]
pub(super) struct Session {
    id: i32,
    epoch: i32,
    /// The partitions and parameters that were sent to the leader.
    told: HashMap<PartitionId, Spec>,
}

impl Session {
    /// Returns the request for changed and removed partitions; all others stay as before. `None` if
    /// no partition is left to fetch. Assumes that the peer receives the request, until
    /// [`Session::lost`].
    pub(super) fn ask(
        &mut self,
        changes: impl IntoIterator<Item = (PartitionId, Option<Spec>)>,
    ) -> Option<Ask> {
        let (mut wanted, mut forgotten) = (Vec::new(), Vec::new());
        for (id, change) in changes {
            match change {
                Some(spec) if self.told.insert(id, spec) != Some(spec) => wanted.push((id, spec)),
                None if self.told.remove(&id).is_some() => forgotten.push(id),
                // The peer has this state already.
                Some(_) | None => {}
            }
        }
        if self.told.is_empty() {
            // The next request is a full one, because the peer does not learn of the removed
            // partitions.
            self.lost();
            return None;
        }
        if self.epoch == EPOCH_INITIAL {
            wanted = self.told.iter().map(|(id, spec)| (*id, *spec)).collect();
            forgotten.clear();
        }
        Some(Ask { session_id: self.id, session_epoch: self.epoch, wanted, forgotten })
    }

    /// The parameters of a partition in the last request that had it.
    pub(super) fn told(&self, id: &PartitionId) -> Option<&Spec> {
        self.told.get(id)
    }

    /// Number of partitions in the session.
    pub(super) fn told_count(&self) -> usize {
        self.told.len()
    }

    /// Records the session id of a response. Without a session, every request is a full one.
    pub(super) fn responded(&mut self, session_id: i32) {
        self.id = session_id;
        self.epoch = match (session_id, self.epoch) {
            (NONE, _) => EPOCH_INITIAL,
            // It wraps to 1, because 0 requests a new session.
            (_, i32::MAX) => 1,
            (_, epoch) => epoch + 1,
        };
    }

    /// The peer may not have received the last request, or does not have the session: the next
    /// request is a full one, which ends a session that still exists.
    pub(super) fn lost(&mut self) {
        self.epoch = EPOCH_INITIAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(log_end_offset: i64) -> Spec {
        Spec {
            leader_epoch: LeaderEpoch::ZERO,
            position: Position { log_start_offset: 0, log_end_offset, latest_epoch: None },
            is_one_batch: false,
        }
    }

    fn id(index: i32) -> PartitionId {
        ([1; 16], index)
    }

    fn at(index: i32, offset: i64) -> (PartitionId, Option<Spec>) {
        (id(index), Some(spec(offset)))
    }

    #[test]
    fn a_request_contains_changed_partitions_and_forgets_removed_ones() {
        let mut session = Session::default();
        let full = session.ask([at(0, 0), at(1, 0)]).unwrap();
        assert_eq!((full.session_id, full.session_epoch, full.wanted.len()), (0, 0, 2));
        session.responded(7);
        let next = session.ask([at(0, 5), (id(1), None), at(2, 0), (id(3), None)]).unwrap();
        assert_eq!((next.session_id, next.session_epoch), (7, 1));
        assert_eq!(next.wanted, [(id(0), spec(5)), (id(2), spec(0))]);
        assert_eq!(next.forgotten, [id(1)]);
        session.responded(7);
        let idle = session.ask([at(0, 5)]).unwrap();
        assert_eq!((idle.session_epoch, idle.wanted, idle.forgotten), (2, vec![], vec![]));
    }

    #[test]
    fn a_lost_session_is_ended_by_a_full_request() {
        let mut session = Session::default();
        session.ask([at(0, 0), at(1, 0)]);
        session.responded(7);
        session.lost();
        let full = session.ask([(id(1), None)]).unwrap();
        let wanted = vec![(id(0), spec(0))];
        assert_eq!(full, Ask { session_id: 7, session_epoch: 0, wanted, forgotten: vec![] });
    }

    #[test]
    fn a_session_whose_partitions_were_all_forgotten_starts_again() {
        let mut session = Session::default();
        session.ask([at(0, 0)]);
        session.responded(7);
        assert_eq!(session.ask([(id(0), None)]), None);
        let full = session.ask([at(1, 0)]).unwrap();
        assert_eq!((full.session_id, full.session_epoch), (7, 0));
    }

    #[test]
    fn without_a_session_every_request_is_full() {
        let mut session = Session::default();
        for _ in 0..2 {
            let full = session.ask([at(0, 0)]).unwrap();
            assert_eq!((full.session_id, full.session_epoch, full.wanted.len()), (0, 0, 1));
            session.responded(0);
        }
    }

    #[test]
    fn epochs_wrap_to_one() {
        let mut session = Session { id: 7, epoch: i32::MAX, told: HashMap::new() };
        session.responded(7);
        assert_eq!(session.epoch, 1);
    }
}
