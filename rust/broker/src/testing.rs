//! A broker without sockets for tests: handlers on in-memory logs, a manual clock, and a disk whose
//! operations can be held.

pub(crate) mod gate_disk;

use std::path::Path;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pykafka_log::{
    Clock, DirectoryOptions, Disk, Durability, LogConfig, LogDirectory, ManualClock, MemoryDisk,
};
use pykafka_record::{BatchBuilder, BatchOptions, LeaderEpoch};
use pykafka_wire::{ApiKey, fetch, produce};
use tokio::time::timeout;

use self::gate_disk::{Gate, GateDisk};
use crate::api::dispatch::Dispatcher;
use crate::context::{Context, ContextOptions};
use crate::control_api::event::faults::LogFault;
use crate::control_api::event::{DiskStateKind, Event};
use crate::control_api::image::delta::{ImageDelta, TopicImage};
use crate::control_api::image::step::Step;
use crate::control_api::image::{BrokerEndpoint, PartitionEntry, TopicId};
use crate::network::memory::budget::Share;
use crate::network::outcome::Outcome;
use crate::network::{Handler, Network};
use crate::partition::PartitionOffsets;
use crate::partition::threads::may_wait::MayWait;
use crate::request::{ConnectionInfo, Header};

pub(crate) const NODE: i32 = 1;
pub(crate) const TOPIC: TopicId = [7; 16];
const MEMORY_MAX: u64 = 1 << 28;
/// Name of the listener for brokers.
pub(crate) const REPLICATION: &str = "REPLICATION";
pub(crate) const START_MS: i64 = 1_700_000_000_000;

/// A broker under test.
pub(crate) struct Broker {
    pub(crate) ctx: Arc<Context>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) gate: Arc<Gate>,
    metadata_offset: i64,
}

impl Broker {
    /// The parameters of a listener of this broker.
    pub(crate) fn served(&self) -> (Arc<Network>, Arc<dyn Handler>) {
        (self.ctx.network.clone(), Arc::new(Dispatcher(self.ctx.clone())))
    }

    /// A broker with logs in memory: every promise holds at once.
    pub(crate) fn in_memory() -> Broker {
        Broker::in_memory_of(MEMORY_MAX)
    }

    /// A broker with logs in memory and the given `memory_max`.
    pub(crate) fn in_memory_of(memory_max: u64) -> Broker {
        let gate = Arc::new(Gate::default());
        let disk = Arc::new(GateDisk::new(MemoryDisk::default(), gate.clone()));
        Broker::on(disk, gate, true, Durability::Memory, memory_max)
    }

    /// A broker with synced logs, on a disk whose syncs the test can hold or fail.
    pub(crate) fn on_disk(durability: Durability) -> Broker {
        let gate = Arc::new(Gate::default());
        let disk = Arc::new(GateDisk::new(MemoryDisk::default(), gate.clone()));
        Broker::on(disk, gate, false, durability, MEMORY_MAX)
    }

    /// A broker on a disk of `bytes_max` bytes.
    pub(crate) fn on_disk_of_bytes(bytes_max: u64) -> Broker {
        let gate = Arc::new(Gate::default());
        let disk = Arc::new(GateDisk::new(MemoryDisk::new(bytes_max), gate.clone()));
        Broker::on(disk, gate, false, Durability::Os, MEMORY_MAX)
    }

    /// A broker with another node id; see [`Broker::on_disk`].
    pub(crate) fn on_disk_of(node_id: i32, durability: Durability) -> Broker {
        let gate = Arc::new(Gate::default());
        let disk = Arc::new(GateDisk::new(MemoryDisk::default(), gate.clone()));
        Broker::of(node_id, disk, gate, false, durability, MEMORY_MAX)
    }

    /// Returns another broker on the same disk, as if this one had been killed.
    pub(crate) fn killed_and_restarted(self, durability: Durability) -> Broker {
        let disk = self.ctx.partitions.host().directory.disk().clone();
        Broker::on(disk, self.gate, false, durability, MEMORY_MAX)
    }

    /// Stops this broker and returns another one on the same disk.
    pub(crate) fn stopped_and_restarted(self, durability: Durability) -> Broker {
        self.ctx.partitions.close(&MayWait::as_documented());
        self.killed_and_restarted(durability)
    }

