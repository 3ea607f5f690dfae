//! The replication state of one partition as a value: role, epochs, ISR, followers and the high
//! watermark.
//!
//! It contains no clock, log or lock. The partition calls a transition with facts that it read
//! under its mutex, and acts on the result, so tests can drive this state through any history from
//! a seed (see the properties below). With a single node most of it is unused: the ISR is the node
//! itself, and the high watermark is the end of the records that are as durable as promised.
//!
//! Invariants, checked by `check`: log start ≤ high watermark ≤ log end; a leader is in its ISR.

pub mod follower;
pub mod isr;

use std::collections::HashMap;

use pykafka_record::LeaderEpoch;

use self::follower::{Follower, FollowerFetch, Standing};
use self::isr::{BrokerState, CommittedIsr, IsrOutcome, IsrState, ProposalId};
use crate::control_api::event::ReplicaStateKind;
use crate::kafka_error::KafkaError;

/// Lower than the epoch of any assignment.
const UNASSIGNED: LeaderEpoch = LeaderEpoch::new(-1);

/// The role of this broker for a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Not a replica, or without an assignment yet.
    None,
    /// Serves clients and followers.
    Leader,
    /// Fetches from the leader.
    Follower,
}

/// The committed metadata of a partition; a step of the image contains one for each changed
/// partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Node id; −1 without a leader.
    pub leader: i32,
    /// Raised with each change of the leader.
    pub leader_epoch: LeaderEpoch,
    /// Raised with each change of the assignment.
    pub partition_epoch: i32,
    /// In order of preference.
    pub replicas: Vec<i32>,
    /// Committed in-sync replicas.
    pub isr: Vec<i32>,
    /// Eligible leader replicas (KIP-966).
    pub elr: Vec<i32>,
    /// Replicas whose brokers cannot write them, and so do not fetch.
    pub lost: Vec<i32>,
}

impl Assignment {
    /// True if `broker_id` may be elected because of the records that it should have.
    pub fn may_elect(&self, broker_id: i32) -> bool {
        self.isr.contains(&broker_id) || self.elr.contains(&broker_id)
    }
}

/// A consistent snapshot of the local log's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names are Kafka's")]
pub struct LogEnds {
    /// First readable offset.
    pub log_start_offset: i64,
    /// Log end offset (exclusive).
    pub log_end_offset: i64,
    /// Exclusive end of the records that are as durable as promised: in `fsync` mode the synced
    /// end, otherwise the log end offset.
    pub promised_end_offset: i64,
}

/// Brokers that may join an ISR, with their broker epochs; excludes brokers that are fenced or in
/// controlled shutdown (`Registration::is_eligible`).
pub type EligibleBrokers = HashMap<i32, i64>;

/// A consistent snapshot of the facts that determine the states of followers.
pub struct View<'a> {
    /// Log end offset (exclusive) of the leader; larger than any offset if the log is not open.
    pub log_end_offset: i64,
    /// Time of the broker's clock.
    pub now_ns: u64,
    /// `replica.lag.time.max.ms`.
    pub lag_ns_max: u64,
    /// Brokers that may join an ISR.
    pub eligible: &'a EligibleBrokers,
}

impl View<'_> {
    /// True if `follower` has all records of the leader, or had them within the maximum lag time.
    pub fn is_caught_up(&self, follower: &Follower) -> bool {
        follower.is_caught_up(self.log_end_offset, self.now_ns, self.lag_ns_max)
    }

    /// True if `follower` could be in the ISR before its leader is notified: it is live, and has
    /// the leader's records (contract/replication.md#2).
    pub fn is_joining(&self, follower: &Follower) -> bool {
        follower.broker_epoch.is_some()
            && self.eligible.get(&follower.broker_id).copied() == follower.broker_epoch
            && self.is_caught_up(follower)
    }
}

