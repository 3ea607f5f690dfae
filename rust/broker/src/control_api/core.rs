//! The interface of the data plane for Python (docs/PLANES.md). Every method may be called from any
//! thread. None waits for a disk, except those that are documented to do so, for the start and the
//! stop; other disk operations are commands with a token.

use std::io;
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pykafka_client::{Destination, Request, SendError};
use pykafka_forks::Mutex;
use pykafka_forks::Socket;
use pykafka_log::{Clock, DirectoryLock, Durability, LogConfig};
use pykafka_record::LeaderEpoch;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::api::dispatch::Dispatcher;
use crate::context::{Context, ContextOptions};
use crate::control_api::await_high_watermark::{self, Wanted};
use crate::control_api::event::{Event, Token};
use crate::control_api::image::PartitionId;
use crate::control_api::image::delta::ImageDelta;
use crate::control_api::image::step::Refusal;
use crate::control_api::log_ring::{Level, LogLine};
use crate::control_api::peers::Peers;
use crate::control_api::statistics;
use crate::fetcher::Fetchers;
use crate::kafka_error::KafkaError;
use crate::maintenance;
use crate::network::engine::Engine;
use crate::network::fault_injection::Unreachable;
use crate::network::listener::{self, Audience, Listens};
use crate::partition::log::storage::{Storage, StorageOpenError};
use crate::partition::partition_table::PartitionTable;
use crate::partition::partition_table::command::{BatchKind, KeyValue};
use crate::partition::partition_table::health::ProbeNeeds;
use crate::partition::partition_table::markers::Marker;
use crate::partition::replication::isr::{BrokerState, IsrOutcome};
use crate::partition::threads::may_wait::MayWait;
use crate::partition::{PartitionOffsets, purgatory};
use crate::request::ControllerApis;

const TARGET: &str = "broker.core";
/// Time after the grace period of a stop in which closed connections must end.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Parameters of [`Core::new`].
pub struct CoreOptions {
    /// The only log directory; `None` keeps every log in memory.
    pub data_dir: Option<PathBuf>,
    /// Node id of this broker.
    pub node_id: i32,
    /// The cluster id in meta.properties.
    pub cluster_id: String,
    /// Durability of topics without their own.
    pub durability: Durability,
    /// Maximum bytes of requests and responses in progress; without a data directory also of logs.
    pub memory_max: u64,
    /// The broker's only clock.
    pub clock: Arc<dyn Clock>,
    /// Seed of unpredictable ids and of jitter.
    pub seed: u64,
}

/// Error of a call to the core.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The runtime's threads could not be started.
    #[error("the engine cannot start: {0}")]
    Engine(io::Error),
    /// The data directory cannot be opened.
    #[error(transparent)]
    Storage(#[from] StorageOpenError),
    /// Binding failed.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The given address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// `stop` was called.
    #[error("the core is stopped")]
    Stopped,
}

/// One broker's data plane.
pub struct Core {
    ctx: Arc<Context>,
    engine: Arc<Engine>,
    peers: Peers,
    fetchers: Fetchers,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    lock: Mutex<Option<DirectoryLock>>,
    /// Serializes `apply` and `stop`, so that steps are applied in order.
    steps: Mutex<()>,
}

impl Core {
    /// Locks and opens the data directory; partitions are opened only after [`Core::apply`] lists
    /// them.
    pub fn new(options: CoreOptions) -> Result<Core, CoreError> {
        let engine = Engine::shared().map_err(CoreError::Engine)?;
        let CoreOptions { data_dir, memory_max, clock, seed, .. } = options;
        let storage = Storage::open(data_dir.as_deref(), memory_max, clock.clone(), seed)?;
        let ctx = Arc::new(Context::new(ContextOptions {
            node_id: options.node_id,
            cluster_id: options.cluster_id,
            clock,
            log_defaults: LogConfig::for_durability(options.durability),
            directory: storage.directory,
            in_memory: storage.in_memory,
            memory_max,
            seed,
        }));
        let tasks = vec![
            engine.handle().spawn(purgatory::run(ctx.purgatory.clone())),
            engine.handle().spawn(maintenance::run(ctx.clone())),
            engine.handle().spawn(maintenance::begin(ctx.clone())),
        ];
        let (tasks, lock) = (Mutex::new(tasks), Mutex::new(storage.lock));
        let runtime = engine.handle().clone();
        let (events, gates) = (ctx.events.clone(), ctx.network.gates.clone());
        let peers = Peers::new(options.node_id, seed, events, gates, runtime.clone());
        let fetchers = Fetchers::new(ctx.clone(), peers.client().clone(), runtime);
        Ok(Core { ctx, engine, peers, fetchers, tasks, lock, steps: Mutex::default() })
    }

