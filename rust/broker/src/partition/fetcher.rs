//! Followers fetch from their leaders.
//!
//! # Theory of operation
//! For each node that leads partitions which this one follows there are `num.replica.fetchers` tasks ([`task::Fetcher`]),
//! each with its own partitions, connection and fetch session (KIP-227, [`session`]). A task has one Fetch under way: the
//! next one goes when what this one brought is in the logs, and says so; that is what lets the leader acknowledge.
//! Records go from the buffer of the socket to the log, on a thread that may wait for disks. What the leader has committed
//! without this replica nobody waits for: the next Fetch goes while it is written, and its answer is written behind that.
//!
//! [`Fetchers::carry_out`] gives partitions to tasks, and takes them away, once the image's step has reached the partitions
//! themselves: from then on nothing that was fetched in an older leader epoch is written
//! ([`crate::partition::follower_log`]). A partition begins anew in each leader epoch, also with the same leader
//! (contract/replication.md#23): its task asks the log where it ends, behind all that older epochs wrote there. An answer is
//! used only where the partition still stands as it was asked for (contract/replication.md#16): in this epoch, at this
//! offset.
//!
//! - News reach a task at once. Where a Fetch waits at the leader for records, it is given up for them, with its
//!   connection, twice a second at most: a partition whose leader changed must not wait that long.
//! - A partition whose log is slow is left out of the next Fetch, once the others have waited a moment for it.
//! - After an error there is a pause, which doubles up to `replica.fetch.backoff.ms`: that of the partition if the error
//!   is, else that of the task. What a new leader does not know yet it knows in a moment. A partition whose log has refused
//!   what came, as on a full disk, asks for one batch at a time until one is written.
//! - While a throttle is exceeded, what it is for is left out of Fetches (`api/replication_throttle.rs`).
//! - A partition whose log is damaged is fetched from the damage on, again and again, until that may be given up
//!   ([`crate::partition::follower_log`]).
//! - A partition whose log fails, or whose epoch the leader has left behind, stops until the image changes it.

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
use crate::api::context::Context;
use crate::seam::image::step::Step;
use crate::seam::image::{BrokerEndpoint, Image, PartitionEntry, PartitionId};
use crate::seam::peers::PeerClient;

/// A task that is told to end does so at its next pause, which is soon.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// A task: the leader, and which of its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Slot {
    leader: i32,
    number: u32,
}

/// Whom a partition follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Following {
    leader: i32,
    leader_epoch: LeaderEpoch,
}

/// What a step of the image means to the fetchers.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<(PartitionId, Option<Following>)>);

/// All fetchers of a broker. See the module.
pub(crate) struct Fetchers {
    ctx: Arc<Context>,
    client: Arc<PeerClient>,
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// `num.replica.fetchers` as partitions were given out.
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
    /// Without tasks.
    pub(crate) fn new(ctx: Arc<Context>, client: Arc<PeerClient>, runtime: Handle) -> Fetchers {
        Fetchers { ctx, client, runtime, state: Mutex::default() }
    }

    /// Whom the partitions of a step follow, before it is carried out.
    pub(crate) fn changes_of(&self, step: &Step) -> Changes {
        let node_id = self.ctx.node_id;
        let deleted = step
            .deleted
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|entry| ((topic.id, entry.index), None)));
        // The quorum fetches its log itself.
        let changed = step.changed.iter().filter(|change| !change.topic.hidden);
        let changed = changed.flat_map(|change| {
            let id = change.topic.id;
            change.entries().map(move |entry| ((id, entry.index), following(entry, node_id)))
        });
        Changes(deleted.chain(changed).collect())
    }

    /// Carries the changes of a step out that the partitions know already. Called by one thread at a time; never waits.
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

    /// Gives all partitions out again once there is another number of tasks.
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
            // One that has crashed has nothing to leave.
            let _ = running.news.send(News::Leave(*id));
        }
    }

    /// Tells tasks whose leader has moved.
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

/// Whom a partition follows here, if anyone.
fn following(entry: &PartitionEntry, node_id: i32) -> Option<Following> {
    let &PartitionEntry { leader, leader_epoch, .. } = entry;
    let is_held = entry.replicas.contains(&node_id) && !entry.lost.contains(&node_id);
    let follows = is_held && leader != node_id && leader >= 0;
    follows.then_some(Following { leader, leader_epoch })
}

/// Which of a leader's tasks has the partition. Partitions of a topic are spread.
fn number_of((topic_id, index): &PartitionId, fetchers_count: u32) -> u32 {
    let topic = topic_id.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
    topic.wrapping_add(index.cast_unsigned()) % fetchers_count
}

/// Where brokers fetch from `leader`.
fn endpoint_of(image: &Image, leader: i32) -> Option<Endpoint> {
    let listener = image.settings.inter_broker_listener.as_deref()?;
    let is_wanted =
        |broker: &&BrokerEndpoint| broker.node_id == leader && &*broker.listener == listener;
    let broker = image.brokers.iter().find(is_wanted)?;
    Some(Endpoint { host: broker.host.clone(), port: broker.port })
}