/// The effect of an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// None: it is older than the current assignment, or a repetition of it.
    Ignored,
    /// This broker leads a new epoch: the epoch must be written at the log end before any append.
    BecameLeader,
    /// This broker follows (or is not a replica): waiting requests fail, before fetchers start.
    BecameFollower,
    /// The epoch and the role are unchanged; the ISR or the replicas changed.
    Updated,
}

/// Determines the high watermark of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitRule {
    /// The leader decides: records are committed once the in-sync replicas have them.
    InSync,
    /// The metadata quorum decides: records are committed once a majority of the voters has synced
    /// them. The quorum elects the leader as well, so the log has records of this node and of
    /// others, in the epochs of the quorum.
    Quorum,
}

/// The replication state of one partition.
#[derive(Debug)]
pub struct Replication {
    node_id: i32,
    commit_rule: CommitRule,
    role: Role,
    assignment: Assignment,
    isr: IsrState,
    followers: Vec<Follower>,
    /// `None` until the epoch is recorded at the log end.
    leader_epoch_start: Option<i64>,
    high_watermark: i64,
    next_proposal: ProposalId,
}

impl Replication {
    /// Creates the state of a partition without an assignment, committed by its in-sync replicas.
    pub fn new(node_id: i32) -> Replication {
        let assignment = Assignment {
            leader: -1,
            leader_epoch: UNASSIGNED,
            partition_epoch: -1,
            replicas: Vec::new(),
            isr: Vec::new(),
            elr: Vec::new(),
            lost: Vec::new(),
        };
        Replication {
            node_id,
            commit_rule: CommitRule::InSync,
            role: Role::None,
            assignment,
            isr: IsrState::Committed(CommittedIsr::default()),
            followers: Vec::new(),
            leader_epoch_start: None,
            high_watermark: 0,
            next_proposal: 1,
        }
    }

    /// Replaces the commit rule.
    pub fn committed_by(self, commit_rule: CommitRule) -> Replication {
        Replication { commit_rule, ..self }
    }

    /// The role of this broker.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The current assignment.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// The committed and the pending ISR.
    #[cfg(test)]
    pub fn isr(&self) -> &IsrState {
        &self.isr
    }

    /// True if a replica is in the maximal ISR.
    pub fn is_in_sync(&self, broker_id: i32) -> bool {
        self.isr.maximal_contains(broker_id)
    }

    /// The high watermark (exclusive).
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    /// Limits `min.insync.replicas` to the number of replicas (contract/kafka.md#13).
    pub fn effective_min_isr(&self, min_insync_replicas: i32) -> usize {
        let asked = usize::try_from(min_insync_replicas).unwrap_or(1);
        asked.min(self.assignment.replicas.len().max(1))
    }

    /// True if acks=all requests may append (contract/replication.md#6).
    pub fn has_enough_replicas(&self, min_insync_replicas: i32) -> bool {
        self.isr.effective_count() >= self.effective_min_isr(min_insync_replicas)
    }

