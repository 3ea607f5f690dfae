//! What a leader knows of one follower, from that follower's fetches.

use crate::seam::event::ReplicaStateKind;

/// A follower's replica as its leader sees it. Nothing is known (−1) until it fetches in this leader epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    /// Node id.
    pub broker_id: i32,
    /// Exclusive end of what it has, −1 before its first fetch in this epoch.
    pub log_end_offset: i64,
    /// Its log start offset, −1 if unknown.
    pub log_start_offset: i64,
    /// When it last had everything the leader had; 0 for "long ago".
    pub caught_up_ns: u64,
    /// Registration under which it fetches.
    pub broker_epoch: Option<i64>,
    /// What Python was told of it last.
    pub told: Standing,
    fetched_ns: u64,
    leader_log_end_at_fetch: i64,
}

/// How a follower stands in the eyes of its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// What it is.
    pub state: ReplicaStateKind,
    /// Whether the ISR should change for it: it may join, or it lags and is a member.
    pub asks: bool,
}

/// A fetch by a follower, as far as bookkeeping goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerFetch {
    /// Where it fetches from: the end of what it has.
    pub fetch_offset: i64,
    /// Its log start offset.
    pub log_start_offset: i64,
    /// Its registration's epoch; −1 from before KIP-903.
    pub broker_epoch: i64,
    /// When the request arrived.
    pub arrived_ns: u64,
}

impl Standing {
    /// What the image says of it, so nobody needs to be told.
    fn at_epoch_start(in_sync: bool) -> Standing {
        let state = if in_sync { ReplicaStateKind::CaughtUp } else { ReplicaStateKind::Lagging };
        Standing { state, asks: false }
    }

    /// Whether Python has to be told of this one, after `told`.
    pub fn is_news(self, told: Standing) -> bool {
        self.state != told.state || (self.asks && !told.asks)
    }
}

impl Follower {
    /// A follower at the start of a leader epoch: members of the ISR get a fresh lag clock, others none
    /// (contract/replication.md#8).
    pub fn at_epoch_start(broker_id: i32, in_sync: bool, now_ns: u64) -> Follower {
        Follower {
            broker_id,
            log_end_offset: -1,
            log_start_offset: -1,
            caught_up_ns: if in_sync { now_ns } else { 0 },
            broker_epoch: None,
            told: Standing::at_epoch_start(in_sync),
            fetched_ns: 0,
            leader_log_end_at_fetch: 0,
        }
    }

    /// Notes a fetch; `false` and unchanged if it comes from an older registration than one already seen
    /// (contract/replication.md#27).
    pub fn fetched(&mut self, fetch: FollowerFetch, leader_log_end: i64) -> bool {
        if self
            .broker_epoch
            .is_some_and(|known| fetch.broker_epoch != -1 && fetch.broker_epoch < known)
        {
            return false;
        }
        // Caught up now, or caught up with the end that the leader had at the fetch before this one: a follower that
        // steadily trails a busy leader by one fetch never lags (contract/replication.md#28).
        if fetch.fetch_offset >= leader_log_end {
            self.caught_up_ns = self.caught_up_ns.max(fetch.arrived_ns);
        } else if fetch.fetch_offset >= self.leader_log_end_at_fetch {
            self.caught_up_ns = self.caught_up_ns.max(self.fetched_ns);
        }
        self.log_end_offset = fetch.fetch_offset;
        self.log_start_offset = fetch.log_start_offset;
        self.fetched_ns = fetch.arrived_ns;
        self.leader_log_end_at_fetch = leader_log_end;
        if fetch.broker_epoch != -1 {
            self.broker_epoch = Some(fetch.broker_epoch);
        }
        true
    }

    /// Whether it has fetched in this epoch.
    pub fn has_fetched(&self) -> bool {
        self.log_end_offset != -1
    }

    /// Whether it has all the leader has, or had it within `lag_ns_max`.
    pub fn is_caught_up(&self, leader_log_end: i64, now_ns: u64, lag_ns_max: u64) -> bool {
        self.log_end_offset == leader_log_end
            || (self.caught_up_ns != 0 && now_ns.saturating_sub(self.caught_up_ns) <= lag_ns_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(fetch_offset: i64, arrived_ns: u64) -> FollowerFetch {
        FollowerFetch { fetch_offset, log_start_offset: 0, broker_epoch: 4, arrived_ns }
    }

    #[test]
    fn follower_one_fetch_behind_a_busy_leader_does_not_lag() {
        let mut follower = Follower::at_epoch_start(2, false, 1);
        assert!(follower.fetched(fetch(0, 10), 5));
        assert!(follower.fetched(fetch(5, 20), 9));
        assert_eq!(follower.caught_up_ns, 10);
        assert!(follower.fetched(fetch(9, 30), 9));
        assert_eq!(follower.caught_up_ns, 30);
    }

    #[test]
    fn fetch_of_an_older_registration_changes_nothing() {
        let mut follower = Follower::at_epoch_start(2, true, 1);
        assert!(follower.fetched(fetch(3, 10), 5));
        let before = follower.clone();
        assert!(!follower.fetched(FollowerFetch { broker_epoch: 3, ..fetch(5, 20) }, 5));
        assert_eq!(follower, before);
    }

    #[test]
    fn equal_log_end_never_lags() {
        let mut follower = Follower::at_epoch_start(2, true, 1);
        assert!(follower.fetched(fetch(5, 10), 5));
        assert!(follower.is_caught_up(5, u64::MAX, 1));
        assert!(!follower.is_caught_up(6, u64::MAX, 1));
    }
}
