//! The in-sync replicas of a partition; the committed and the proposed ISR have different types.
//!
//! A proposal (`AlterPartition` in flight) does not replace the committed ISR: until the controller
//! responds, the high watermark depends on the *maximal* ISR, the union of the committed and the
//! proposed members, so a proposed removal still counts (contract/replication.md#1). So nothing is
//! acknowledged too early, whatever the response is.

/// Broker ids that the controller has committed as in sync; always includes the leader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommittedIsr(pub Vec<i32>);

/// One broker of a proposal, with the broker epoch of its fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerState {
    /// Node id.
    pub broker_id: i32,
    /// The broker epoch; −1 if unknown (the leader's own may be).
    pub broker_epoch: i64,
}

/// Identifies a proposal, so that a late response is matched with it.
pub type ProposalId = u64;

/// An ISR that was sent to the controller, and the committed ISR that it would replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingIsr {
    /// The id of this proposal.
    pub proposal: ProposalId,
    /// The proposed members.
    pub sent: Vec<BrokerState>,
    /// The ISR that is valid until the response.
    pub committed: CommittedIsr,
}

/// The controller's response to a proposal, as far as Python knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IsrOutcome {
    /// Accepted: this ISR is committed, in the leader epoch of the proposal. A later image repeats
    /// it.
    Committed {
        /// The in-sync replicas; the controller decides them.
        isr: Vec<i32>,
        /// The partition epoch that the next proposal needs.
        partition_epoch: i32,
    },
    /// Refused (for example `INELIGIBLE_REPLICA`): the committed ISR stays.
    Rejected,
    /// Unknown: the proposal stays pending until it is settled after all, or until the next image
    /// with an ISR (contract/replication.md#32).
    Unknown,
}

/// The committed ISR, with at most one proposal in flight (contract/replication.md#29).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IsrState {
    /// No proposal in flight.
    Committed(CommittedIsr),
    /// One proposal in flight.
    Pending(PendingIsr),
}

impl IsrState {
    /// The committed ISR, whether or not a proposal is in flight.
    pub fn committed(&self) -> &CommittedIsr {
        match self {
            IsrState::Committed(committed) => committed,
            IsrState::Pending(pending) => &pending.committed,
        }
    }

    /// True if `broker` is in the maximal ISR: committed or proposed.
    pub fn maximal_contains(&self, broker: i32) -> bool {
        self.committed().0.contains(&broker)
            || matches!(self, IsrState::Pending(pending)
                if pending.sent.iter().any(|state| state.broker_id == broker))
    }

    /// Number of members that `min.insync.replicas` counts: those in both the committed and the
    /// proposed ISR, so that a proposed removal already stops acks=all writes.
    pub fn effective_count(&self) -> usize {
        match self {
            IsrState::Committed(committed) => committed.0.len(),
            IsrState::Pending(pending) => {
                let proposed = |broker: &&i32| pending.sent.iter().any(|s| s.broker_id == **broker);
                pending.committed.0.iter().filter(proposed).count()
            }
        }
    }

    /// The proposal in flight.
    pub fn proposal(&self) -> Option<ProposalId> {
        match self {
            IsrState::Committed(_) => None,
            IsrState::Pending(pending) => Some(pending.proposal),
        }
    }

    /// Makes `sent` pending; returns false and changes nothing if a proposal is in flight.
    pub fn propose(&mut self, proposal: ProposalId, sent: Vec<BrokerState>) -> bool {
        let IsrState::Committed(committed) = self else { return false };
        let committed = std::mem::take(committed);
        *self = IsrState::Pending(PendingIsr { proposal, sent, committed });
        true
    }

    /// Applies the response to `proposal`; returns false if that proposal is not in flight any
    /// more.
    pub fn settle(&mut self, proposal: ProposalId, outcome: IsrOutcome) -> bool {
        let IsrState::Pending(pending) = self else { return false };
        if pending.proposal != proposal {
            return false;
        }
        let committed = match outcome {
            IsrOutcome::Unknown => return true,
            IsrOutcome::Rejected => std::mem::take(&mut pending.committed),
            IsrOutcome::Committed { isr, .. } => CommittedIsr(isr),
        };
        *self = IsrState::Committed(committed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(broker_id: i32) -> BrokerState {
        BrokerState { broker_id, broker_epoch: 1 }
    }

    fn pending(committed: &[i32], sent: &[i32]) -> IsrState {
        let mut isr = IsrState::Committed(CommittedIsr(committed.to_vec()));
        assert!(isr.propose(1, sent.iter().copied().map(broker).collect()));
        isr
    }

    #[test]
    fn pending_add_and_pending_removal_both_count_in_the_maximal_isr() {
        let isr = pending(&[1, 2], &[1, 3]);
        for member in 1..=3 {
            assert!(isr.maximal_contains(member));
        }
        assert_eq!(isr.effective_count(), 1);
    }

    #[test]
    fn one_proposal_in_flight() {
        assert!(!pending(&[1], &[1, 2]).propose(2, vec![broker(1)]));
    }

    #[test]
    fn response_to_a_replaced_proposal_is_ignored() {
        let mut isr = pending(&[1], &[1, 2]);
        let committed = IsrOutcome::Committed { isr: vec![1, 2, 3], partition_epoch: 4 };
        assert!(!isr.settle(7, committed.clone()));
        assert!(isr.settle(1, IsrOutcome::Unknown));
        assert_eq!(isr.proposal(), Some(1));
        assert!(isr.settle(1, committed));
        assert_eq!(isr, IsrState::Committed(CommittedIsr(vec![1, 2, 3])));
        assert!(!isr.settle(1, IsrOutcome::Rejected));
    }

    #[test]
    fn rejected_proposal_leaves_the_committed_isr() {
        let mut isr = pending(&[1, 2], &[1]);
        assert!(isr.settle(1, IsrOutcome::Rejected));
        assert_eq!(isr.committed().0, [1, 2]);
    }
}