    /// Compares the leader epoch of a client with ours (contract/kafka.md#29).
    ///
    /// # Errors
    /// `FENCED_LEADER_EPOCH` if it is older, `UNKNOWN_LEADER_EPOCH` if it is newer. Checked before
    /// anything else.
    pub fn check_leader_epoch(
        &self,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<(), KafkaError> {
        let ours = self.assignment.leader_epoch;
        match current_leader_epoch {
            Some(given) if given < ours => Err(KafkaError::FencedLeaderEpoch),
            Some(given) if given > ours => Err(KafkaError::UnknownLeaderEpoch),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks the epoch, then the leadership.
    ///
    /// # Errors
    /// See [`Replication::check_leader_epoch`]; then `NOT_LEADER_OR_FOLLOWER`.
    pub fn check_leader(
        &self,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<(), KafkaError> {
        self.check_leader_epoch(current_leader_epoch)?;
        match self.role {
            Role::Leader => Ok(()),
            Role::Follower | Role::None => Err(KafkaError::NotLeaderOrFollower),
        }
    }

    /// Checks the epoch, then whether this broker is the leader or a follower.
    ///
    /// # Errors
    /// See [`Replication::check_leader`].
    pub fn check_replica(
        &self,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<(), KafkaError> {
        self.check_leader_epoch(current_leader_epoch)?;
        match self.role {
            Role::Leader | Role::Follower => Ok(()),
            Role::None => Err(KafkaError::NotLeaderOrFollower),
        }
    }

    /// The follower among the `nearby` brokers from which a consumer should read at `fetch_offset`:
    /// the in-sync one that has the offset and the most records. `None` if this broker is nearby
    /// itself, or follows (contract/replication.md#48).
    pub fn preferred_replica(&self, nearby: &[i32], fetch_offset: i64) -> Option<i32> {
        if nearby.is_empty() || self.role != Role::Leader || nearby.contains(&self.node_id) {
            return None;
        }
        let is_usable = |follower: &&Follower| {
            nearby.contains(&follower.broker_id)
                && self.assignment.isr.contains(&follower.broker_id)
                && (follower.log_start_offset..=follower.log_end_offset).contains(&fetch_offset)
        };
        (self.followers.iter().filter(is_usable))
            .max_by_key(|follower| {
                (follower.log_end_offset, follower.caught_up_ns, follower.broker_id)
            })
            .map(|follower| follower.broker_id)
    }

    /// Applies the committed state of a partition, once, in the order of partition epochs
    /// (contract/replication.md#8, #9).
    pub fn assign(&mut self, next: Assignment, now_ns: u64) -> Change {
        let now = &self.assignment;
        if next.partition_epoch <= now.partition_epoch || next.leader_epoch < now.leader_epoch {
            return Change::Ignored;
        }
        let same_epoch = next.leader_epoch == now.leader_epoch;
        self.isr = IsrState::Committed(CommittedIsr(next.isr.clone()));
        self.assignment = next;
        if self.assignment.leader == self.node_id {
            self.lead(same_epoch && self.role == Role::Leader, now_ns)
        } else {
            self.follow(same_epoch)
        }
    }

    fn lead(&mut self, already: bool, now_ns: u64) -> Change {
        if !already {
            self.role = Role::Leader;
            self.leader_epoch_start = None;
            self.followers.clear();
        }
        let (node_id, isr) = (self.node_id, &self.assignment.isr);
        let mut known = std::mem::take(&mut self.followers);
        self.followers = (self.assignment.replicas.iter().copied())
            .filter(|broker| *broker != node_id)
            .map(|broker| match known.iter().position(|f| f.broker_id == broker) {
                Some(index) => known.swap_remove(index),
                None => Follower::at_epoch_start(broker, isr.contains(&broker), now_ns),
            })
            .collect();
        if already { Change::Updated } else { Change::BecameLeader }
    }

    fn follow(&mut self, same_epoch: bool) -> Change {
        let is_replica = self.assignment.replicas.contains(&self.node_id);
        let role = if is_replica { Role::Follower } else { Role::None };
        let unchanged = same_epoch && self.role == role;
        self.role = role;
        self.followers.clear();
        if unchanged { Change::Updated } else { Change::BecameFollower }
    }

    /// Changes to a later epoch of the quorum; an older one changes nothing. Appends in progress
    /// keep their epoch: they end before the first append of another epoch is requested.
    pub fn raise_leader_epoch(&mut self, leader_epoch: LeaderEpoch) {
        let is_news = leader_epoch > self.assignment.leader_epoch;
        if self.commit_rule == CommitRule::Quorum && self.role == Role::Leader && is_news {
            self.assignment.leader_epoch = leader_epoch;
            self.leader_epoch_start = None;
        }
    }

    /// Records the start offset of the leader epoch; called once per epoch, after the epoch cache
    /// was updated.
    pub fn begin_leader_epoch(&mut self, log_end_offset: i64) {
        self.leader_epoch_start = Some(log_end_offset);
    }

    /// True if the leader epoch is written to a log whose latest epoch is `latest`. Before the
    /// quorum sets an epoch, that of the metadata log is older than its records.
    pub fn is_newest_epoch(&self, latest: Option<LeaderEpoch>) -> bool {
        self.commit_rule == CommitRule::InSync || latest <= Some(self.assignment.leader_epoch)
    }

    /// True if the leader epoch must be recorded at the log end before any append in it.
    pub fn is_epoch_due(&self) -> bool {
        self.role == Role::Leader && self.leader_epoch_start.is_none()
    }

    /// Starts from a checkpointed high watermark, limited to the bounds of the log.
    pub fn restore_high_watermark(&mut self, checkpoint: i64, ends: LogEnds) {
        self.high_watermark = checkpoint.clamp(ends.log_start_offset, ends.log_end_offset);
        self.check(ends);
    }

    /// Limits the high watermark to a log that was truncated (contract/replication.md#15).
    pub fn truncated(&mut self, ends: LogEnds) {
        self.high_watermark = self.high_watermark.clamp(ends.log_start_offset, ends.log_end_offset);
        self.check(ends);
    }

    /// Applies a high watermark that another node decided, at most up to the log end offset.
    /// Returns true if it moved; it never moves back.
    pub fn follow_high_watermark(&mut self, high_watermark: i64, ends: LogEnds) -> bool {
        let end = high_watermark.min(ends.log_end_offset);
        let moved = end > self.high_watermark;
        if moved {
            self.high_watermark = end;
        }
        self.check(ends);
        moved
    }

    /// Limits the high watermark to a log whose start moved up (delete-records, retention).
    pub fn log_start_advanced(&mut self, ends: LogEnds) {
        self.high_watermark = self.high_watermark.max(ends.log_start_offset);
        self.check(ends);
    }

    /// The smallest log start offset of the live replicas; a follower that has not sent its own
    /// counts with −1 (contract/kafka.md#39). In a quorum only the local log counts, because each
    /// node removes what its own snapshots contain.
    pub fn low_watermark(&self, log_start_offset: i64, live: &EligibleBrokers) -> i64 {
        let is_live = |follower: &&Follower| live.contains_key(&follower.broker_id);
        let is_counted = self.commit_rule == CommitRule::InSync;
        let followers = self.followers.iter().filter(|_| is_counted).filter(is_live);
        followers.map(|follower| follower.log_start_offset).fold(log_start_offset, i64::min)
    }

    /// True if the high watermark may be lower than that of an earlier leader: until it reaches the
    /// start of this epoch, responses with offsets could go backwards (contract/kafka.md#31).
    pub fn high_watermark_lags(&self) -> bool {
        let is_reached = |start| self.high_watermark >= start;
        self.role == Role::Leader && !self.leader_epoch_start.is_some_and(is_reached)
    }

    /// Recomputes the high watermark: the smallest end over the maximal ISR and over followers that
    /// could join it now (contract/replication.md#1–#4). Returns true if it moved; it never moves
    /// back.
    pub fn advance_high_watermark(
        &mut self,
        ends: LogEnds,
        min_insync_replicas: i32,
        catching_up: &impl Fn(&Follower) -> bool,
    ) -> bool {
        let decides = self.role == Role::Leader && self.commit_rule == CommitRule::InSync;
        if !decides || !self.has_enough_replicas(min_insync_replicas) {
            return false;
        }
        let counts = |follower: &&Follower| {
            let is_lost = self.assignment.lost.contains(&follower.broker_id);
            self.isr.maximal_contains(follower.broker_id) || (catching_up(follower) && !is_lost)
        };
        let end = (self.followers.iter().filter(counts))
            .map(|follower| follower.log_end_offset)
            .fold(ends.promised_end_offset, i64::min);
        let moved = end > self.high_watermark;
        if moved {
            self.high_watermark = end;
        }
        self.check(ends);
        moved
    }

    /// True if a follower that fetches from `fetch_offset` has lost records: members of the ISR,
    /// and of a pending ISR, must have all committed records (contract/replication.md#1).
    pub fn has_lost(&self, broker_id: i32, fetch_offset: i64) -> bool {
        fetch_offset < self.high_watermark && self.is_in_sync(broker_id)
    }

    /// Records a follower's fetch, which must not diverge (contract/replication.md#12).
    ///
    /// # Errors
    /// `UNKNOWN_LEADER_EPOCH` if the follower is not (yet) in the assignment
    /// (contract/replication.md#24). `NOT_LEADER_OR_FOLLOWER` if the request is from an older
    /// registration than the latest fetch (contract/replication.md#27), or if the follower has lost
    /// records: then the fetch is recorded, but served only once the follower has left the ISR, so
    /// that a follower that gets a response does not count as having the requested records
    /// (docs/design/0020-damaged-replicas.md).
    pub fn follower_fetched(
        &mut self,
        broker_id: i32,
        fetch: FollowerFetch,
        leader_log_end: i64,
    ) -> Result<&Follower, KafkaError> {
        let has_lost = self.has_lost(broker_id, fetch.fetch_offset);
        let follower = (self.followers.iter_mut())
            .find(|follower| follower.broker_id == broker_id)
            .ok_or(KafkaError::UnknownLeaderEpoch)?;
        if !follower.fetched(fetch, leader_log_end) || has_lost {
            return Err(KafkaError::NotLeaderOrFollower);
        }
        Ok(follower)
    }

    /// True if `follower` may join the ISR: it has all committed records, has reached the start of
    /// this leader epoch, and its registration is live (contract/replication.md#25, #26).
    pub fn may_join(&self, follower: &Follower, eligible: &EligibleBrokers) -> bool {
        let is_reached = |start: i64| follower.log_end_offset >= self.high_watermark.max(start);
        self.leader_epoch_start.is_some_and(is_reached)
            && follower.broker_epoch.is_some()
            && eligible.get(&follower.broker_id).copied() == follower.broker_epoch
            && !self.assignment.lost.contains(&follower.broker_id)
    }

    /// The state of `follower` (contract/replication.md#25, #26, #28). The state of an ISR member
    /// depends on its lag, because it holds back the high watermark; it lags at once if it lacks
    /// committed records. The state of any other follower depends on whether it may join.
    pub fn standing(&self, follower: &Follower, view: &View<'_>) -> Standing {
        let registered = view.eligible.get(&follower.broker_id).copied();
        let is_stale = registered.is_none() || registered != follower.broker_epoch;
        let is_member = self.isr.committed().0.contains(&follower.broker_id);
        let (state, asks) = if is_member {
            let has_lost = follower.has_fetched()
                && self.has_lost(follower.broker_id, follower.log_end_offset);
            match view.is_caught_up(follower) && !has_lost {
                false => (ReplicaStateKind::Lagging, true),
                true if follower.has_fetched() && is_stale => (ReplicaStateKind::StaleEpoch, false),
                true => (ReplicaStateKind::CaughtUp, false),
            }
        } else if self.may_join(follower, view.eligible) {
            (ReplicaStateKind::CaughtUp, true)
        } else if follower.has_fetched() && is_stale && view.is_caught_up(follower) {
            (ReplicaStateKind::StaleEpoch, false)
        } else {
            (ReplicaStateKind::Lagging, false)
        };
        Standing { state, asks }
    }

    /// Returns the followers whose state differs from the last report to Python; if `repeats`, also
    /// all that require a change of the ISR.
    pub fn news(&mut self, view: &View<'_>, repeats: bool) -> Vec<(Follower, Standing)> {
        if self.role != Role::Leader || self.commit_rule != CommitRule::InSync {
            return Vec::new();
        }
        let mut followers = std::mem::take(&mut self.followers);
        let mut news = Vec::new();
        for follower in &mut followers {
            let standing = self.standing(follower, view);
            if standing.is_news(follower.told) || (repeats && standing.asks) {
                news.push((follower.clone(), standing));
            }
            follower.told = standing;
        }
        self.followers = followers;
        news
    }

    /// Makes `isr` pending if it is still possible: the epochs are current, no proposal is in
    /// flight, it contains the leader, and each added member is still eligible.
    pub fn propose(
        &mut self,
        leader_epoch: LeaderEpoch,
        partition_epoch: i32,
        isr: Vec<BrokerState>,
        eligible: &EligibleBrokers,
    ) -> Option<ProposalId> {
        let now = &self.assignment;
        let current = self.role == Role::Leader
            && now.leader_epoch == leader_epoch
            && now.partition_epoch == partition_epoch;
        let has_leader = isr.iter().any(|member| member.broker_id == self.node_id);
        if !current || !has_leader || !isr.iter().all(|member| self.may_hold(*member, eligible)) {
            return None;
        }
        let proposal = self.next_proposal;
        self.isr.propose(proposal, isr).then(|| {
            self.next_proposal += 1;
            proposal
        })
    }

    fn may_hold(&self, member: BrokerState, eligible: &EligibleBrokers) -> bool {
        if member.broker_id == self.node_id || self.isr.committed().0.contains(&member.broker_id) {
            return true;
        }
        (self.followers.iter().find(|follower| follower.broker_id == member.broker_id)).is_some_and(
            |follower| {
                follower.broker_epoch == Some(member.broker_epoch)
                    && self.may_join(follower, eligible)
            },
        )
    }

    /// Applies the controller's response to a proposal. Returns false and changes nothing if
    /// another proposal or an image has replaced it (contract/replication.md#29), or if the
    /// response cannot belong to it: it lacks the leader, or is older than the known state.
    ///
    /// The later image of a committed ISR has the same partition epoch, and so changes nothing.
    pub fn settle(&mut self, proposal: ProposalId, outcome: IsrOutcome) -> bool {
        let IsrOutcome::Committed { isr, partition_epoch } = &outcome else {
            return self.isr.settle(proposal, outcome);
        };
        let (isr, partition_epoch) = (isr.clone(), *partition_epoch);
        let fits =
            isr.contains(&self.node_id) && partition_epoch >= self.assignment.partition_epoch;
        if !fits || !self.isr.settle(proposal, outcome) {
            return false;
        }
        self.assignment.isr = isr;
        self.assignment.partition_epoch = partition_epoch;
        true
    }

    /// The proposal in flight.
    pub fn proposal(&self) -> Option<ProposalId> {
        self.isr.proposal()
    }

    /// Returns one of the followers.
    ///
    /// # Errors
    /// `UNKNOWN_LEADER_EPOCH`: the broker is not (yet) in the assignment
    /// (contract/replication.md#24).
    pub fn follower(&self, broker_id: i32) -> Result<&Follower, KafkaError> {
        let mut followers = self.followers.iter();
        let follower = followers.find(|follower| follower.broker_id == broker_id);
        follower.ok_or(KafkaError::UnknownLeaderEpoch)
    }

    /// The followers and their known states.
    pub fn followers(&self) -> &[Follower] {
        &self.followers
    }

    /// Called when the partition is deleted; it is not served any more.
    pub fn retire(&mut self) {
        self.role = Role::None;
        self.followers.clear();
    }

    fn check(&self, ends: LogEnds) {
        debug_assert!(ends.log_start_offset <= self.high_watermark, "{self:?} {ends:?}");
        debug_assert!(self.high_watermark <= ends.log_end_offset, "{self:?} {ends:?}");
        debug_assert!(
            self.role != Role::Leader || self.isr.maximal_contains(self.node_id),
            "leader outside of its ISR: {self:?}"
        );
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
