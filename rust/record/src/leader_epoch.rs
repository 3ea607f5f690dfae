//! Leader epochs, which identify the leader that wrote a batch or that a request refers to.

use std::fmt;

/// A partition's leader epoch. It starts at 0 and increases with each change of leader.
///
/// "No epoch" is `None`, and −1 on the wire and in batches. As in Kafka, any other negative number
/// from a peer is an epoch older than all (`RequestUtils.getLeaderEpoch`): it is fenced, not
/// ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaderEpoch(i32);

impl LeaderEpoch {
    /// The first epoch.
    pub const ZERO: LeaderEpoch = LeaderEpoch(0);

    const NONE: i32 = -1;

    /// The epoch with this number.
    pub const fn new(epoch: i32) -> LeaderEpoch {
        LeaderEpoch(epoch)
    }

    /// Its number, for output.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The epoch in a field of a message, a batch or a file; `None` for −1.
    pub const fn from_wire(field: i32) -> Option<LeaderEpoch> {
        if field == Self::NONE { None } else { Some(LeaderEpoch(field)) }
    }

    /// The value of such a field for `epoch`; −1 for `None`.
    pub const fn to_wire(epoch: Option<LeaderEpoch>) -> i32 {
        match epoch {
            Some(LeaderEpoch(epoch)) => epoch,
            None => Self::NONE,
        }
    }
}

impl fmt::Display for LeaderEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_round_trips_and_only_minus_one_means_no_epoch() {
        for field in [i32::MIN, -2, -1, 0, 1, i32::MAX] {
            let epoch = LeaderEpoch::from_wire(field);
            assert_eq!(epoch.is_none(), field == -1, "{field}");
            assert_eq!(LeaderEpoch::to_wire(epoch), field);
        }
    }

    #[test]
    fn missing_epoch_is_older_than_any_epoch() {
        assert!(None < LeaderEpoch::from_wire(i32::MIN));
        assert!(LeaderEpoch::from_wire(-2) < Some(LeaderEpoch::ZERO));
    }
}
