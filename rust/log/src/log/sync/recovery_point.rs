//! Up to where a log is durable.

/// Everything below is durable, as far as the disk tells the truth.
///
/// Only a finished sync round raises it, and only if it was not lowered since the round began: bytes that replaced
/// truncated ones may not be what was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecoveryPoint {
    offset: i64,
    /// How often it was lowered or set.
    changes: u64,
}

impl RecoveryPoint {
    /// Of a log that is being opened, whose files tell it.
    pub(crate) fn found(offset: i64) -> RecoveryPoint {
        RecoveryPoint { offset, changes: 0 }
    }

    pub(crate) fn offset(self) -> i64 {
        self.offset
    }

    /// Gives up what lies at and behind `offset`, whether it was durable or a round is about to make it so.
    pub(crate) fn lower_to(&mut self, offset: i64) {
        self.offset = self.offset.min(offset);
        self.changes += 1;
    }

    /// Of a log that was emptied and goes on at `offset`: there is nothing to sync.
    pub(crate) fn restart_at(&mut self, offset: i64) {
        self.offset = offset;
        self.changes += 1;
    }

    /// Takes over that everything below `upto` was synced by a round that saw `begun`.
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
