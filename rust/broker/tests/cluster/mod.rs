//! Several cores in one process. The test is their controller: it decides the image of the topic
//! `t`, and which node gets it when.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use bytes::Bytes;
use pykafka_broker::{
    Audience, BrokerEndpoint, Core, CoreOptions, ImageDelta, PartitionEntry, TopicId, TopicImage,
};
use pykafka_log::{Clock, Durability, Log, SystemClock};
use pykafka_record::{BatchBuilder, BatchOptions, LeaderEpoch};
use pykafka_wire::{ApiKey, Records, fetch, produce};
use tempfile::TempDir;

use crate::common::{Client, PATIENCE, encoded};

/// Name of the listener for brokers and clients.
const LISTENER: &str = "REPLICATION";
const TOPIC: TopicId = [7; 16];
const OTHER: TopicId = [8; 16];
/// `REQUEST_TIMED_OUT`.
pub const REFUSED_FOR_TIME: i16 = 7;
pub const OFFSET_OUT_OF_RANGE: i16 = 1;
pub const NOT_LEADER_OR_FOLLOWER: i16 = 6;
const PRODUCE_VERSION: i16 = 9;

/// The controller's decision about a partition.
#[derive(Debug, Clone)]
pub struct Decision {
    pub entry: PartitionEntry,
}

impl std::ops::Deref for Decision {
    type Target = PartitionEntry;

    fn deref(&self) -> &PartitionEntry {
        &self.entry
    }
}

impl std::ops::DerefMut for Decision {
    fn deref_mut(&mut self) -> &mut PartitionEntry {
        &mut self.entry
    }
}

impl Decision {
    /// Sets the leader, even to the same one, in the next epoch.
    pub fn lead(&mut self, node: i32) {
        self.entry.leader = node;
        self.entry.leader_epoch = LeaderEpoch::new(self.entry.leader_epoch.get() + 1);
    }
}

/// The response to a consumer.
#[derive(Debug, PartialEq, Eq)]
pub struct Consumed {
    pub error_code: i16,
    pub preferred_read_replica: i32,
    /// Whole batches.
    pub records: Vec<u8>,
}

/// A broker.
pub struct Node {
    pub core: Arc<Core>,
    port: u16,
    offset: AtomicI64,
}

impl Node {
    fn apply(&self, delta: ImageDelta) {
        let metadata_offset = self.offset.fetch_add(1, Ordering::SeqCst);
        self.core.apply(ImageDelta { metadata_offset, ..delta }).expect("a valid step");
    }
}

/// A cluster of the nodes 1 to n.
pub struct Cluster {
    nodes: Vec<Option<Node>>,
    /// Ports of the brokers; a restarted broker keeps its port.
    ports: Vec<u16>,
    dirs: Vec<Option<TempDir>>,
    fenced: Vec<i32>,
    settings: BTreeMap<String, String>,
    topics: Vec<(String, TopicId, Vec<Decision>)>,
}

impl Cluster {
    pub fn in_memory(count: usize, settings: &[(&str, &str)]) -> Cluster {
        Cluster::of((0..count).map(|_| None).collect(), settings)
    }

    pub fn on_disk(count: usize, settings: &[(&str, &str)]) -> Cluster {
        let dir = |_| Some(TempDir::new().expect("a directory"));
        Cluster::of((0..count).map(dir).collect(), settings)
    }

    fn of(dirs: Vec<Option<TempDir>>, settings: &[(&str, &str)]) -> Cluster {
        let own = [("inter.broker.listener.name", LISTENER), ("replica.fetch.backoff.ms", "100")];
        let settings = own.iter().chain(settings);
        let settings = settings.map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let count = dirs.len();
        let (nodes, ports) = ((0..count).map(|_| None).collect(), vec![0; count]);
        let mut cluster =
            Cluster { nodes, ports, dirs, fenced: Vec::new(), settings, topics: Vec::new() };
        for number in 1..=count {
            cluster.open(number as i32);
        }
        let all: Vec<i32> = (1..=count as i32).collect();
        for node in &all {
            cluster.node(*node).apply(cluster.everything());
            cluster.node(*node).core.serve();
        }
        cluster
    }