    fn on(
        disk: Arc<dyn Disk>,
        gate: Arc<Gate>,
        in_memory: bool,
        durability: Durability,
        memory_max: u64,
    ) -> Broker {
        Broker::of(NODE, disk, gate, in_memory, durability, memory_max)
    }

    fn of(
        node_id: i32,
        disk: Arc<dyn Disk>,
        gate: Arc<Gate>,
        in_memory: bool,
        durability: Durability,
        memory_max: u64,
    ) -> Broker {
        let clock = Arc::new(ManualClock::new(START_MS));
        let options = DirectoryOptions {
            dir: Path::new("/data"),
            disk,
            lock: None,
            producer_id_expiration_ms: 86_400_000,
            random_seed: 1,
            buffers: Arc::default(),
        };
        let directory = LogDirectory::open(options, clock.clone()).unwrap();
        let ctx = Arc::new(Context::new(ContextOptions {
            node_id,
            cluster_id: "cluster".to_owned(),
            clock: clock.clone(),
            log_defaults: LogConfig::for_durability(durability),
            directory,
            in_memory,
            memory_max,
            seed: 1,
        }));
        let mut broker = Broker { ctx, clock, gate, metadata_offset: 0 };
        broker
            .apply(ImageDelta { brokers: Some(vec![endpoint(NODE, 5)]), ..ImageDelta::default() });
        broker
    }

    /// Applies a delta like `Core::apply`, without fetchers.
    pub(crate) fn apply(&mut self, delta: ImageDelta) {
        let step = self.step(delta);
        self.ctx.carry_out(step);
    }

    /// Creates the next step of the image.
    pub(crate) fn step(&mut self, delta: ImageDelta) -> Step {
        self.metadata_offset += 1;
        let delta = ImageDelta { metadata_offset: self.metadata_offset, ..delta };
        self.ctx.image.load().step(delta).unwrap()
    }

    /// Makes this one of the brokers 1 to 4, whose registrations have epoch 5; they fetch from each
    /// other on [`REPLICATION`].
    pub(crate) fn in_cluster(mut self) -> Broker {
        // The lag clock treats 0 as "long ago".
        self.clock.advance_ms(1);
        self.register(&[(1, 5), (2, 5), (3, 5), (4, 5)]);
        self.set(&[]);
        self
    }

    /// Replaces the broker's settings, except the listener for brokers.
    pub(crate) fn set(&mut self, settings: &[(&str, &str)]) {
        let settings = settings.iter().chain(&[("inter.broker.listener.name", REPLICATION)]);
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let broker_settings = Some(settings.collect());
        self.apply(ImageDelta { broker_settings, ..ImageDelta::default() });
    }

    /// Replaces the registered brokers: node ids and broker epochs.
    pub(crate) fn register(&mut self, brokers: &[(i32, i64)]) {
        let brokers =
            brokers.iter().map(|(node_id, broker_epoch)| endpoint(*node_id, *broker_epoch));
        self.apply(ImageDelta { brokers: Some(brokers.collect()), ..ImageDelta::default() });
    }

    /// Creates or changes `t`, with the one partition `entry`.
    pub(crate) fn replicate(&mut self, entry: PartitionEntry, overrides: &[(&str, &str)]) {
        let topic = TopicImage { partitions: vec![entry], ..topic("t", TOPIC, 0, overrides) };
        self.apply(ImageDelta { topics: vec![topic], ..ImageDelta::default() });
    }

    /// Creates `t` with `partitions` partitions, led here in epoch 0.
    pub(crate) fn with_topic(mut self, partitions: i32, overrides: &[(&str, &str)]) -> Broker {
        let topic = topic("t", TOPIC, partitions, overrides);
        self.apply(ImageDelta { topics: vec![topic], ..ImageDelta::default() });
        self
    }

    /// Produces one batch to `t`-0.
    pub(crate) fn produce(&self, version: i16, acks: i16, records: &[u8]) -> Outcome {
        self.produce_request(version, &request_of(acks, &[(0, Some(records))]))
    }

    pub(crate) fn produce_request(&self, version: i16, request: &produce::Request<'_>) -> Outcome {
        self.produce_as("client", version, request)
    }

    pub(crate) fn produce_as(
        &self,
        client_id: &str,
        version: i16,
        request: &produce::Request<'_>,
    ) -> Outcome {
        let mut header = header(ApiKey::PRODUCE, version);
        header.client_id = Arc::from(client_id);
        self.produce_with(&connection(), &header, request)
    }

