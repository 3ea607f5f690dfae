//! A broker's replica: its disk, and its state while it runs.

use pykafka_log::EpochCache;
use pykafka_record::LeaderEpoch;

use super::Wrong;
use super::controller::{Image, Wish};
use crate::control_api::event::ReplicaStateKind;
use crate::kafka_error::KafkaError;
use crate::partition::replication::follower::{Follower, FollowerFetch};
use crate::partition::replication::isr::{BrokerState, IsrOutcome};
use crate::partition::replication::{Change, EligibleBrokers, LogEnds, Replication, Role, View};

/// `replica.lag.time.max.ms`.
const LAG_NS_MAX: u64 = 30;
/// Maximum number of records in a response.
const RECORDS_MAX: usize = 4;

/// A record: its leader epoch and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) epoch: LeaderEpoch,
    pub(super) value: u32,
}

/// A fetch of a follower.
#[derive(Debug, Clone)]
pub(super) struct Fetch {
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) offset: i64,
    pub(super) last_fetched_epoch: Option<LeaderEpoch>,
    pub(super) broker_epoch: i64,
}

/// A leader's response to a [`Fetch`] without an error.
#[derive(Debug, Clone)]
pub(super) struct Fetched {
    pub(super) offset: i64,
    pub(super) leader_epoch: LeaderEpoch,
    /// The divergence of the logs: the leader's epoch, and its end offset there.
    pub(super) parting: Option<(LeaderEpoch, i64)>,
    pub(super) records: Vec<Record>,
    pub(super) high_watermark: i64,
}

/// The data that survives the end of a process.
#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) records: Vec<Record>,
    pub(super) epochs: EpochCache,
    /// Number of records that a power failure cannot remove.
    pub(super) synced: usize,
    /// `replication-offset-checkpoint`.
    pub(super) checkpoint: i64,
    /// True if it is known that records after its end were lost.
    pub(super) is_damaged: bool,
}

impl Disk {
    pub(super) fn end(&self) -> i64 {
        self.records.len() as i64
    }

    fn append(&mut self, record: Record) {
        self.epochs.assign(record.epoch, self.end());
        self.records.push(record);
    }

    /// Truncates the log to `end`, durably.
    pub(super) fn truncate(&mut self, end: i64) {
        self.records.truncate(usize::try_from(end).expect("an offset"));
        self.epochs.truncate_from_end(end);
        self.synced = self.synced.min(self.records.len());
        self.checkpoint = self.checkpoint.min(end);
    }
}

/// A record that a client waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) offset: i64,
    pub(super) value: u32,
}

/// A broker's process.
#[derive(Debug)]
pub(super) struct Life {
    /// `None` until the broker is registered.
    pub(super) broker_epoch: Option<i64>,
    /// Number of received images.
    pub(super) heard: usize,
    pub(super) replication: Replication,
    pub(super) eligible: EligibleBrokers,
    /// The fetch in flight.
    pub(super) fetch: Option<u64>,
    /// The records that the log is about to write.
    pub(super) writing: Option<Fetched>,
    pub(super) waiting: Vec<Waiting>,
    /// The ISR change in flight.
    pub(super) wish: Option<(u64, Wish)>,
    /// The leader epoch in which it was found damaged while it ran.
    pub(super) damaged_in: Option<LeaderEpoch>,
}

/// Settings of all brokers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// `durability=fsync`; otherwise there are no power failures, and a process that ends loses
    /// nothing.
    pub(super) syncs: bool,
    pub(super) min_isr: i32,
    pub(super) wrong: Option<Wrong>,
}

impl Settings {
    fn is(self, wrong: Wrong) -> bool {
        self.wrong == Some(wrong)
    }
}

/// A broker.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: i32,
    pub(super) disk: Disk,
    pub(super) life: Option<Life>,
    settings: Settings,
}

impl Node {
    pub(super) fn new(id: i32, settings: Settings) -> Node {
        Node { id, disk: Disk::default(), life: None, settings }
    }

    pub(super) fn start(&mut self, broker_epoch: Option<i64>) {
        let mut replication = Replication::new(self.id);
        replication.restore_high_watermark(self.disk.checkpoint, ends(&self.disk, self.settings));
        self.life = Some(Life {
            broker_epoch,
            heard: 0,
            replication,
            eligible: EligibleBrokers::new(),
            fetch: None,
            writing: None,
            waiting: Vec::new(),
            wish: None,
            damaged_in: None,
        });
    }

    /// Ends the process; `kept` records of the log are left after a power failure or a crash.
    pub(super) fn end(&mut self, kept: i64) {
        self.life = None;
        self.disk.truncate(kept);
        self.disk.synced = self.disk.records.len();
    }

