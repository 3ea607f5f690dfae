//! One fetcher: a task with one Fetch in flight. [`super`] describes its work; `exchange` has its
//! requests and responses.

mod exchange;

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use pykafka_client::{Destination, Request, SendError};
use pykafka_record::LeaderEpoch;
use pykafka_wire::ApiKey;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::assigned::{Assigned, Pause, Stage};
use super::session::{Ask, Session};
use crate::api::replication_throttle::{self, held_back};
use crate::context::Context;
use crate::control_api::image::{Image, PartitionId};
use crate::control_api::log_ring::Level;
use crate::control_api::peers::PeerClient;
use crate::control_api::settings::{ReplicaFetch, Side};
use crate::partition::Partition;
use crate::partition::follower::log::{FollowError, Position};
use crate::partition::write_queue::queue::WriterToken;

const TARGET: &str = "broker.fetcher";
/// The newest supported version of Fetch, and the oldest: from it on, responses report diverging
/// logs (KIP-595).
const FETCH_VERSION_MAX: i16 = 18;
const FETCH_VERSION_MIN: i16 = 12;
/// Maximum time that ready partitions wait for one whose log is working, or for a response that may
/// be on its way.
const PATIENCE: Duration = Duration::from_millis(20);
/// Minimum time between two cancelled Fetches, so that responses get through, whatever the amount
/// of news. In between, the leader keeps a Fetch for at most `PATIENCE`, because news often comes
/// in groups.
const GIVES_UP_EVERY: Duration = Duration::from_millis(500);

/// The address of a node for brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) host: Arc<str>,
    pub(super) port: u16,
}

/// Changes of the image for a task.
#[derive(Debug)]
pub(super) enum News {
    /// Follow a partition in this leader epoch; start again if it is followed already.
    Follow { id: PartitionId, partition: Arc<Partition>, leader_epoch: LeaderEpoch },
    /// Stop following a partition.
    Leave(PartitionId),
    /// The leader's endpoint; `None` if it is not known.
    Moved(Option<Endpoint>),
}

/// The result of the work of a log.
struct Done {
    id: PartitionId,
    work: u64,
    result: Result<Position, FollowError>,
}

/// The fetchers have ended this task.
struct Closed;

/// A task that fetches from one leader.
pub(super) struct Fetcher {
    ctx: Arc<Context>,
    client: Arc<PeerClient>,
    leader: i32,
    purpose: Arc<str>,
    endpoint: Option<Endpoint>,
    news: UnboundedReceiver<News>,
    partitions: HashMap<PartitionId, Assigned>,
    /// Partitions whose state differs from the session; every event of a partition adds it here.
    /// The cost of a turn depends only on their number.
    restless: HashSet<PartitionId>,
    done: UnboundedReceiver<Done>,
    tell_done: UnboundedSender<Done>,
    works: u64,
    session: Session,
    /// Version of Fetch; lower if the peer does not support the newest one.
    version: i16,
    /// The pause after errors that concern all partitions.
    pause: Pause,
    /// Time from which a Fetch may be cancelled for news again.
    gives_up_from: Instant,
    /// Last value of [`crate::partition::Host::doubts`].
    doubts: u64,
}

/// The end of a request in flight.
enum Ended {
    Responded(Bytes),
    Failed(SendError),
    /// It was cancelled for news.
    GivenUp,
}

impl Fetcher {
    pub(super) fn new(
        ctx: Arc<Context>,
        client: Arc<PeerClient>,
        leader: i32,
        purpose: Arc<str>,
        endpoint: Option<Endpoint>,
        news: UnboundedReceiver<News>,
    ) -> Fetcher {
        let (tell_done, done) = unbounded_channel();
        Fetcher {
            ctx,
            client,
            leader,
            purpose,
            endpoint,
            news,
            partitions: HashMap::new(),
            restless: HashSet::new(),
            done,
            tell_done,
            works: 0,
            session: Session::default(),
            version: FETCH_VERSION_MAX,
            pause: Pause::default(),
            gives_up_from: Instant::now(),
            doubts: 0,
        }
    }