    /// Produces on the connection with this id.
    pub(crate) fn produce_on(&self, id: u64, version: i16, acks: i16, records: &[u8]) -> Outcome {
        let conn = ConnectionInfo { id, ..connection() };
        let header = header(ApiKey::PRODUCE, version);
        self.produce_with(&conn, &header, &request_of(acks, &[(0, Some(records))]))
    }

    fn produce_with(
        &self,
        conn: &ConnectionInfo,
        header: &Header,
        request: &produce::Request<'_>,
    ) -> Outcome {
        let mut body = BytesMut::new();
        request.encode(header.api_version, &mut body).unwrap();
        crate::api::produce::handle(&self.ctx, conn, header, body)
    }

    /// Produces with acks=all and returns the base offset.
    pub(crate) fn append(&self, records: &[u8]) -> i64 {
        let (error_code, base_offset) = self.append_result(records);
        assert_eq!(error_code, 0);
        base_offset
    }

    /// Produces with acks=all and returns the error code.
    pub(crate) fn append_code(&self, records: &[u8]) -> i16 {
        self.append_result(records).0
    }

    fn append_result(&self, records: &[u8]) -> (i16, i64) {
        let bytes = replied(self.produce(9, -1, records));
        let response = produce::Response::decode(9, &bytes).unwrap();
        let partition = &response.responses[0].partitions[0];
        (partition.error_code, partition.base_offset)
    }

    pub(crate) fn fetch(&self, version: i16, request: &fetch::Request<'_>) -> Outcome {
        self.fetch_on("PLAINTEXT", version, request)
    }

    /// Fetches on the listener with this name now.
    pub(crate) fn fetch_on(
        &self,
        listener: &str,
        version: i16,
        request: &fetch::Request<'_>,
    ) -> Outcome {
        let mut body = BytesMut::new();
        request.encode(version, &mut body).unwrap();
        let header = Header { received_ns: self.clock.now_ns(), ..header(ApiKey::FETCH, version) };
        let conn = ConnectionInfo { listener: Arc::from(listener), ..connection() };
        crate::api::fetch::handle(&self.ctx, &conn, &header, &body.freeze(), self.room())
    }

    /// An empty share of the response memory.
    pub(crate) fn room(&self) -> Share {
        self.ctx.network.memory.responses.share()
    }

    /// Waits until no thread works for the partitions.
    pub(crate) fn wait_idle(&self) {
        self.ctx.partitions.host().wait_idle(&MayWait::as_documented());
    }

    /// Waits for all maintenance commands and returns their completions.
    pub(crate) fn maintained(&self) -> Vec<(u64, i16, i64)> {
        self.wait_idle();
        let completion = |event| match event {
            Event::Maintained { token, error_code, offset } => Some((token, error_code, offset)),
            _ => None,
        };
        self.events().into_iter().filter_map(completion).collect()
    }

    /// Offsets of `t`-0.
    pub(crate) fn offsets(&self) -> PartitionOffsets {
        self.ctx.partitions.offsets(&MayWait::as_documented(), &(TOPIC, 0)).unwrap()
    }

    /// The log faults in the event queue, in order.
    pub(crate) fn faults(&self) -> Vec<Vec<LogFault>> {
        let faults = |event: Event| event.faults().map(Iterator::collect);
        self.events().into_iter().filter_map(faults).collect()
    }

    /// The disk states in the event queue, in order.
    pub(crate) fn disk_states(&self) -> Vec<DiskStateKind> {
        let state = |event| match event {
            Event::DiskState { state, .. } => Some(state),
            _ => None,
        };
        self.events().into_iter().filter_map(state).collect()
    }

    /// All events in the queue.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.ctx.events.wait(0, 10_000)
    }
}

pub(crate) fn topic(
    name: &str,
    topic_id: TopicId,
    partitions: i32,
    overrides: &[(&str, &str)],
) -> TopicImage {
    TopicImage {
        name: name.to_owned(),
        topic_id,
        partitions: (0..partitions).map(|index| led_here(index, 0, 0)).collect(),
        overrides: overrides.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        ..TopicImage::default()
    }
}

pub(crate) fn led_here(index: i32, leader_epoch: i32, partition_epoch: i32) -> PartitionEntry {
    PartitionEntry {
        index,
        leader: NODE,
        leader_epoch: LeaderEpoch::new(leader_epoch),
        partition_epoch,
        replicas: vec![NODE],
        isr: vec![NODE],
        ..PartitionEntry::default()
    }
}