    /// The records that survive a power failure.
    pub(super) fn durable(&self) -> &[Record] {
        let kept = if self.settings.syncs { self.disk.synced } else { self.disk.records.len() };
        &self.disk.records[..kept]
    }

    pub(super) fn role(&self) -> Role {
        self.life.as_ref().map_or(Role::None, |life| life.replication.role())
    }

    pub(super) fn high_watermark(&self) -> i64 {
        self.life.as_ref().map_or(0, |life| life.replication.high_watermark())
    }

    pub(super) fn sync(&mut self, records: usize) {
        self.disk.synced = self.disk.synced.max(records.min(self.disk.records.len()));
    }

    /// Applies an image; returns the records that this acknowledges.
    pub(super) fn hear(&mut self, number: usize, image: &Image, now_ns: u64) -> Vec<Waiting> {
        let Some(life) = &mut self.life else { return Vec::new() };
        life.heard = number;
        life.eligible.clone_from(&image.eligible);
        let change = life.replication.assign(image.assignment.clone(), now_ns);
        if matches!(change, Change::BecameLeader | Change::BecameFollower) {
            // Clients get an ambiguous error.
            life.waiting.clear();
            life.fetch = None;
            life.wish = None;
        }
        if life.replication.proposal().is_none() {
            life.wish = None;
        }
        match change {
            Change::BecameLeader => self.begin_epoch(),
            Change::BecameFollower => self.begin_following(),
            Change::Updated | Change::Ignored => {}
        }
        self.progress(now_ns)
    }

    /// Makes the log unreadable from `offset` on.
    pub(super) fn damage(&mut self, offset: i64) {
        self.disk.truncate(offset);
        self.disk.is_damaged = !self.settings.is(Wrong::DamagedStaysInIsr);
        let at = ends(&self.disk, self.settings);
        if let Some(life) = &mut self.life {
            life.replication.truncated(at);
            life.damaged_in = Some(life.replication.assignment().leader_epoch);
        }
    }

    fn is_leading_refused(&self) -> bool {
        self.disk.is_damaged && !self.settings.is(Wrong::DamagedLeads)
    }

    fn begin_epoch(&mut self) {
        let is_refused = self.is_leading_refused();
        let Some(life) = &mut self.life else { return };
        let end = self.disk.end();
        if is_refused {
            return life.replication.begin_leader_epoch(end);
        }
        self.disk.is_damaged = false;
        self.disk.epochs.assign(life.replication.assignment().leader_epoch, end);
        let start = if self.settings.is(Wrong::ExpandWithoutEpochStart) { 0 } else { end };
        life.replication.begin_leader_epoch(start);
    }

    fn begin_following(&mut self) {
        if self.settings.is(Wrong::TruncateToHighWatermark) {
            self.disk.truncate(self.high_watermark());
        }
        self.sync_as_promised();
    }

    fn sync_as_promised(&mut self) {
        if self.settings.syncs && !self.settings.is(Wrong::FollowerTellsUnsynced) {
            self.sync(usize::MAX);
        }
    }

    /// Appends for a client that waits for all in-sync replicas, if there are enough.
    pub(super) fn produce(&mut self, value: u32, now_ns: u64) -> Vec<Waiting> {
        if self.disk.is_damaged {
            return Vec::new();
        }
        let Some(life) = &mut self.life else { return Vec::new() };
        let enough = life.replication.has_enough_replicas(self.settings.min_isr);
        if life.replication.role() != Role::Leader || !enough {
            return Vec::new();
        }
        let epoch = life.replication.assignment().leader_epoch;
        life.waiting.push(Waiting { offset: self.disk.end(), value });
        self.disk.append(Record { epoch, value });
        self.progress(now_ns)
    }

    /// Updates the high watermark; returns the records that this acknowledges.
    pub(super) fn progress(&mut self, now_ns: u64) -> Vec<Waiting> {
        let Some(life) = &mut self.life else { return Vec::new() };
        let at = ends(&self.disk, self.settings);
        let (log_end_offset, eligible) = (at.log_end_offset, &life.eligible);
        let view = View { log_end_offset, now_ns, lag_ns_max: LAG_NS_MAX, eligible };
        let counts_joining = !self.settings.is(Wrong::IgnorePendingAdds);
        let catching_up = |follower: &Follower| counts_joining && view.is_joining(follower);
        life.replication.advance_high_watermark(at, self.settings.min_isr, &catching_up);
        let high_watermark = life.replication.high_watermark();
        let (done, waiting) =
            life.waiting.iter().partition(|waiting| waiting.offset < high_watermark);
        life.waiting = waiting;
        done
    }

