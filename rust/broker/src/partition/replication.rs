//! The replication state of one partition as a value: role, epochs, ISR, followers and the high watermark.
//!
//! No clock, log or lock lives here. The partition calls a transition with the facts it read under its mutex and acts
//! on what comes back, so a seed can drive this state through any history (see the properties below). One node leaves
//! most of it idle: its ISR is itself and its high watermark is the end of what its own promise covers.
//!
//! Invariants, held by `check`: log start ≤ high watermark ≤ log end; a leader is in its ISR.

pub mod follower;
pub mod isr;

use std::collections::HashMap;

use pykafka_record::LeaderEpoch;

use self::follower::{Follower, FollowerFetch, Standing};
use self::isr::{BrokerState, CommittedIsr, IsrOutcome, IsrState, ProposalId};
use crate::kafka_error::KafkaError;
use crate::seam::event::ReplicaStateKind;

/// Below every epoch that an assignment can bring.
const UNASSIGNED: LeaderEpoch = LeaderEpoch::new(-1);

/// What this broker is to a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Not a replica, or not told yet.
    None,
    /// Serves clients and followers.
    Leader,
    /// Fetches from the leader.
    Follower,
}

/// What the committed metadata says of a partition; a step of the image carries one for each partition that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Node id, −1 for none.
    pub leader: i32,
    /// Raised with each change of leader.
    pub leader_epoch: LeaderEpoch,
    /// Raised with each change of anything here.
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
    /// Whether `broker_id` may be elected because of what it is taken to have.
    pub fn may_elect(&self, broker_id: i32) -> bool {
        self.isr.contains(&broker_id) || self.elr.contains(&broker_id)
    }
}

/// The local log's ends, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names are Kafka's")]
pub struct LogEnds {
    /// First offset that can be read.
    pub log_start_offset: i64,
    /// Exclusive end of what is appended.
    pub log_end_offset: i64,
    /// Exclusive end of what is as durable as promised: in `fsync` mode the synced end, else the log end.
    pub promised_end_offset: i64,
}

/// Brokers that may join an ISR, with the epochs of their registrations. One that is fenced or in controlled shutdown is not
/// in it (`Registration::is_eligible`).
pub type EligibleBrokers = HashMap<i32, i64>;

/// By what followers are judged, read together.
pub struct View<'a> {
    /// Exclusive end of the leader's log; above every offset if that is not open.
    pub log_end_offset: i64,
    /// The broker's clock.
    pub now_ns: u64,
    /// `replica.lag.time.max.ms`.
    pub lag_ns_max: u64,
    /// Who may join an ISR.
    pub eligible: &'a EligibleBrokers,
}

impl View<'_> {
    /// Whether `follower` has all the leader has, or had it within the time for lags.
    pub fn is_caught_up(&self, follower: &Follower) -> bool {
        follower.is_caught_up(self.log_end_offset, self.now_ns, self.lag_ns_max)
    }

    /// Whether `follower` could be in the ISR by the time its leader hears of it: it is live, and has what the leader has
    /// (contract/replication.md#2).
    pub fn is_joining(&self, follower: &Follower) -> bool {
        follower.broker_epoch.is_some()
            && self.eligible.get(&follower.broker_id).copied() == follower.broker_epoch
            && self.is_caught_up(follower)
    }
}

/// What an assignment changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Older than what is known, or the same again: nothing.
    Ignored,
    /// This broker leads a new epoch: the epoch must be written at the log end before any append.
    BecameLeader,
    /// This broker follows (or holds nothing): waiting requests fail, before fetchers start.
    BecameFollower,
    /// Same epoch and role; ISR or replicas changed.
    Updated,
}

/// Who decides what of a partition is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitRule {
    /// Its leader: what the in-sync replicas have.
    InSync,
    /// The metadata quorum: a majority of the voters has synced it. Who leads is the quorum's as well, so the log is
    /// written in the epochs that it names, by this node's records or by another's.
    Quorum,
}

/// See the module.
#[derive(Debug)]
pub struct Replication {
    node_id: i32,
    commit_rule: CommitRule,
    role: Role,
    assignment: Assignment,
    isr: IsrState,
    followers: Vec<Follower>,
    /// `None` until the epoch is noted at the log end.
    leader_epoch_start: Option<i64>,
    high_watermark: i64,
    next_proposal: ProposalId,
}

