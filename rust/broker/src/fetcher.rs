//! Followers fetch from their leaders.
//!
//! # Theory of operation
//! For each node that leads partitions which this node follows, there are `num.replica.fetchers`
//! tasks ([`task::Fetcher`]), each with its own partitions, connection and fetch session (KIP-227,
//! [`session`]). A task has one Fetch in flight. The next one is sent after the records of this one
//! are in the logs, and reports their end offsets; this lets the leader acknowledge. Records go
//! from the socket buffer to the log, on a thread that may wait for disks. No client waits for
//! records that the leader has committed without this replica, so the next Fetch is sent while they
//! are written, and its records are written after them.
//!
//! [`Fetchers::carry_out`] adds partitions to tasks, and removes them, after the partitions
//! themselves have applied the step of the image: from then on, records that were fetched in an
//! older leader epoch are not written ([`crate::partition::follower::log`]). A partition starts
//! again in each leader epoch, even with the same leader (contract/replication.md#23): its task
//! gets the log end offset, after all records of older epochs. A response is used only if the
//! partition is still in the epoch and at the offset of the request (contract/replication.md#16).
//!
//! - Tasks receive news at once. If a Fetch waits at the leader for records, it is cancelled for
//!   them, and its connection is closed, but at most twice a second: a partition whose leader
//!   changed must not wait that long.
//! - A partition whose log is slow is omitted from the next Fetch, after the others have waited a
//!   short time for it.
//! - After an error there is a pause, which doubles up to `replica.fetch.backoff.ms`: a pause of
//!   the partition if the error concerns only one, otherwise of the task. A new leader may lack the
//!   image for a moment. A partition whose log refused records, as on a full disk, requests one
//!   batch at a time until one is written.
//! - While the throttle is exceeded, throttled partitions are omitted from Fetches
//!   (`api/replication_throttle.rs`).
//! - A partition with a damaged log is fetched from the damage on, repeatedly, until the log may be
//!   truncated there ([`crate::partition::follower::log`]).
//! - A partition whose log fails, or whose leader has a newer epoch, stops until the image changes
//!   it.

mod assigned;
mod session;
mod task;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pykafka_forks::Mutex;
use pykafka_record::LeaderEpoch;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::task::{Endpoint, Fetcher, News};
use crate::context::Context;
use crate::control_api::image::step::Step;
use crate::control_api::image::{BrokerEndpoint, Image, PartitionEntry, PartitionId};
use crate::control_api::peers::PeerClient;

/// Maximum wait for a task to end, which it does at its next pause, soon.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Identifies a task: the leader, and the number among the tasks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Slot {
    leader: i32,
    number: u32,
}

/// The leader of a partition that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Following {
    leader: i32,
    leader_epoch: LeaderEpoch,
}

/// The changes of a step for the fetchers.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<(PartitionId, Option<Following>)>);

/// All fetchers of a broker.
pub(crate) struct Fetchers {
    ctx: Arc<Context>,
    client: Arc<PeerClient>,
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// `num.replica.fetchers` when partitions were assigned to tasks.
    fetchers_count: u32,
    brokers: Option<Arc<[BrokerEndpoint]>>,
    following: HashMap<PartitionId, (Following, Slot)>,
    running: HashMap<Slot, Running>,
}

struct Running {
    news: UnboundedSender<News>,
    endpoint: Option<Endpoint>,
    task: JoinHandle<()>,
}

impl Fetchers {
    /// Creates the fetchers, without tasks.
    pub(crate) fn new(ctx: Arc<Context>, client: Arc<PeerClient>, runtime: Handle) -> Fetchers {
        Fetchers { ctx, client, runtime, state: Mutex::default() }
    }