    /// The next fetch, if the broker follows.
    pub(super) fn fetch(&self) -> Option<(i32, Fetch)> {
        let life = self.life.as_ref()?;
        let assignment = life.replication.assignment();
        if life.replication.role() != Role::Follower || assignment.leader == -1 {
            return None;
        }
        let forgets = self.settings.is(Wrong::ForgetLastFetchedEpoch)
            || self.settings.is(Wrong::TruncateToHighWatermark);
        let (offset, latest_epoch) = match &life.writing {
            Some(response) => self.ahead(response)?,
            None => (self.disk.end(), self.disk.epochs.latest_epoch()),
        };
        let fetch = Fetch {
            leader_epoch: assignment.leader_epoch,
            offset,
            last_fetched_epoch: latest_epoch.filter(|_| !forgets),
            broker_epoch: life.broker_epoch.unwrap_or(-1),
        };
        Some((assignment.leader, fetch))
    }

    /// The offset of the fetch-ahead during a write: after records that are committed without this
    /// broker.
    fn ahead(&self, response: &Fetched) -> Option<(i64, Option<LeaderEpoch>)> {
        let last = response.records.last().filter(|_| response.parting.is_none())?;
        let end = response.offset + response.records.len() as i64;
        let is_committed = end < response.high_watermark || self.settings.is(Wrong::FetchesAhead);
        (is_committed && !self.disk.is_damaged).then_some((end, Some(last.epoch)))
    }

    /// Responds to a follower's fetch.
    pub(super) fn serve(
        &mut self,
        follower: i32,
        fetch: &Fetch,
        now_ns: u64,
    ) -> Result<(Fetched, Vec<Waiting>), KafkaError> {
        let life = self.life.as_mut().ok_or(KafkaError::NotLeaderOrFollower)?;
        life.replication.check_leader(Some(fetch.leader_epoch))?;
        if self.disk.is_damaged {
            return Err(KafkaError::KafkaStorageError);
        }
        let end = self.disk.end();
        let has_lost = life.replication.has_lost(follower, fetch.offset);
        let nothing = Fetched {
            offset: fetch.offset,
            leader_epoch: fetch.leader_epoch,
            parting: None,
            records: Vec::new(),
            high_watermark: life.replication.high_watermark(),
        };
        if let (Some(last_fetched), false) = (fetch.last_fetched_epoch, has_lost) {
            let known = self.disk.epochs.end_offset_for(last_fetched, end);
            let (epoch, end_offset) = known.ok_or(KafkaError::OffsetOutOfRange)?;
            if epoch < last_fetched || end_offset < fetch.offset {
                return Ok((Fetched { parting: Some((epoch, end_offset)), ..nothing }, Vec::new()));
            }
        }
        if fetch.offset > end {
            return Err(KafkaError::OffsetOutOfRange);
        }
        let registered = life.eligible.get(&follower).copied().unwrap_or(-1);
        let takes_stale = self.settings.is(Wrong::AcceptStaleBrokerEpoch);
        if fetch.broker_epoch < registered && !takes_stale {
            return Err(KafkaError::NotLeaderOrFollower);
        }
        let booked = FollowerFetch {
            fetch_offset: fetch.offset,
            log_start_offset: 0,
            broker_epoch: fetch.broker_epoch,
            arrived_ns: now_ns,
        };
        life.replication.follower_fetched(follower, booked, end)?;
        let acknowledged = self.progress(now_ns);
        let from = usize::try_from(fetch.offset).expect("an offset");
        let records = self.disk.records[from..].iter().take(RECORDS_MAX).copied().collect();
        let high_watermark = self.high_watermark();
        Ok((Fetched { records, high_watermark, ..nothing }, acknowledged))
    }

    /// Receives a leader's response, and writes the previous one first.
    ///
    /// # Errors
    /// Records would be removed that are committed as far as the broker knows.
    pub(super) fn fetched(&mut self, response: Fetched) -> Result<(), String> {
        self.write()?;
        if let Some(life) = &mut self.life {
            life.writing = Some(response);
        }
        Ok(())
    }