impl Replication {
    /// A partition nobody has spoken of yet, committed by its in-sync replicas.
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

    /// The same, committed by another rule.
    pub fn committed_by(self, commit_rule: CommitRule) -> Replication {
        Replication { commit_rule, ..self }
    }

    /// What this broker is to the partition.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The assignment in force.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// Committed and pending ISR.
    #[cfg(test)]
    pub fn isr(&self) -> &IsrState {
        &self.isr
    }

    /// Whether a replica is in the maximal ISR.
    pub fn is_in_sync(&self, broker_id: i32) -> bool {
        self.isr.maximal_contains(broker_id)
    }

    /// Exclusive end of what is committed.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    /// min.insync.replicas cannot ask for more than there are replicas (contract/kafka.md#13).
    pub fn effective_min_isr(&self, min_insync_replicas: i32) -> usize {
        let asked = usize::try_from(min_insync_replicas).unwrap_or(1);
        asked.min(self.assignment.replicas.len().max(1))
    }

    /// Whether acks=all may append at all (contract/replication.md#6).
    pub fn has_enough_replicas(&self, min_insync_replicas: i32) -> bool {
        self.isr.effective_count() >= self.effective_min_isr(min_insync_replicas)
    }

    /// Compares an epoch that a client believes in with ours (contract/kafka.md#29).
    ///
    /// # Errors
    /// `FENCED_LEADER_EPOCH` if older, `UNKNOWN_LEADER_EPOCH` if newer: checked before anything else.
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

    /// Epoch first, then leadership.
    ///
    /// # Errors
    /// As [`Replication::check_leader_epoch`], then `NOT_LEADER_OR_FOLLOWER`.
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

    /// Epoch first, then whether this broker has the records, as the leader or a follower.
    ///
    /// # Errors
    /// As [`Replication::check_leader`].
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

    /// The follower among `nearby` brokers from which a consumer is to read at `fetch_offset`: one in sync that has that
    /// offset, and of these the one that has most. None if this broker is nearby itself, or follows (contract/replication.md#48).
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

    /// Takes the committed state of a partition, once, in the order of partition epochs (contract/replication.md#8, #9).
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

    /// Goes on to a later epoch that the quorum named; an older one changes nothing. Appends under way stay what they are:
    /// they end before the first of another epoch is asked for.
    pub fn raise_leader_epoch(&mut self, leader_epoch: LeaderEpoch) {
        let is_news = leader_epoch > self.assignment.leader_epoch;
        if self.commit_rule == CommitRule::Quorum && self.role == Role::Leader && is_news {
            self.assignment.leader_epoch = leader_epoch;
            self.leader_epoch_start = None;
        }
    }

    /// Notes where the leader epoch begins; once per epoch, after the epoch cache has it.
    pub fn begin_leader_epoch(&mut self, log_end_offset: i64) {
        self.leader_epoch_start = Some(log_end_offset);
    }

    /// Whether the leader epoch is written to a log whose last one is `latest`. Until the quorum
    /// names an epoch, that of the metadata log is older than its records.
    pub fn is_newest_epoch(&self, latest: Option<LeaderEpoch>) -> bool {
        self.commit_rule == CommitRule::InSync || latest <= Some(self.assignment.leader_epoch)
    }

    /// Whether the leader epoch has to be noted at the log end before any append of it.
    pub fn is_epoch_due(&self) -> bool {
        self.role == Role::Leader && self.leader_epoch_start.is_none()
    }

    /// Starts from a checkpointed high watermark, within what the log has.
    pub fn restore_high_watermark(&mut self, checkpoint: i64, ends: LogEnds) {
        self.high_watermark = checkpoint.clamp(ends.log_start_offset, ends.log_end_offset);
        self.check(ends);
    }

    /// Keeps the high watermark inside a log whose end was given up (contract/replication.md#15).
    pub fn truncated(&mut self, ends: LogEnds) {
        self.high_watermark = self.high_watermark.clamp(ends.log_start_offset, ends.log_end_offset);
        self.check(ends);
    }

    /// Takes the high watermark that was decided elsewhere, as far as the log reaches. Returns whether it moved; it
    /// never moves back.
    pub fn follow_high_watermark(&mut self, high_watermark: i64, ends: LogEnds) -> bool {
        let end = high_watermark.min(ends.log_end_offset);
        let moved = end > self.high_watermark;
        if moved {
            self.high_watermark = end;
        }
        self.check(ends);
        moved
    }