    fn open(&mut self, number: i32) {
        let index = number as usize - 1;
        let data_dir: Option<PathBuf> = self.dirs[index].as_ref().map(|dir| dir.path().to_owned());
        let durability = if data_dir.is_some() { Durability::Os } else { Durability::Memory };
        let core = Core::new(CoreOptions {
            data_dir,
            node_id: number,
            cluster_id: "cluster-of-a-test".into(),
            durability,
            memory_max: 1 << 28,
            clock: Arc::new(SystemClock::new()),
            seed: number as u64,
        });
        let core = Arc::new(core.expect("an engine"));
        let address = format!("127.0.0.1:{}", self.ports[index]);
        let port = core.listen(LISTENER, &address, Audience::Both, None).expect("a port");
        self.ports[index] = port;
        self.nodes[index] = Some(Node { core, port, offset: AtomicI64::new(0) });
    }

    /// Stops a node, which closes its connections.
    pub fn stop(&mut self, number: i32) {
        let node = self.nodes[number as usize - 1].take().expect("it runs");
        node.core.stop(0);
    }

    /// Stops a node, and publishes that it is fenced.
    pub fn stop_and_fence(&mut self, number: i32) {
        self.stop(number);
        self.fenced.push(number);
        for node in self.running() {
            self.node(node).apply(self.everything());
        }
    }

    /// Starts a node again, on its directory and port, with all decisions.
    pub fn start(&mut self, number: i32) {
        self.fenced.retain(|fenced| *fenced != number);
        self.open(number);
        for node in self.running() {
            self.node(node).apply(self.everything());
        }
        self.node(number).core.serve();
    }

    pub fn node(&self, number: i32) -> &Node {
        self.nodes[number as usize - 1].as_ref().expect("it runs")
    }

    fn everything(&self) -> ImageDelta {
        let endpoint = |(index, port): (usize, &u16)| BrokerEndpoint {
            node_id: index as i32 + 1,
            listener: Arc::from(LISTENER),
            host: Arc::from("127.0.0.1"),
            port: *port,
            rack: Some(format!("rack{}", index + 1).into()),
            broker_epoch: 5,
            fenced: self.fenced.contains(&(index as i32 + 1)),
            in_controlled_shutdown: false,
        };
        ImageDelta {
            brokers: Some(self.ports.iter().enumerate().map(endpoint).collect()),
            broker_settings: Some(self.settings.clone()),
            ..self.decided()
        }
    }

    fn decided(&self) -> ImageDelta {
        let image = |(name, id, partitions): &(String, TopicId, Vec<Decision>)| TopicImage {
            name: name.clone(),
            topic_id: *id,
            partitions: partitions.iter().map(|decision| decision.entry.clone()).collect(),
            ..TopicImage::default()
        };
        ImageDelta { topics: self.topics.iter().map(image).collect(), ..ImageDelta::default() }
    }

    fn running(&self) -> Vec<i32> {
        let running = self.nodes.iter().enumerate().filter(|(_, node)| node.is_some());
        running.map(|(index, _)| index as i32 + 1).collect()
    }