    /// Applies the last response to the log.
    ///
    /// # Errors
    /// Records would be removed that are committed as far as the broker knows.
    pub(super) fn write(&mut self) -> Result<(), String> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let Some(response) = life.writing.take() else { return Ok(()) };
        let follows = life.replication.role() == Role::Follower
            && life.replication.assignment().leader_epoch == response.leader_epoch;
        if !follows || self.disk.end() != response.offset {
            return Ok(());
        }
        if self.disk.is_damaged {
            let looks = !self.settings.is(Wrong::DamagedBelievesAnswers);
            if looks && life.replication.assignment().may_elect(self.id) {
                return Ok(());
            }
            let forgets = self.settings.is(Wrong::DamagedForgetsFetches);
            if !forgets && life.damaged_in == Some(response.leader_epoch) {
                return Ok(());
            }
            self.disk.is_damaged = false;
        }
        if let Some((epoch, end_offset)) = response.parting {
            let end = self.disk.end();
            let own_end = self.disk.epochs.end_offset_for(epoch, end).map_or(end, |(_, own)| own);
            return self.give_up_from(own_end.min(end_offset).min(end));
        }
        for record in &response.records {
            self.disk.append(*record);
        }
        if self.disk.end() >= response.high_watermark {
            self.sync_as_promised();
        }
        let at = ends(&self.disk, self.settings);
        let life = self.life.as_mut().expect("it runs");
        life.replication.follow_high_watermark(response.high_watermark, at);
        Ok(())
    }

    fn give_up_from(&mut self, end: i64) -> Result<(), String> {
        let high_watermark = self.high_watermark();
        self.disk.truncate(end);
        let at = ends(&self.disk, self.settings);
        if let Some(life) = &mut self.life {
            life.replication.truncated(at);
        }
        if end < high_watermark {
            return Err(format!("{} gives up {end}, and {high_watermark} is committed", self.id));
        }
        Ok(())
    }

    /// Requests the next change of the ISR, if one is due.
    pub(super) fn wish(&mut self, now_ns: u64) {
        let settings = self.settings;
        let Some(life) = &mut self.life else { return };
        let Some(own_epoch) = life.broker_epoch else { return };
        if life.replication.role() != Role::Leader || life.wish.is_some() {
            return;
        }
        let stale;
        let eligible = if settings.is(Wrong::AcceptStaleBrokerEpoch) {
            let followers = life.replication.followers().iter();
            stale = followers
                .filter_map(|follower| Some((follower.broker_id, follower.broker_epoch?)))
                .collect();
            &stale
        } else {
            &life.eligible
        };
        let log_end_offset = self.disk.end();
        let view = View { log_end_offset, now_ns, lag_ns_max: LAG_NS_MAX, eligible };
        let assignment = life.replication.assignment().clone();
        let mut isr = assignment.isr.clone();
        for (follower, standing) in life.replication.news(&view, true) {
            match standing.state {
                ReplicaStateKind::CaughtUp if standing.asks => isr.push(follower.broker_id),
                ReplicaStateKind::Lagging if standing.asks => {
                    isr.retain(|member| *member != follower.broker_id);
                }
                _ => {}
            }
        }
        if isr == assignment.isr {
            return;
        }
        let epoch_of =
            |id: i32| if id == self.id { Some(own_epoch) } else { eligible.get(&id).copied() };
        let wanted: Vec<_> = (isr.iter())
            .map(|id| BrokerState { broker_id: *id, broker_epoch: epoch_of(*id).unwrap_or(-1) })
            .collect();
        let wish = Wish {
            leader: BrokerState { broker_id: self.id, broker_epoch: own_epoch },
            attempt: 0,
            leader_epoch: assignment.leader_epoch,
            partition_epoch: assignment.partition_epoch,
            isr: wanted.clone(),
        };
        let grows = isr.len() > assignment.isr.len();
        if settings.is(Wrong::IgnorePendingAdds) && grows {
            life.wish = Some((0, wish));
            return;
        }
        let (epoch, partition_epoch) = (wish.leader_epoch, wish.partition_epoch);
        let proposed = life.replication.propose(epoch, partition_epoch, wanted, eligible);
        let Some(proposal) = proposed else { return };
        if settings.is(Wrong::AssumeShrink) && !grows {
            let outcome = IsrOutcome::Committed { isr, partition_epoch };
            life.replication.settle(proposal, outcome);
        }
        life.wish = Some((proposal, wish));
    }

    /// Applies the outcome of an ISR change, unless the attempt was abandoned.
    pub(super) fn settle(
        &mut self,
        (proposal, attempt): (u64, u64),
        outcome: IsrOutcome,
        now_ns: u64,
    ) -> Vec<Waiting> {
        let Some(life) = &mut self.life else { return Vec::new() };
        let waits = |(known, wish): &(u64, Wish)| *known == proposal && wish.attempt == attempt;
        if life.wish.as_ref().is_some_and(waits) {
            life.replication.settle(proposal, outcome);
            life.wish = None;
        }
        self.progress(now_ns)
    }
}

fn ends(disk: &Disk, settings: Settings) -> LogEnds {
    let promises_all = !settings.syncs || settings.is(Wrong::LeaderCountsUnsynced);
    LogEnds {
        log_start_offset: 0,
        log_end_offset: disk.end(),
        promised_end_offset: if promises_all { disk.end() } else { disk.synced as i64 },
    }
}