    /// Runs until [`super::Fetchers`] ends it.
    pub(super) async fn run(mut self) {
        while self.lock().await.is_ok() {}
    }

    /// Sends one Fetch, or waits until one is possible.
    async fn lock(&mut self) -> Result<(), Closed> {
        self.take_news()?;
        self.doubt();
        self.begin();
        self.wait_for_logs().await?;
        let is_paused = self.pause.until(Instant::now()).is_some();
        let Some(to) = self.destination().filter(|_| !is_paused) else {
            return self.wait(None).await;
        };
        let Some(ask) = self.next_ask() else { return self.wait(None).await };
        let Some(body) = self.fetch_request(&ask) else { return Ok(()) };
        match self.ask(&to, body).await? {
            Ended::Responded(body) => self.handle_response(&to, &body).await?,
            Ended::Failed(error) => self.handle_failure(&error),
            Ended::GivenUp => self.session.lost(),
        }
        Ok(())
    }

    /// Checks logs with an unreadable batch, even if the leader has nothing new for them.
    fn doubt(&mut self) {
        let doubts = self.ctx.partitions.host().doubts.load(Ordering::Relaxed);
        if mem::replace(&mut self.doubts, doubts) == doubts {
            return;
        }
        for (id, assigned) in &mut self.partitions {
            if matches!(assigned.stage, Stage::Fetching(_)) && assigned.partition.is_doubtful() {
                assigned.stage = Stage::Beginning;
                self.restless.insert(*id);
            }
        }
    }

    /// The next Fetch; `None` if there is nothing to fetch.
    fn next_ask(&mut self) -> Option<Ask> {
        self.hold_back();
        let now = Instant::now();
        let partitions = &self.partitions;
        let spec = |id: &PartitionId| partitions.get(id).and_then(|assigned| assigned.spec(now));
        let ask = self.session.ask(self.restless.iter().map(|id| (*id, spec(id))));
        let rests =
            |id: &PartitionId| partitions.get(id).is_none_or(|assigned| assigned.rests(now));
        self.restless.retain(|id| !rests(id));
        ask
    }

    /// While the throttle is exceeded, keeps throttled partitions out of the next Fetch
    /// (`api/replication_throttle.rs`).
    fn hold_back(&mut self) {
        let image = self.ctx.image.load();
        let Some(held) = held_back(&self.ctx, &image.settings, Side::Follower) else { return };
        let (node_id, until) = (self.ctx.node_id, Instant::now() + held);
        for (id, assigned) in &mut self.partitions {
            let is_held = is_throttled(&image, node_id, id) && assigned.lags();
            if is_held && !assigned.partition.is_in_sync(node_id) {
                assigned.held_until = Some(until);
                self.restless.insert(*id);
            }
        }
    }

    /// Counts the records that were received for a partition.
    fn count(&self, id: &PartitionId, bytes: usize) {
        let image = self.ctx.image.load();
        let has_limit = image.settings.replication_throttle.limit(Side::Follower).is_some();
        if has_limit && is_throttled(&image, self.ctx.node_id, id) {
            replication_throttle::record(&self.ctx, &image.settings, Side::Follower, bytes);
        }
    }

    /// The restless partitions that are still assigned.
    fn restless(&self) -> impl Iterator<Item = (&PartitionId, &Assigned)> {
        self.restless.iter().filter_map(|id| Some((id, self.partitions.get(id)?)))
    }

    fn settings(&self) -> ReplicaFetch {
        self.ctx.image.load().settings.replica_fetch
    }

    fn backoff(&self) -> Duration {
        Duration::from_millis(self.settings().backoff_ms)
    }

    fn destination(&self) -> Option<Destination> {
        let Endpoint { host, port } = self.endpoint.clone()?;
        Some(Destination { purpose: self.purpose.clone(), host, port })
    }