    /// The state that the components of this broker share.
    pub fn context(&self) -> &Arc<Context> {
        &self.ctx
    }

    /// Blocks until there are events, `deadline_ns` of [`Core::now_ns`] or [`Core::wake`]; returns
    /// at most `events_max` events.
    pub fn wait(&self, deadline_ns: u64, events_max: usize) -> Vec<Event> {
        self.ctx.events.wait(deadline_ns, events_max)
    }

    /// Makes [`Core::wait`] return.
    pub fn wake(&self) {
        self.ctx.events.wake();
    }

    /// Monotonic; the broker's only clock for deadlines.
    pub fn now_ns(&self) -> u64 {
        self.ctx.clock.now_ns()
    }

    /// The time up to which [`Core::wait`] has returned all events.
    pub fn horizon_ns(&self) -> u64 {
        self.ctx.events.horizon_ns()
    }

    /// Wall clock.
    pub fn time_ms(&self) -> i64 {
        self.ctx.clock.now_ms()
    }

    /// Binds `HOST:PORT` (port 0 selects a free port) and accepts connections; requests are handled
    /// only after [`Core::serve`]. Returns the port.
    ///
    /// A controller listener serves only `controller_apis`, and immediately: every request goes to
    /// Python. Connection limits apply to clients, not to nodes.
    pub fn listen(
        &self,
        name: &str,
        address: &str,
        audience: Audience,
        controller_apis: Option<ControllerApis>,
    ) -> Result<u16, CoreError> {
        if self.ctx.is_stopping() {
            return Err(CoreError::Stopped);
        }
        let failed = |source| CoreError::Listen { address: address.into(), source };
        let bound = listener::bind(address).map_err(failed)?;
        let port = bound.local_addr().map_err(failed)?.port();
        let controller_apis = controller_apis.map(Arc::new);
        let listens = Listens { name: Arc::from(name), audience, controller_apis };
        self.accept(listens, bound).map_err(failed)?;
        Ok(port)
    }

    fn accept(&self, listens: Listens, bound: StdListener) -> io::Result<()> {
        let _inside = self.engine.handle().enter();
        let listener = Socket::new(TcpListener::from_std(bound)?);
        let mut tasks = self.tasks.lock();
        if listens.audience == Audience::Both {
            let known_nodes = self.ctx.network.known_nodes.clone();
            tasks.push(self.engine.handle().spawn(async move { known_nodes.follow().await }));
        }
        let (network, handler) = (self.ctx.network.clone(), Dispatcher(self.ctx.clone()));
        let accepting = listener::accept(network, Arc::new(handler), listens, listener);
        tasks.push(self.engine.handle().spawn(accepting));
        Ok(())
    }

    /// Starts to handle requests, once all committed metadata is applied. Waits for the disk if
    /// directories of deleted topics are left.
    pub fn serve(&self) {
        self.ctx.partitions.settle_directories(&MayWait::as_documented());
        self.ctx.network.serving.send_replace(true);
    }

    /// The parts of `delta` that [`Core::apply`] could not apply; called before its records are
    /// proposed.
    pub fn check(&self, delta: &ImageDelta) -> Vec<Refusal> {
        self.ctx.image.load().check(delta)
    }