    /// Sets a broker setting on all nodes.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.insert(name.into(), value.into());
        for node in self.running() {
            self.node(node).apply(self.everything());
        }
    }

    /// Limits the version of Fetch on all running nodes.
    pub fn limit_fetch(&self, newest: i16) {
        for node in self.running() {
            let api_versions = Some(BTreeMap::from([(ApiKey::FETCH.0, (4, newest))]));
            self.node(node).apply(ImageDelta { api_versions, ..ImageDelta::default() });
        }
    }

    fn add_topic(&mut self, name: &str, id: TopicId, replicas: &[i32], leader: i32, count: i32) {
        let partitions = (0..count).map(|index| PartitionEntry {
            index,
            leader,
            replicas: replicas.to_vec(),
            isr: replicas.to_vec(),
            ..PartitionEntry::default()
        });
        let partitions = partitions.map(|entry| Decision { entry }).collect();
        self.topics.push((name.to_owned(), id, partitions));
    }

    /// Creates `t` with one partition.
    pub fn create_topic(&mut self, replicas: &[i32], leader: i32) {
        self.create_partitions(replicas, leader, 1);
    }

    /// Creates `t`; only the nodes `told` get the image.
    pub fn create_topic_on(&mut self, told: &[i32], replicas: &[i32], leader: i32) {
        self.add_topic("t", TOPIC, replicas, leader, 1);
        self.tell(told);
    }

    pub fn create_partitions(&mut self, replicas: &[i32], leader: i32, count: i32) {
        self.add_topic("t", TOPIC, replicas, leader, count);
        self.tell(&self.running());
    }

    pub fn create_other_topic(&mut self, replicas: &[i32], leader: i32) {
        self.add_topic("other", OTHER, replicas, leader, 1);
        self.tell(&self.running());
    }

    /// Deletes `t`.
    pub fn delete_topic(&mut self) {
        self.topics.retain(|(_, id, _)| *id != TOPIC);
        for node in self.running() {
            let deleted = vec![TOPIC];
            self.node(node).apply(ImageDelta { deleted, ..ImageDelta::default() });
        }
    }

    /// Changes `t`-0, without publishing it.
    pub fn decide(&mut self, change: impl FnOnce(&mut Decision)) {
        let decision = &mut self.topics[0].2[0];
        change(decision);
        decision.partition_epoch += 1;
    }

    /// Publishes the decisions to some nodes.
    pub fn tell(&self, nodes: &[i32]) {
        for node in nodes {
            self.node(*node).apply(self.decided());
        }
    }

    /// Publishes to one node that `t`-0 is now only on the others.
    pub fn tell_taken_away(&self, node: i32) {
        let mut decided = self.decided();
        let entry = &mut decided.topics[0].partitions[0];
        entry.replicas.retain(|replica| *replica != node);
        entry.isr = entry.replicas.clone();
        entry.leader = entry.replicas[0];
        entry.leader_epoch = LeaderEpoch::new(entry.leader_epoch.get() + 1);
        entry.partition_epoch += 1;
        self.node(node).apply(decided);
    }

    /// Changes `t`-0, and publishes it to all running nodes.
    pub fn change(&mut self, change: impl FnOnce(&mut Decision)) {
        self.decide(change);
        self.tell(&self.running());
    }

    /// The leader of `t`-0.
    pub fn leader(&self) -> i32 {
        self.topics[0].2[0].leader
    }

    /// Appends a batch to `t`-0 at a node; returns error code and offset. Retries while the node
    /// does not know the leader.
    pub fn produce(&self, node: i32, acks: i16, values: &[&str]) -> (i16, i64) {
        self.produce_for(node, acks, values, 10_000)
    }

    pub fn produce_for(&self, node: i32, acks: i16, values: &[&str], ms: i32) -> (i16, i64) {
        self.produce_to(node, 0, acks, values, ms)
    }

    pub fn produce_to(
        &self,
        node: i32,
        index: i32,
        acks: i16,
        values: &[&str],
        ms: i32,
    ) -> (i16, i64) {
        self.send(node, "t", index, acks, values, ms)
    }

    pub fn produce_to_other(&self, node: i32, values: &[&str]) -> (i16, i64) {
        self.send(node, "other", 0, -1, values, 10_000)
    }

    fn send(
        &self,
        node: i32,
        name: &str,
        index: i32,
        acks: i16,
        values: &[&str],
        timeout_ms: i32,
    ) -> (i16, i64) {
        let (mut builder, mut batch) = (BatchBuilder::new(BatchOptions::default()), Vec::new());
        for value in values {
            builder.append(1, None, Some(value.as_bytes()), &[]).expect("a record");
        }
        builder.build(&mut batch).expect("a batch");
        let partitions = vec![produce::Partition { index, records: Some(&batch) }];
        let topics = vec![produce::Topic { name, partitions, ..produce::Topic::default() }];
        let request = produce::Request { acks, timeout_ms, topics, ..produce::Request::default() };
        let body = encoded(|out| request.encode(PRODUCE_VERSION, out));
        let response = self.connect(node).ask(ApiKey::PRODUCE, PRODUCE_VERSION, &body);
        let response = produce::Response::decode(PRODUCE_VERSION, &response).expect("a response");
        let partition = &response.responses[0].partitions[0];
        (partition.error_code, partition.base_offset)
    }

    /// Fetches from `t`-0 as a consumer in a rack, which waits for at most `max_wait_ms`; returns
    /// the response.
    pub fn consume(
        &self,
        node: i32,
        (version, rack_id): (i16, &str),
        fetch_offset: i64,
        max_wait_ms: i32,
    ) -> Consumed {
        let partition = fetch::Partition {
            fetch_offset,
            current_leader_epoch: -1,
            partition_max_bytes: 1 << 20,
            ..fetch::Partition::default()
        };
        let topics =
            vec![fetch::Topic { topic: "t", topic_id: TOPIC, partitions: vec![partition] }];
        let request = fetch::Request {
            replica_id: -1,
            replica_state: fetch::ReplicaState::CONSUMER,
            max_wait_ms,
            min_bytes: 1,
            max_bytes: 1 << 20,
            rack_id,
            topics,
            ..fetch::Request::default()
        };
        let body = encoded(|out| request.encode(version, out));
        let response = Bytes::from(self.connect(node).ask(ApiKey::FETCH, version, &body));
        let response = fetch::Response::decode_shared(version, &response).expect("a response");
        let partition = &response.responses[0].partitions[0];
        let records = match &partition.records {
            Some(Records::Bytes(records)) => records.to_vec(),
            _ => Vec::new(),
        };
        Consumed {
            error_code: partition.error_code,
            preferred_read_replica: partition.preferred_read_replica,
            records,
        }
    }

    fn connect(&self, node: i32) -> Client {
        Client::to(self.node(node).port)
    }

    /// Sends `DeleteRecords` for `t`-0.
    pub fn delete_before(&self, node: i32, offset: i64) {
        self.node(node).core.delete_before(1, &(TOPIC, 0), offset);
        let log = self.log(node).expect("an open log");
        self.wait("the log start", || log.log_start_offset() == offset);
    }

    /// The log of `t`-0 if it is open.
    pub fn log(&self, node: i32) -> Option<Arc<Log>> {
        self.node(node).core.context().partitions.get(&TOPIC, 0)?.opened_log()
    }

    /// True if a node has a directory for `t`-0.
    pub fn has_directory(&self, node: i32) -> bool {
        let dir = self.dirs[node as usize - 1].as_ref().expect("a node on disk");
        dir.path().join("t-0").exists()
    }

    /// All batches of the log of `t`-0; empty until it is open.
    pub fn bytes(&self, node: i32) -> Vec<u8> {
        let Some(log) = self.log(node) else { return Vec::new() };
        let (mut offset, mut bytes) = (log.log_start_offset(), Vec::new());
        // It may be truncated while it is read.
        while let Ok(read) = log.read(offset, 1 << 20, i64::MAX, true) {
            if read.bytes.is_empty() {
                break;
            }
            offset = read.next_offset;
            bytes.extend_from_slice(&read.bytes);
        }
        bytes
    }

    /// Waits until the logs of `t`-0 are equal on these nodes, and not empty.
    pub fn wait_equal(&self, nodes: &[i32]) {
        self.wait("equal logs", || {
            let logs: Vec<_> = nodes.iter().map(|node| self.bytes(*node)).collect();
            logs.iter().all(|log| *log == logs[0]) && !logs[0].is_empty()
        });
    }

    pub fn wait_high_watermark(&self, nodes: &[i32], offset: i64) {
        let partition =
            |node: &i32| self.node(*node).core.context().partitions.get(&TOPIC, 0).expect("t-0");
        self.wait("the high watermark", || {
            nodes.iter().all(|node| partition(node).high_watermark() == offset)
        });
    }

    pub fn wait(&self, what: &str, is_true: impl Fn() -> bool) {
        let clock = SystemClock::new();
        let deadline_ns = clock.now_ns() + PATIENCE.as_nanos() as u64;
        while !is_true() {
            if clock.now_ns() >= deadline_ns {
                for node in self.running() {
                    let log = self.log(node);
                    let log = log.map(|log| (log.offsets(), log.epoch_entries()));
                    eprintln!("{node}: {log:?}");
                    for line in self.node(node).core.drain_log() {
                        eprintln!("{node}: {}", line.text);
                    }
                }
                panic!("{what}: not in time");
            }
            thread::yield_now();
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in self.nodes.iter().flatten() {
            node.core.stop(0);
        }
    }
}