    /// Keeps the high watermark inside a log whose start moved up (delete-records, retention).
    pub fn log_start_advanced(&mut self, ends: LogEnds) {
        self.high_watermark = self.high_watermark.max(ends.log_start_offset);
        self.check(ends);
    }

    /// The least offset at which a live replica begins; what a follower has not told yet is −1 (contract/kafka.md#39). Each
    /// node of a quorum gives up what its own snapshots have.
    pub fn low_watermark(&self, log_start_offset: i64, live: &EligibleBrokers) -> i64 {
        let is_live = |follower: &&Follower| live.contains_key(&follower.broker_id);
        let is_counted = self.commit_rule == CommitRule::InSync;
        let followers = self.followers.iter().filter(|_| is_counted).filter(is_live);
        followers.map(|follower| follower.log_start_offset).fold(log_start_offset, i64::min)
    }

    /// Whether the high watermark may still lie below what an earlier leader had committed: until it reaches the
    /// start of this epoch, offsets asked for could step back (contract/kafka.md#31).
    pub fn high_watermark_lags(&self) -> bool {
        let is_reached = |start| self.high_watermark >= start;
        self.role == Role::Leader && !self.leader_epoch_start.is_some_and(is_reached)
    }

    /// Recomputes the high watermark: the least end over the maximal ISR and over followers that could join it now
    /// (contract/replication.md#1–#4). Returns whether it moved; it never moves back.
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

    /// Whether a follower that fetches from `fetch_offset` has lost what it had: members of the ISR, pending ones too, have
    /// all that is committed (contract/replication.md#1).
    pub fn has_lost(&self, broker_id: i32, fetch_offset: i64) -> bool {
        fetch_offset < self.high_watermark && self.is_in_sync(broker_id)
    }

    /// Takes a follower's fetch (its divergence already excluded, contract/replication.md#12).
    ///
    /// # Errors
    /// `UNKNOWN_LEADER_EPOCH` if the follower is not (yet) in the assignment (24); `NOT_LEADER_OR_FOLLOWER` if it fetches
    /// under an older registration than one already seen (27), or has lost what it had: it is booked, and answered once it
    /// is in the ISR no more, so that whoever gets an answer is not taken to have what it asks for (docs/design/0020-damaged-replicas.md).
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

    /// Whether `follower` may join the ISR: it has all that is committed and reached this leader epoch, and its
    /// registration is live (contract/replication.md#25, #26).
    pub fn may_join(&self, follower: &Follower, eligible: &EligibleBrokers) -> bool {
        let is_reached = |start: i64| follower.log_end_offset >= self.high_watermark.max(start);
        self.leader_epoch_start.is_some_and(is_reached)
            && follower.broker_epoch.is_some()
            && eligible.get(&follower.broker_id).copied() == follower.broker_epoch
            && !self.assignment.lost.contains(&follower.broker_id)
    }

    /// How `follower` stands (contract/replication.md#25, #26, #28). A member of the ISR is judged by its lag, as what it
    /// lacks holds the high watermark back, and lags at once if it lacks what is committed; any other one by whether it may
    /// join.
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

    /// Followers that Python has to be told of, now that they stand otherwise than it was told; all that ask for a change
    /// of the ISR if `repeats`.
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

    /// Makes `isr` pending if it is still possible: right epochs, nothing in flight, the leader within, and each
    /// added member still eligible.
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

    /// Takes the answer to a proposal; `false` and unchanged if another one, or an image, replaced it
    /// (contract/replication.md#29), or if the answer cannot be one to it: without the leader, or older than what is known.
    ///
    /// The image of a committed ISR has its partition epoch, and so changes nothing any more when it comes.
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

    /// One of the followers.
    ///
    /// # Errors
    /// `UNKNOWN_LEADER_EPOCH`: it is not (yet) in the assignment (contract/replication.md#24).
    pub fn follower(&self, broker_id: i32) -> Result<&Follower, KafkaError> {
        let mut followers = self.followers.iter();
        let follower = followers.find(|follower| follower.broker_id == broker_id);
        follower.ok_or(KafkaError::UnknownLeaderEpoch)
    }

    /// Followers as they are known.
    pub fn followers(&self) -> &[Follower] {
        &self.followers
    }

    /// The partition is gone; nothing is served from it again.
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