    /// Applies one committed metadata step; a step that is not newer than the last changes nothing.
    /// Total: a part that cannot be applied is skipped and logged.
    pub fn apply(&self, delta: ImageDelta) -> Result<(), CoreError> {
        let _ordered = self.steps.lock();
        if self.ctx.is_stopping() {
            return Err(CoreError::Stopped);
        }
        let Some(step) = self.ctx.image.load().step(delta) else { return Ok(()) };
        for refusal in &step.refusals {
            self.ctx
                .log_ring
                .log(Level::Error, TARGET, || format!("a committed change is left out: {refusal}"));
        }
        let changes = self.fetchers.changes_of(&step);
        self.ctx.carry_out(step);
        self.fetchers.carry_out(changes);
        Ok(())
    }

    /// Responds to requests: encoded bodies by request id. Unknown and closed ids are ignored.
    pub fn respond(&self, replies: impl IntoIterator<Item = (u64, Bytes)>) {
        replies.into_iter().for_each(|(id, body)| self.ctx.requests.respond(id, body));
    }

    /// Reserves memory for a response of at most `bytes`, before it is built: `Maintained(token)`.
    /// There is no completion if the connection of the request closes before.
    pub fn reserve_response(&self, token: Token, request: u64, bytes: usize) {
        self.ctx.requests.reserve(request, token, bytes);
    }

    /// Closes a connection; an unknown id belongs to a closed one and is ignored.
    pub fn close_connection(&self, connection: u64, reason: &str) {
        self.ctx.network.connections.close(connection, reason);
    }

    /// Rejects new connections and requests, finishes requests in progress within `grace_ms`,
    /// completes every token, closes the logs and releases the directory. Idempotent.
    pub fn stop(&self, grace_ms: u64) {
        self.end(Duration::from_millis(grace_ms), PartitionTable::close);
    }

    /// Stops as if the process had died: no responses are sent, nothing is written or synced, and
    /// no clean-shutdown marker is written. The directory is released, and its files are unused on
    /// return. Idempotent.
    pub fn abandon(&self) {
        self.cut_off(true, Unreachable::All);
        self.end(Duration::ZERO, PartitionTable::abandon);
    }

    /// Drops all traffic of connections, or restores it: of accepted ones, and of those to peers
    /// (`network::fault_injection`).
    pub fn cut_off(&self, accepted: bool, unreachable: Unreachable) {
        self.ctx.network.gates.set(accepted, unreachable);
    }

    fn end(&self, grace: Duration, close: fn(&PartitionTable, &MayWait)) {
        let _ordered = self.steps.lock();
        if self.ctx.network.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        self.ctx.verifications.refuse_all();
        let tasks: Vec<_> = self.tasks.lock().drain(..).collect();
        tasks.iter().for_each(JoinHandle::abort);
        self.engine.handle().block_on(async {
            // An aborted task ends later, on another thread: until then its listener accepts.
            for task in tasks {
                let _ = timeout(CLOSE_WAIT, task).await;
            }
            self.fetchers.close().await;
            self.peers.close().await;
            let connections = &self.ctx.network.connections;
            connections.drain_all();
            if timeout(grace, connections.wait_none()).await.is_err() {
                connections.close_all("the broker stops");
                let _ = timeout(CLOSE_WAIT, connections.wait_none()).await;
            }
        });
        self.ctx.purgatory.expire_all();
        close(&self.ctx.partitions, &MayWait::as_documented());
        drop(self.lock.lock().take());
        self.ctx.log_ring.log(Level::Info, TARGET, || "stopped".into());
        self.ctx.events.close();
    }

    /// Appends `records` as one batch; `Appended` is sent when the high watermark has passed it, or
    /// with the error.
    pub fn append(
        &self,
        token: Token,
        partition: &PartitionId,
        leader_epoch: Option<LeaderEpoch>,
        records: &[KeyValue],
        kind: BatchKind,
    ) {
        if self.ctx.is_stopping() {
            let error_code = KafkaError::BrokerNotAvailable.code();
            return self.ctx.events.push(Event::Appended { token, error_code, offset: -1 });
        }
        self.ctx.partitions.append(token, partition, leader_epoch, records, kind);
    }

