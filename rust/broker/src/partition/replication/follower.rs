//! The state of one follower that its leader derives from its fetches.

use crate::control_api::event::ReplicaStateKind;

/// A follower, from its leader's point of view. Its offsets are −1 until it fetches in this leader
/// epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    /// Node id.
    pub broker_id: i32,
    /// Its log end offset (exclusive); −1 before its first fetch in this epoch.
    pub log_end_offset: i64,
    /// Its log start offset, −1 if unknown.
    pub log_start_offset: i64,
    /// Time when it last had all records of the leader; 0 for "long ago".
    pub caught_up_ns: u64,
    /// Broker epoch of its fetches.
    pub broker_epoch: Option<i64>,
    /// The state that was last reported to Python.
    pub told: Standing,
    fetched_ns: u64,
    leader_log_end_at_fetch: i64,
}

/// The state of a follower, as its leader determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Caught up, lagging, or with a stale broker epoch.
    pub state: ReplicaStateKind,
    /// True if the ISR should change: the follower may join, or it is a member and lags.
    pub asks: bool,
}

/// The parameters of a follower's fetch that matter to the leader's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerFetch {
    /// The offset that it fetches from: its log end offset.
    pub fetch_offset: i64,
    /// First readable offset of the follower's log.
    pub log_start_offset: i64,
    /// Its broker epoch; −1 from a broker without KIP-903.
    pub broker_epoch: i64,
    /// Arrival time of the request.
    pub arrived_ns: u64,
}

impl Standing {
    /// The state according to the image, which needs no report.
    fn at_epoch_start(in_sync: bool) -> Standing {
        let state = if in_sync { ReplicaStateKind::CaughtUp } else { ReplicaStateKind::Lagging };
        Standing { state, asks: false }
    }

    /// True if this state must be reported to Python after `told`.
    pub fn is_news(self, told: Standing) -> bool {
        self.state != told.state || (self.asks && !told.asks)
    }
}

impl Follower {
    /// Creates a follower at the start of a leader epoch: for members of the ISR the lag starts
    /// now, others count as lagging (contract/replication.md#8).
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

    /// Records a fetch; returns false and changes nothing if it is from an older registration than
    /// an earlier fetch (contract/replication.md#27).
    pub fn fetched(&mut self, fetch: FollowerFetch, leader_log_end: i64) -> bool {
        if self
            .broker_epoch
            .is_some_and(|known| fetch.broker_epoch != -1 && fetch.broker_epoch < known)
        {
            return false;
        }
        // Caught up now, or with the log end that the leader had at the previous fetch: a follower
        // that constantly trails a busy leader by one fetch never lags
        // (contract/replication.md#28).
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

    /// True if it has fetched in this epoch.
    pub fn has_fetched(&self) -> bool {
        self.log_end_offset != -1
    }

    /// True if it has all records of the leader, or had them within `lag_ns_max`.
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
    fn follower_one_fetch_late_does_not_lag_at_a_busy_leader() {
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