    /// The leaders that the partitions of a step follow; called before the step is applied.
    pub(crate) fn changes_of(&self, step: &Step) -> Changes {
        let node_id = self.ctx.node_id;
        let deleted = step
            .deleted
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|entry| ((topic.id, entry.index), None)));
        // The quorum itself fetches its log.
        let changed = step.changed.iter().filter(|change| !change.topic.hidden);
        let changed = changed.flat_map(|change| {
            let id = change.topic.id;
            change.entries().map(move |entry| ((id, entry.index), following(entry, node_id)))
        });
        Changes(deleted.chain(changed).collect())
    }

    /// Applies the changes of a step, after the partitions have applied it. Called by one thread at
    /// a time; never waits.
    pub(crate) fn carry_out(&self, Changes(changes): Changes) {
        let image = self.ctx.image.load();
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        self.deal_again(&mut state, &image);
        for (id, following) in changes {
            if state.following.get(&id).map(|known| known.0) != following {
                state.leave(&id);
                if let Some(following) = following {
                    self.follow(&mut state, &image, id, following);
                }
            }
        }
        state.tell_endpoints(&image);
    }

    /// Ends all tasks; nothing is fetched on return.
    pub(crate) async fn close(&self) {
        let running = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.following.clear();
            std::mem::take(&mut state.running)
        };
        for Running { news, task, .. } in running.into_values() {
            drop(news);
            task.abort();
            let _ = timeout(CLOSE_WAIT, task).await;
        }
    }

    fn follow(&self, state: &mut State, image: &Image, id: PartitionId, following: Following) {
        let Some(partition) = self.ctx.partitions.get(&id.0, id.1) else { return };
        let fetchers_count = image.settings.replica_fetch.fetchers_count.max(1);
        let slot = Slot { leader: following.leader, number: number_of(&id, fetchers_count) };
        state.following.insert(id, (following, slot));
        let running = state.running.entry(slot).or_insert_with(|| self.start(image, slot));
        let leader_epoch = following.leader_epoch;
        let _ = running.news.send(News::Follow { id, partition, leader_epoch });
    }

    fn start(&self, image: &Image, slot: Slot) -> Running {
        let (news, received) = unbounded_channel();
        let endpoint = endpoint_of(image, slot.leader);
        let purpose = format!("replica-{}", slot.number).into();
        let (ctx, client) = (self.ctx.clone(), self.client.clone());
        let fetcher = Fetcher::new(ctx, client, slot.leader, purpose, endpoint.clone(), received);
        Running { news, endpoint, task: self.runtime.spawn(fetcher.run()) }
    }

    /// Assigns all partitions to tasks again if the number of tasks has changed.
    fn deal_again(&self, state: &mut State, image: &Image) {
        let fetchers_count = image.settings.replica_fetch.fetchers_count;
        if std::mem::replace(&mut state.fetchers_count, fetchers_count) == fetchers_count {
            return;
        }
        let all: Vec<_> = state.following.iter().map(|(id, known)| (*id, known.0)).collect();
        for (id, following) in all {
            state.leave(&id);
            self.follow(state, image, id, following);
        }
    }
}

impl State {
    fn leave(&mut self, id: &PartitionId) {
        let Some((_, slot)) = self.following.remove(id) else { return };
        if let Some(running) = self.running.get(&slot) {
            // A task that has crashed has no partitions to remove.
            let _ = running.news.send(News::Leave(*id));
        }
    }

    /// Notifies tasks whose leader has another endpoint.
    fn tell_endpoints(&mut self, image: &Image) {
        if self.brokers.as_ref().is_some_and(|known| Arc::ptr_eq(known, &image.brokers)) {
            return;
        }
        self.brokers = Some(image.brokers.clone());
        for (slot, running) in &mut self.running {
            let endpoint = endpoint_of(image, slot.leader);
            if running.endpoint != endpoint {
                running.endpoint.clone_from(&endpoint);
                let _ = running.news.send(News::Moved(endpoint));
            }
        }
    }
}

/// The leader that a partition follows here, if any.
fn following(entry: &PartitionEntry, node_id: i32) -> Option<Following> {
    let &PartitionEntry { leader, leader_epoch, .. } = entry;
    let is_held = entry.replicas.contains(&node_id) && !entry.lost.contains(&node_id);
    let follows = is_held && leader != node_id && leader >= 0;
    follows.then_some(Following { leader, leader_epoch })
}

/// The number of the task, among those of a leader, for the partition. The partitions of a topic
/// are spread.
fn number_of((topic_id, index): &PartitionId, fetchers_count: u32) -> u32 {
    let topic = topic_id.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
    topic.wrapping_add(index.cast_unsigned()) % fetchers_count
}

/// The endpoint of `leader` for brokers.
fn endpoint_of(image: &Image, leader: i32) -> Option<Endpoint> {
    let listener = image.settings.inter_broker_listener.as_deref()?;
    let is_wanted =
        |broker: &&BrokerEndpoint| broker.node_id == leader && &*broker.listener == listener;
    let broker = image.brokers.iter().find(is_wanted)?;
    Some(Endpoint { host: broker.host.clone(), port: broker.port })
}