    /// Appends another node's batches to the metadata log unchanged; `Appended` is sent when they
    /// are synced, or with the error. Never waits.
    pub fn append_fetched(
        &self,
        token: Token,
        partition: &PartitionId,
        leader_epoch: LeaderEpoch,
        batches: BytesMut,
    ) {
        if self.ctx.is_stopping() {
            let error_code = KafkaError::BrokerNotAvailable.code();
            return self.ctx.events.push(Event::Appended { token, error_code, offset: -1 });
        }
        self.ctx.partitions.append_fetched(token, partition, leader_epoch, batches);
    }

    /// Truncates the metadata log; `Maintained` carries its new end. Never waits.
    pub fn truncate(&self, token: Token, partition: &PartitionId, offset: i64) {
        if self.ctx.is_stopping() {
            let error_code = KafkaError::BrokerNotAvailable.code();
            return self.ctx.events.push(Event::Maintained { token, error_code, offset: -1 });
        }
        self.ctx.partitions.truncate(token, partition, offset);
    }

    /// Empties the metadata log, which then starts at `offset`; `Maintained` carries its start.
    /// Never waits.
    pub fn restart_log(&self, token: Token, partition: &PartitionId, offset: i64) {
        if self.ctx.is_stopping() {
            let error_code = KafkaError::BrokerNotAvailable.code();
            return self.ctx.events.push(Event::Maintained { token, error_code, offset: -1 });
        }
        self.ctx.partitions.restart_log(token, partition, offset);
    }

    /// Raises the high watermark of the metadata log, at most to its end.
    pub fn commit(&self, partition: &PartitionId, high_watermark: i64) {
        self.ctx.partitions.commit(partition, high_watermark);
    }

    /// Appends a marker to each partition; `MarkersWritten` is sent when each is committed or
    /// rejected. Never waits.
    pub fn write_markers(&self, token: Token, markers: &[Marker]) {
        if self.ctx.is_stopping() {
            let error_codes = vec![KafkaError::BrokerNotAvailable.code(); markers.len()];
            return self.ctx.events.push(Event::MarkersWritten { token, error_codes });
        }
        self.ctx.partitions.write_markers(token, markers);
    }

    /// Awaits the high watermark of a partition that this node leads; `Maintained` carries it once
    /// it is `offset` or more, or the error with which the leader epoch ends.
    pub fn when_committed(
        &self,
        token: Token,
        partition: &PartitionId,
        leader_epoch: LeaderEpoch,
        offset: i64,
    ) {
        if self.ctx.is_stopping() {
            let error_code = KafkaError::BrokerNotAvailable.code();
            return self.ctx.events.push(Event::Maintained { token, error_code, offset: -1 });
        }
        let wanted = Wanted { partition: *partition, leader_epoch, offset };
        self.engine.handle().spawn(await_high_watermark::wait(self.ctx.clone(), token, wanted));
    }

    /// Responds to `VerifyTransaction`: one code for each of its partitions. An unknown token is
    /// ignored.
    pub fn verified(&self, token: Token, error_codes: Vec<i16>) {
        self.ctx.verifications.settle(token, error_codes);
    }

    /// Returns whole batches from `offset` on, up to the log end or the high watermark. Waits for
    /// the disk: for the start.
    pub fn read(
        &self,
        partition: &PartitionId,
        offset: i64,
        bytes_max: usize,
        upto_log_end: bool,
    ) -> Result<Bytes, KafkaError> {
        let may_wait = MayWait::as_documented();
        self.ctx.partitions.read(&may_wait, partition, offset, bytes_max, upto_log_end)
    }

    /// A consistent snapshot of a partition's offsets. Waits for the disk: for the start.
    pub fn offsets(&self, partition: &PartitionId) -> Result<PartitionOffsets, KafkaError> {
        self.ctx.partitions.offsets(&MayWait::as_documented(), partition)
    }

    /// Sends a request to another node; `Replied` carries the response, or the error. Never waits.
    pub fn send(&self, token: Token, to: &Destination, request: Request) {
        if self.ctx.is_stopping() {
            return self.ctx.events.push(Event::Replied { token, replied: Err(SendError::Closed) });
        }
        self.peers.send(token, to, request);
    }

