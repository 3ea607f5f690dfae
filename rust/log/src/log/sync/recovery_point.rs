//! The offset up to which a log is durable.

/// Everything below is durable, if the disk honours syncs.
///
/// Only a finished sync round raises it, and only if it was not lowered since the round started:
/// the bytes that replaced truncated ones may not have been synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecoveryPoint {
    offset: i64,
    /// How often it was lowered or set.
    changes: u64,
}

impl RecoveryPoint {
    /// The recovery point of a log that is being opened.
    pub(crate) fn found(offset: i64) -> RecoveryPoint {
        RecoveryPoint { offset, changes: 0 }
    }

    pub(crate) fn offset(self) -> i64 {
        self.offset
    }

    /// Lowers it to `offset` because records from there on are removed. A running round cannot
    /// raise it again.
    pub(crate) fn lower_to(&mut self, offset: i64) {
        self.offset = self.offset.min(offset);
        self.changes += 1;
    }

    /// Sets it for a log that was emptied and continues at `offset`: there is nothing to sync.
    pub(crate) fn restart_at(&mut self, offset: i64) {
        self.offset = offset;
        self.changes += 1;
    }

    /// Raises it to `upto`, after a round that started with `begun` has synced everything below.
    pub(super) fn raise(&mut self, begun: RecoveryPoint, upto: i64) {
        if self.changes == begun.changes {
            self.offset = self.offset.max(upto);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_began_before_a_truncation_raises_nothing() {
        let mut point = RecoveryPoint::found(3);
        let begun = point;
        point.lower_to(7);
        point.raise(begun, 10);
        assert_eq!(point.offset(), 3);
        point.raise(point, 9);
        point.lower_to(5);
        assert_eq!(point.offset(), 5);
    }
}