    /// Processes all news and results that have arrived.
    fn take_news(&mut self) -> Result<(), Closed> {
        while let Ok(done) = self.done.try_recv() {
            self.worked(done);
        }
        loop {
            match self.news.try_recv() {
                Ok(news) => self.hear(news),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(Closed),
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Follow { id, partition, leader_epoch } => {
                self.partitions.insert(id, Assigned::new(partition, leader_epoch));
                self.restless.insert(id);
            }
            News::Leave(id) => {
                self.partitions.remove(&id);
                self.restless.insert(id);
            }
            News::Moved(endpoint) => {
                if let Some(to) = self.destination() {
                    self.client.disconnect(&to);
                }
                self.endpoint = endpoint;
                self.pause.succeeded();
                self.session.lost();
            }
        }
    }

    /// Waits for an event that a turn must process: news, the end of work, the end of a pause, or
    /// `until`.
    async fn wait(&mut self, until: Option<Instant>) -> Result<(), Closed> {
        let now = Instant::now();
        let pauses = self.restless().filter_map(|(_, assigned)| assigned.due(now));
        let until = pauses.chain(self.pause.until(now)).chain(until).min();
        tokio::select! {
            news = self.news.recv() => self.hear(news.ok_or(Closed)?),
            Some(done) = self.done.recv() => self.worked(done),
            () = sleep_to(until) => {}
        }
        Ok(())
    }

    /// Waits for logs that are working; only for a short time if other partitions could be fetched
    /// in the meantime.
    async fn wait_for_logs(&mut self) -> Result<(), Closed> {
        while let Some(since) = self.working_since() {
            let now = Instant::now();
            let is_ready = self.is_ready(now);
            if is_ready && now >= since + PATIENCE {
                break;
            }
            self.wait(is_ready.then_some(since + PATIENCE)).await?;
            self.take_news()?;
            self.begin();
        }
        Ok(())
    }

    /// Start time of the most recent work that is still running and blocks further fetches.
    fn working_since(&self) -> Option<Instant> {
        let since = |assigned: &Assigned| match assigned.stage {
            Stage::Working { since, ahead: None, .. } => Some(since),
            _ => None,
        };
        self.restless().filter_map(|(_, assigned)| since(assigned)).max()
    }

    /// Waits a short time for logs that must write the records before those of a response. If a log
    /// takes longer, its part of the response is discarded, and nothing more is fetched for it
    /// before it has finished.
    async fn wait_for_ahead(&mut self) -> Result<(), Closed> {
        let until = Instant::now() + PATIENCE;
        while self.is_ahead() && Instant::now() < until {
            self.wait(Some(until)).await?;
        }
        for id in &self.restless {
            if let Some(assigned) = self.partitions.get_mut(id)
                && let Stage::Working { ahead, .. } = &mut assigned.stage
            {
                assigned.is_slow |= ahead.take().is_some();
            }
        }
        Ok(())
    }

    /// True if a partition is fetched from a position that its log has not reached yet.
    fn is_ahead(&self) -> bool {
        let is_ahead =
            |assigned: &Assigned| matches!(assigned.stage, Stage::Working { ahead: Some(_), .. });
        self.restless().any(|(_, assigned)| is_ahead(assigned))
    }

    /// True if a partition can be fetched.
    fn is_ready(&self, now: Instant) -> bool {
        let told = self.restless.iter().filter(|id| self.session.told(id).is_some()).count();
        self.session.told_count() > told
            || self.restless().any(|(_, assigned)| assigned.spec(now).is_some())
    }

    /// Determines the positions of logs that are not known yet.
    fn begin(&mut self) {
        let now = Instant::now();
        let is_due = |assigned: &Assigned| {
            assigned.stage == Stage::Beginning && assigned.pause.until(now).is_none()
        };
        let due = self.restless().filter(|(_, assigned)| is_due(assigned));
        let due: Vec<_> = due.map(|(id, assigned)| (*id, assigned.leader_epoch)).collect();
        for (id, leader_epoch) in due {
            self.work(id, move |partition, writer| partition.begin_to_follow(leader_epoch, writer));
        }
    }

    /// Starts work of a partition's log, on a thread that may wait for the disk.
    fn work(
        &mut self,
        id: PartitionId,
        work: impl FnOnce(&Partition, &WriterToken) -> Result<Position, FollowError> + Send + 'static,
    ) {
        self.begin_work(id, None, None, work);
    }

    /// Writes the batches that were fetched from `before`, and concurrently fetches from `ahead`.
    fn write(
        &mut self,
        id: PartitionId,
        before: i64,
        ahead: Option<Position>,
        write: impl FnOnce(&Partition, &WriterToken) -> Result<Position, FollowError> + Send + 'static,
    ) {
        self.begin_work(id, Some(before), ahead, write);
    }

    fn begin_work(
        &mut self,
        id: PartitionId,
        before: Option<i64>,
        ahead: Option<Position>,
        work: impl FnOnce(&Partition, &WriterToken) -> Result<Position, FollowError> + Send + 'static,
    ) {
        let Some(assigned) = self.partitions.get_mut(&id) else { return };
        self.restless.insert(id);
        self.works += 1;
        assigned.stage = Stage::Working { work: self.works, since: Instant::now(), before, ahead };
        let told = Tell { id, work: self.works, to: self.tell_done.clone(), is_told: false };
        assigned.partition.urgent_command(move |partition, writer| {
            let result = match writer {
                Ok(writer) => work(partition, writer),
                Err(_) => Err(FollowError::Superseded),
            };
            told.tell(result);
        });
    }

    fn worked(&mut self, Done { id, work, result }: Done) {
        let backoff = self.backoff();
        let Some(assigned) = self.partitions.get_mut(&id) else { return };
        let Stage::Working { work: latest, since, before, .. } = assigned.stage else { return };
        if latest != work {
            return;
        }
        assigned.is_slow &= since.elapsed() >= PATIENCE;
        match result {
            Ok(position) => {
                // Records that are received but not written would be fetched again and again
                // without a pause.
                if before.is_some_and(|before| position.log_end_offset > before) {
                    assigned.is_refused = false;
                    assigned.pause.succeeded();
                }
                assigned.stage = Stage::Fetching(position);
            }
            // The image determines how it continues.
            Err(FollowError::Superseded) => assigned.stage = Stage::Stopped,
            Err(error @ FollowError::Failed(_)) => {
                assigned.stage = Stage::Stopped;
                self.stopped(&id, &error.to_string());
            }
            Err(error @ FollowError::Refused(_)) => {
                assigned.stage = Stage::Beginning;
                assigned.is_refused = true;
                if assigned.pause.failed(backoff) == 1 {
                    self.note(&id, &error.to_string());
                }
            }
        }
    }

    /// Sends a request, and processes news until the response.
    async fn ask(&mut self, to: &Destination, body: Bytes) -> Result<Ended, Closed> {
        let mut response = self.send(to, ApiKey::FETCH, self.version, body);
        let mut gives_up_at = None;
        loop {
            tokio::select! {
                biased;
                result = &mut response => return Ok(ended(result)),
                news = self.news.recv() => self.hear(news.ok_or(Closed)?),
                Some(done) = self.done.recv() => self.worked(done),
                () = sleep_to(gives_up_at) => {
                    self.gives_up_from = Instant::now() + GIVES_UP_EVERY;
                    self.client.disconnect(to);
                    return Ok(Ended::GivenUp);
                }
            }
            if gives_up_at.is_none() && self.is_behind() {
                gives_up_at = Some(self.gives_up_from.max(Instant::now() + PATIENCE));
            }
        }
    }

    /// True if there is work that the request in flight does not do.
    fn is_behind(&self) -> bool {
        let now = Instant::now();
        let is_new = |assigned: &Assigned| {
            assigned.stage == Stage::Beginning && assigned.pause.until(now).is_none()
        };
        self.partitions.is_empty()
            || self.restless().any(|(id, assigned)| {
                let spec = assigned.spec(now);
                is_new(assigned) || (spec.is_some() && spec.as_ref() != self.session.told(id))
            })
    }

    fn send(
        &self,
        to: &Destination,
        api_key: ApiKey,
        api_version: i16,
        body: Bytes,
    ) -> oneshot::Receiver<Result<Bytes, SendError>> {
        let settings = self.settings();
        let timeout = duration(settings.timeout_ms);
        // The limit is soft, by a batch; a response with only a part of a batch grows as it
        // arrives.
        let response_bytes_expected = usize::try_from(settings.bytes_max).unwrap_or(0) * 2;
        let (tell, response) = oneshot::channel();
        let request = Request { api_key, api_version, body, timeout, response_bytes_expected };
        self.client.send(to, request, move |ended| drop(tell.send(ended)));
        response
    }

    /// Handles a request without a response: its partitions are fetched in a new session.
    fn handle_failure(&mut self, error: &SendError) {
        self.session.lost();
        if let SendError::UnsupportedVersion { max, .. } = error
            && (FETCH_VERSION_MIN..self.version).contains(max)
        {
            self.version = *max;
            return;
        }
        // After a restart it may support other versions.
        self.version = FETCH_VERSION_MAX;
        self.fetch_failed(&error.to_string());
    }

    /// Starts a pause for all partitions.
    fn fetch_failed(&mut self, reason: &str) {
        if self.pause.failed(self.backoff()) == 1 {
            let leader = self.leader;
            let text = || format!("cannot fetch from node {leader}, and tries again: {reason}");
            self.ctx.log_ring.log(Level::Warning, TARGET, text);
        }
    }

    fn stopped(&self, id: &PartitionId, reason: &str) {
        let reason = format!("{reason}; it stops until its leader epoch changes");
        self.note(id, &reason);
    }

    fn note(&self, id: &PartitionId, reason: &str) {
        let Some(assigned) = self.partitions.get(id) else { return };
        let (partition, leader) = (&assigned.partition, self.leader);
        let (topic, index) = (&partition.topic, partition.index);
        let text = || format!("{topic}-{index} does not follow node {leader} now: {reason}");
        self.ctx.log_ring.log(Level::Warning, TARGET, text);
    }
}

/// Reports the end of work, even if it panics.
struct Tell {
    id: PartitionId,
    work: u64,
    to: UnboundedSender<Done>,
    is_told: bool,
}

impl Tell {
    fn tell(mut self, result: Result<Position, FollowError>) {
        self.is_told = true;
        // A task that has ended does not need the result.
        let _ = self.to.send(Done { id: self.id, work: self.work, result });
    }
}

impl Drop for Tell {
    fn drop(&mut self) {
        if !self.is_told {
            let result = Err(FollowError::Failed("its work has crashed".to_owned()));
            let _ = self.to.send(Done { id: self.id, work: self.work, result });
        }
    }
}

fn ended(result: Result<Result<Bytes, SendError>, oneshot::error::RecvError>) -> Ended {
    match result {
        Ok(Ok(body)) => Ended::Responded(body),
        Ok(Err(error)) => Ended::Failed(error),
        Err(_) => Ended::Failed(SendError::Closed),
    }
}

/// True if a partition is throttled on this broker as a follower.
fn is_throttled(image: &Image, node_id: i32, id: &PartitionId) -> bool {
    let topic = image.topic_by_id(&id.0);
    topic.is_some_and(|topic| topic.throttled.follower.contains(id.1, node_id))
}

fn duration(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// Sleeps until a time; forever without one.
async fn sleep_to(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}