    /// Opens a connection to another node, if there is none, and awaits its end: `Replied` carries
    /// an error, `LISTENER_NOT_FOUND` if the connection is refused, `REQUEST_TIMED_OUT` if it stays
    /// open. Never waits.
    pub fn watch(&self, token: Token, to: &Destination, timeout: Duration) {
        if self.ctx.is_stopping() {
            return self.ctx.events.push(Event::Replied { token, replied: Err(SendError::Closed) });
        }
        self.peers.watch(token, to, timeout);
    }

    /// Closes the connection to a node; its open requests fail.
    pub fn disconnect(&self, to: &Destination) {
        self.peers.disconnect(to);
    }

    /// Sets the epoch of this process's registration, which the clean-shutdown marker contains.
    /// Without it, the marker does not identify a process.
    pub fn registered(&self, broker_epoch: i64) {
        self.ctx.partitions.host().directory.set_broker_epoch(broker_epoch);
    }

    /// Makes an ISR pending; returns its proposal's id, or `None` if it is not possible now.
    pub fn propose_isr(
        &self,
        partition: &PartitionId,
        leader_epoch: LeaderEpoch,
        partition_epoch: i32,
        isr: Vec<BrokerState>,
    ) -> Option<u64> {
        self.ctx.partitions.propose_isr(partition, leader_epoch, partition_epoch, isr)
    }

    /// Applies the controller's response to a proposal.
    pub fn settle_isr(&self, proposal: u64, outcome: IsrOutcome) {
        self.ctx.partitions.settle_isr(proposal, outcome);
    }

    /// `DeleteRecords`; `Maintained` carries the new log start offset.
    pub fn delete_before(&self, token: Token, partition: &PartitionId, offset: i64) {
        self.ctx.partitions.delete_before(token, partition, offset);
    }

    /// Deletes every log's segments beyond its topic's retention; `Maintained` is sent when all
    /// logs were checked.
    pub fn enforce_retention(&self, token: Token) {
        self.ctx.partitions.enforce_retention(token);
    }

    /// Queries the sizes of partitions' logs, and the space of the data directory's file system;
    /// completes as `LogDirs`.
    pub fn describe_log_dirs(&self, token: Token, partitions: &[PartitionId]) {
        self.ctx.partitions.describe_log_dirs(token, partitions);
    }

    /// Partitions whose clients have waited longer than this for the disk.
    pub fn stalled(&self, wait_ns_min: u64) -> Vec<PartitionId> {
        self.ctx.partitions.stalled(wait_ns_min)
    }

    /// Probes the disk; completes as `Maintained`, whose offset is the duration in milliseconds.
    pub fn probe_disk(&self, token: Token, needs: ProbeNeeds) {
        self.ctx.partitions.probe_disk(token, needs);
    }

    /// The state of each idempotent producer of a partition; completes as `Producers`.
    pub fn describe_producers(&self, token: Token, partition: &PartitionId) {
        self.ctx.partitions.describe_producers(token, partition);
    }

    /// Whole batches of a partition up to its log end, from `offset` or the log start offset on;
    /// completes as `RecordsRead`.
    pub fn read_records(&self, token: Token, id: &PartitionId, offset: i64, bytes_max: usize) {
        self.ctx.partitions.read_records(token, id, offset, bytes_max);
    }

    /// Lines `name value` in UTF-8: one flat snapshot.
    pub fn statistics(&self) -> String {
        let mut out = String::new();
        self.ctx.network.statistics.write(&mut out);
        self.ctx.partitions.host().appended.write(&mut out);
        let levels = [
            ("connections_open", self.ctx.network.connections.count()),
            ("requests_parked", self.ctx.requests.count()),
            ("requests_parked_bytes", self.ctx.network.memory.requests.held()),
            ("events_waiting", self.ctx.events.count()),
            ("connections_muted", self.ctx.network.memory.input.waiting()),
            ("input_held_bytes", self.ctx.network.memory.input.held()),
            ("responses_held_bytes", self.ctx.network.memory.responses.bytes()),
        ];
        for (name, value) in levels {
            statistics::put(&mut out, name, value as u64);
        }
        out
    }

    /// Log lines since the last call.
    pub fn drain_log(&self) -> Vec<LogLine> {
        self.ctx.log_ring.drain()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.stop(0);
    }
}