/// `t`-0, led here in epoch 0, with these replicas.
pub(crate) fn replicated(partition_epoch: i32, replicas: &[i32], isr: &[i32]) -> PartitionEntry {
    let (replicas, isr) = (replicas.to_vec(), isr.to_vec());
    PartitionEntry { replicas, isr, ..led_here(0, 0, partition_epoch) }
}

pub(crate) fn endpoint(node_id: i32, broker_epoch: i64) -> BrokerEndpoint {
    BrokerEndpoint {
        node_id,
        listener: Arc::from("PLAINTEXT"),
        host: Arc::from("127.0.0.1"),
        port: 9092,
        rack: None,
        broker_epoch,
        fenced: false,
        in_controlled_shutdown: false,
    }
}

pub(crate) fn connection() -> ConnectionInfo {
    ConnectionInfo {
        controller_apis: None,
        id: 1,
        listener: Arc::from("PLAINTEXT"),
        client_host: Arc::from("127.0.0.1"),
        principal: Arc::from("User:ANONYMOUS"),
        mute: Arc::default(),
        standing: Arc::default(),
    }
}

pub(crate) fn header(api_key: ApiKey, api_version: i16) -> Header {
    Header {
        api_key,
        api_version,
        correlation_id: 1,
        client_id: Arc::from("client"),
        bytes: 0,
        received_ns: 0,
        received_ms: START_MS,
    }
}

/// A produce request to `t`, by name and by id.
pub(crate) fn request_of<'a>(
    acks: i16,
    partitions: &[(i32, Option<&'a [u8]>)],
) -> produce::Request<'a> {
    let partitions = partitions
        .iter()
        .map(|(index, records)| produce::Partition { index: *index, records: *records })
        .collect();
    produce::Request {
        transactional_id: None,
        acks,
        timeout_ms: 1_000,
        topics: vec![produce::Topic { name: "t", topic_id: TOPIC, partitions }],
    }
}

/// A batch of records with these values; each has the timestamp [`START_MS`].
pub(crate) fn batch(values: &[&str]) -> Vec<u8> {
    batch_with(BatchOptions::default(), values)
}

pub(crate) fn batch_with(options: BatchOptions, values: &[&str]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options);
    for value in values {
        builder.append(START_MS, Some(b"k"), Some(value.as_bytes()), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

/// The body of the response, which may come from another thread; panics for another outcome.
pub(crate) fn replied(outcome: Outcome) -> Bytes {
    match settled(outcome) {
        Outcome::Reply(chunks) => chunks.to_bytes(),
        other => panic!("no response: {other:?}"),
    }
}

/// Waits for the final outcome; panics if it is not decided in time.
pub(crate) fn settled(mut outcome: Outcome) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    while let Outcome::Pending(future) | Outcome::Held(future) | Outcome::Parked(future, _) =
        outcome
    {
        let ended = runtime.block_on(async { timeout(Duration::from_secs(60), future).await });
        outcome = ended.expect("the outcome is never settled");
    }
    outcome
}

/// The future of an outcome that is not decided.
pub(crate) fn pending(outcome: Outcome) -> crate::network::outcome::PendingOutcome {
    match outcome {
        Outcome::Pending(future) | Outcome::Held(future) | Outcome::Parked(future, _) => future,
        other => panic!("not pending: {other:?}"),
    }
}

/// Polls once; `None` while it is pending.
pub(crate) fn poll(future: &mut crate::network::outcome::PendingOutcome) -> Option<Outcome> {
    let mut task = TaskContext::from_waker(Waker::noop());
    match future.as_mut().poll(&mut task) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

impl Broker {
    /// Produces with acks=all and waits for the sync.
    pub(crate) fn append_waiting(&self, records: &[u8]) {
        if let Outcome::Pending(future) = self.produce(9, -1, records) {
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
        }
    }

    /// Produces with acks=1, which does not wait for followers.
    pub(crate) fn append_waiting_for_nobody(&self, records: &[u8]) {
        let bytes = replied(self.produce(9, 1, records));
        let response = produce::Response::decode(9, &bytes).unwrap();
        assert_eq!(response.responses[0].partitions[0].error_code, 0);
    }

    /// Expires all deadlines that have passed.
    pub(crate) fn expire(&self) {
        self.ctx.purgatory.expire(self.clock.now_ns());
    }
}
