//! Brokers, a controller and the network between them; the seed determines the events.

use super::controller::{Controller, Verdict, Wish};
use super::node::{Fetch, Fetched, Node, Record, Settings, Waiting};
use super::random::Random;
use super::{Wrong, node};
use crate::partition::replication::Role;
use crate::partition::replication::isr::IsrOutcome;

/// Events from this number on are faults.
const FAULTS: usize = 83;
const DELIVERY: usize = 10;
/// Maximum rounds of a heal, after which everything must be restored.
const ROUNDS_MAX: usize = 300;
/// Maximum pause of a step, in nanoseconds.
const PAUSE_NS_MAX: usize = 60;

/// A message in the network.
#[derive(Debug, Clone)]
enum Message {
    Fetch { from: i32, to: i32, number: u64, fetch: Fetch },
    Fetched { to: i32, number: u64, response: Option<Fetched> },
    Wish { from: i32, proposal: u64, wish: Wish },
    Verdict { to: i32, attempt: u64, proposal: u64, verdict: Verdict },
}

/// A simulated cluster.
#[derive(Debug)]
pub(super) struct World {
    random: Random,
    now_ns: u64,
    settings: Settings,
    /// True if requests of leaders reach the controller late.
    is_controller_slow: bool,
    /// One in this many faults happens.
    faults_one_in: usize,
    nodes: Vec<Node>,
    controller: Controller,
    network: Vec<Message>,
    fetches: u64,
    attempts: u64,
    values: u32,
    /// All records that any broker has considered committed, in order.
    committed: Vec<Record>,
    /// For each broker in its current run: leader epoch and high watermark.
    marks: Vec<(i32, i64)>,
    tells: bool,
    /// The events, if they are recorded.
    pub(super) told: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64, wrong: Option<Wrong>, tells: bool) -> World {
        let mut random = Random::new(seed);
        let count = [3, 3, 4, 5][random.below(4)];
        let replicas: Vec<i32> = (1..=count).collect();
        let settings =
            Settings { syncs: random.below(2) == 0, min_isr: random.below(2) as i32 + 1, wrong };
        let is_controller_slow = random.below(2) == 0;
        let faults_one_in = [1, 1, 1, 1, 4, 16][random.below(6)];
        let controller = Controller::new(&replicas, wrong);
        let mut nodes: Vec<Node> = replicas.iter().map(|id| Node::new(*id, settings)).collect();
        for node in &mut nodes {
            node.start(Some(controller.registration(node.id).broker_epoch));
        }
        let mut world = World {
            random,
            now_ns: 1,
            settings,
            is_controller_slow,
            faults_one_in,
            marks: vec![(-1, 0); nodes.len()],
            nodes,
            controller,
            network: Vec::new(),
            fetches: 0,
            attempts: 0,
            values: 0,
            committed: Vec::new(),
            tells,
            told: Vec::new(),
        };
        world.tell(|world| format!("{:?}", world.settings));
        world
    }

    /// Runs one event, and checks the invariants after it.
    ///
    /// # Errors
    /// The violated invariant.
    pub(super) fn step(&mut self) -> Result<(), String> {
        let node = self.random.below(self.nodes.len());
        let mut event = self.random.below(100);
        if event >= FAULTS && self.random.below(self.faults_one_in) > 0 {
            event = DELIVERY;
        }
        match event {
            0..=9 => self.produce(node)?,
            10..=45 => self.deliver()?,
            46..=47 => self.nodes[node].write()?,
            48..=49 => self.lose(),
            50..=62 => self.fetch(node),
            63..=70 => self.hear(node)?,
            71..=74 => self.sync(node)?,
            75..=79 => self.scan(node)?,
            80..=81 => self.pass(),
            82 => self.checkpoint(node),
            83 => self.end(node),
            84 => self.restart(node)?,
            85..=87 => self.start(node),
            88..=91 => self.session_ends(node),
            92..=96 => self.join(node),
            97 => self.elect(node),
            98 => self.replace_disk(node)?,
            _ => self.lose_middle(node),
        }
        self.check()
    }

    /// Ends all faults: committed records reach all brokers, and more records are acknowledged.
    ///
    /// # Errors
    /// The violated invariant, or a goal that was not reached within the rounds.
    pub(super) fn heal(&mut self) -> Result<(), String> {
        for round in 0..ROUNDS_MAX {
            if self.is_lost() {
                return Ok(());
            }
            self.depose_damaged();
            if round % 20 == 10 {
                self.outrun_damaged()?;
            }
            for node in 0..self.nodes.len() {
                if self.waits_for_restart(node) {
                    self.end(node);
                }
                self.start(node);
                if self.nodes[node].life.as_ref().is_some_and(|life| life.broker_epoch.is_none()) {
                    self.controller.fence(self.nodes[node].id);
                }
                self.join(node);
                self.hear_to(node, self.controller.images.len())?;
                self.nodes[node].write()?;
                self.sync(node)?;
                self.fetch(node);
                self.scan(node)?;
            }
            while !self.network.is_empty() {
                self.deliver()?;
                self.check()?;
            }
            self.now_ns += 5;
            if round > 10 && self.is_whole() {
                return self.goes_on();
            }
        }
        Err(format!("not whole again: {:?} {:?}", self.controller.partition, self.nodes))
    }

    fn is_whole(&self) -> bool {
        let partition = &self.controller.partition;
        let everything = &self.nodes[0].disk.records;
        partition.isr.len() == self.nodes.len()
            && self.nodes.iter().all(|node| {
                node.disk.records == *everything
                    && !node.disk.is_damaged
                    && node.high_watermark() == node.disk.end()
                    && node.role() != Role::None
            })
    }

    fn goes_on(&mut self) -> Result<(), String> {
        let before = self.committed.len();
        let leader = self.controller.partition.leader;
        let leader = self.nodes.iter().position(|node| node.id == leader).expect("it is whole");
        for _ in 0..ROUNDS_MAX {
            self.produce(leader)?;
            for node in 0..self.nodes.len() {
                self.nodes[node].write()?;
                self.fetch(node);
                self.sync(node)?;
            }
            while !self.network.is_empty() {
                self.deliver()?;
                self.check()?;
            }
            if self.committed.len() > before {
                return Ok(());
            }
        }
        Err("nothing is acknowledged any more".to_owned())
    }

    fn produce(&mut self, node: usize) -> Result<(), String> {
        self.values += 1;
        let acknowledged = self.nodes[node].produce(self.values, self.now_ns);
        self.tell(|world| format!("{} is given {}", world.nodes[node].id, world.values));
        self.acknowledge(node, acknowledged)
    }

    fn deliver(&mut self) -> Result<(), String> {
        if self.network.is_empty() {
            return Ok(());
        }
        let message = self.network.swap_remove(self.random.below(self.network.len()));
        self.tell(|_| format!("arrives: {message:?}"));
        match message {
            Message::Fetch { from, to, number, fetch } => {
                let node = self.index(to);
                let served = self.nodes[node].serve(from, &fetch, self.now_ns);
                let (response, acknowledged) = match served {
                    Ok((response, acknowledged)) => (Some(response), acknowledged),
                    Err(_) => (None, Vec::new()),
                };
                self.network.push(Message::Fetched { to: from, number, response });
                self.acknowledge(node, acknowledged)
            }
            Message::Fetched { to, number, response } => {
                let node = self.index(to);
                let Some(life) = &mut self.nodes[node].life else { return Ok(()) };
                if life.fetch != Some(number) {
                    return Ok(());
                }
                life.fetch = None;
                let Some(response) = response else { return Ok(()) };
                self.nodes[node].fetched(response)?;
                // Most logs are fast.
                if self.random.below(4) > 0 { self.nodes[node].write() } else { Ok(()) }
            }
            Message::Wish { .. } if self.is_controller_slow && self.random.below(4) > 0 => {
                self.network.push(message);
                Ok(())
            }
            Message::Wish { from, proposal, wish } => {
                let (attempt, verdict) = (wish.attempt, self.controller.judge(&wish));
                self.network.push(Message::Verdict { to: from, attempt, proposal, verdict });
                Ok(())
            }
            Message::Verdict { to, attempt, proposal, verdict } => {
                let outcome = match verdict {
                    Verdict::Committed { isr, partition_epoch } => {
                        IsrOutcome::Committed { isr, partition_epoch }
                    }
                    Verdict::Refused => IsrOutcome::Rejected,
                    Verdict::Outdated => IsrOutcome::Unknown,
                    Verdict::NotNow => return Ok(()),
                };
                let node = self.index(to);
                let acknowledged =
                    self.nodes[node].settle((proposal, attempt), outcome, self.now_ns);
                self.acknowledge(node, acknowledged)
            }
        }
    }

    fn lose(&mut self) {
        if !self.network.is_empty() {
            let lost = self.network.swap_remove(self.random.below(self.network.len()));
            self.tell(|_| format!("is lost: {lost:?}"));
        }
    }

    /// Sends one fetch at a time; the next one after some time without a response.
    fn fetch(&mut self, node: usize) {
        let Some((to, fetch)) = self.nodes[node].fetch() else { return };
        let life = self.nodes[node].life.as_mut().expect("it fetches");
        if life.fetch.is_some() && self.random.below(4) > 0 {
            return;
        }
        self.fetches += 1;
        life.fetch = Some(self.fetches);
        let from = self.nodes[node].id;
        self.network.push(Message::Fetch { from, to, number: self.fetches, fetch });
    }

    /// Images arrive in order, several at once; a broker that is not registered yet serves with
    /// none of them.
    fn hear(&mut self, node: usize) -> Result<(), String> {
        let newest = self.controller.images.len();
        let Some(life) = &self.nodes[node].life else { return Ok(()) };
        let heard = life.heard;
        if heard < newest {
            let number = heard + 1 + self.random.below(newest - heard);
            self.hear_to(node, number)?;
        }
        Ok(())
    }

    fn hear_to(&mut self, node: usize, number: usize) -> Result<(), String> {
        let registration = self.controller.registration(self.nodes[node].id);
        let Some(life) = &self.nodes[node].life else { return Ok(()) };
        if life.broker_epoch.is_none() || number <= registration.image {
            return Ok(());
        }
        let image = self.controller.images[number - 1].clone();
        self.tell(|world| format!("{} hears of {:?}", world.nodes[node].id, image.assignment));
        let acknowledged = self.nodes[node].hear(number, &image, self.now_ns);
        self.acknowledge(node, acknowledged)
    }

    fn sync(&mut self, node: usize) -> Result<(), String> {
        let records = self.nodes[node].disk.records.len();
        self.nodes[node].sync(records);
        let acknowledged = self.nodes[node].progress(self.now_ns);
        self.acknowledge(node, acknowledged)
    }

    /// A leader checks its followers; it repeats a request that has no response.
    fn scan(&mut self, node: usize) -> Result<(), String> {
        let acknowledged = self.nodes[node].progress(self.now_ns);
        self.acknowledge(node, acknowledged)?;
        self.nodes[node].wish(self.now_ns);
        let from = self.nodes[node].id;
        let Some(life) = &mut self.nodes[node].life else { return Ok(()) };
        if let Some((proposal, wish)) = &mut life.wish {
            self.attempts += 1;
            wish.attempt = self.attempts;
            let (proposal, wish) = (*proposal, wish.clone());
            self.network.push(Message::Wish { from, proposal, wish });
        }
        Ok(())
    }

    fn pass(&mut self) {
        self.now_ns += self.random.below(PAUSE_NS_MAX) as u64;
    }

    fn checkpoint(&mut self, node: usize) {
        if self.nodes[node].life.is_some() {
            self.nodes[node].disk.checkpoint = self.nodes[node].high_watermark();
        }
    }

    /// Kills a process; with `fsync`, together with a power failure.
    fn end(&mut self, node: usize) {
        if self.nodes[node].life.is_none() {
            return;
        }
        let (durable, all) =
            (self.nodes[node].durable().len(), self.nodes[node].disk.records.len());
        let kept = durable + self.random.below(all - durable + 1);
        self.nodes[node].end(kept as i64);
        self.marks[node] = (-1, 0);
        self.tell(|world| format!("{} ends with {kept}", world.nodes[node].id));
    }

    fn start(&mut self, node: usize) {
        if self.nodes[node].life.is_none() {
            self.nodes[node].start(None);
            self.tell(|world| format!("{} starts", world.nodes[node].id));
        }
    }

    /// Restarts a broker before its session ends: it must wait for that end.
    fn restart(&mut self, node: usize) -> Result<(), String> {
        self.end(node);
        self.start(node);
        self.join(node);
        self.hear_to(node, self.controller.images.len())
    }

    /// Ends the session of a broker; a running one may be disconnected from the controller.
    fn session_ends(&mut self, node: usize) {
        let lives = self.nodes[node].life.as_ref().is_some_and(|life| life.broker_epoch.is_some());
        if !lives || self.random.below(2) == 0 {
            self.controller.fence(self.nodes[node].id);
            self.tell(|world| format!("{} is fenced", world.nodes[node].id));
        }
    }

    /// Registers a broker, which serves once it has received its registration.
    fn join(&mut self, node: usize) {
        let id = self.nodes[node].id;
        let Some(life) = &mut self.nodes[node].life else { return };
        let registration = self.controller.registration(id);
        match life.broker_epoch {
            None => life.broker_epoch = self.controller.register(id),
            Some(_) if life.heard > registration.image => self.controller.unfence(id),
            Some(_) => {}
        }
        self.tell(|world| format!("{id} joins: {:?}", world.controller.registration(id)));
    }

    fn elect(&mut self, node: usize) {
        self.controller.elect(self.nodes[node].id);
    }

    /// Replaces the disk of a broker that is down for longer than its session by an empty one,
    /// unless it is the only in-sync replica.
    fn replace_disk(&mut self, node: usize) -> Result<(), String> {
        let id = self.nodes[node].id;
        if self.nodes[node].life.is_some() {
            return Ok(());
        }
        self.controller.fence(id);
        if self.controller.partition.isr.contains(&id) {
            return Ok(());
        }
        self.nodes[node].disk = node::Disk::default();
        self.tell(|_| format!("{id} gets an empty disk"));
        self.start(node);
        self.join(node);
        self.hear_to(node, self.controller.images.len())?;
        self.join(node);
        Ok(())
    }

    /// Damages the log of a broker that does not lead, while others in the ISR are intact; it may
    /// be running.
    fn lose_middle(&mut self, node: usize) {
        let id = self.nodes[node].id;
        let end = self.nodes[node].disk.records.len();
        let partition = &self.controller.partition;
        let mut others = partition.isr.iter().filter(|member| **member != id);
        let is_one_whole = others.any(|member| !self.nodes[self.index(*member)].disk.is_damaged);
        if end == 0 || !is_one_whole || self.nodes[node].role() == Role::Leader {
            return;
        }
        let offset = self.random.below(end) as i64;
        self.nodes[node].damage(offset);
        // It does not have these committed records any more.
        self.marks[node].1 = 0;
        self.tell(|_| format!("{id} is damaged at {offset}"));
    }

    /// True if all ISR members are damaged; then the partition stays offline.
    fn is_lost(&self) -> bool {
        let isr = &self.controller.partition.isr;
        isr.iter().all(|member| self.nodes[self.index(*member)].disk.is_damaged)
    }

    /// Stops a leader with a damaged log, so that another broker leads.
    fn depose_damaged(&mut self) {
        let leader = self.controller.partition.leader;
        if leader != -1 && self.nodes[self.index(leader)].disk.is_damaged {
            self.controller.fence(leader);
        }
    }

    /// True if a replica was found damaged while it ran, and is not in the ISR.
    fn waits_for_restart(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        let was_running = node.life.as_ref().is_some_and(|life| life.damaged_in.is_some());
        node.disk.is_damaged && was_running && !self.controller.partition.isr.contains(&node.id)
    }

    /// A damaged member of the ISR that has all records of its leader is not detected before there
    /// are more.
    fn outrun_damaged(&mut self) -> Result<(), String> {
        let leader = self.nodes.iter().position(|node| node.role() == Role::Leader);
        let is_one_damaged = self.nodes.iter().any(|node| node.disk.is_damaged);
        match leader {
            Some(leader) if is_one_damaged => self.produce(leader),
            _ => Ok(()),
        }
    }

    fn acknowledge(&mut self, node: usize, acknowledged: Vec<Waiting>) -> Result<(), String> {
        self.commit(node)?;
        for Waiting { offset, value } in acknowledged {
            let kept = self.committed.get(usize::try_from(offset).expect("an offset"));
            if kept.is_none_or(|record| record.value != value) {
                return Err(format!("{value} was acknowledged at {offset}, where {kept:?} is"));
            }
        }
        Ok(())
    }

    /// Checks that a broker's committed records are those of other brokers (`ValidHighWatermark`).
    fn commit(&mut self, node: usize) -> Result<(), String> {
        let node = &self.nodes[node];
        let high_watermark = usize::try_from(node.high_watermark()).expect("an offset");
        let Some(own) = node.disk.records.get(..high_watermark) else {
            return Err(format!(
                "{}: the high watermark {high_watermark} is above its log end",
                node.id
            ));
        };
        let known = self.committed.len().min(high_watermark);
        if own[..known] != self.committed[..known] {
            let committed = &self.committed;
            return Err(format!("{} has {own:?}, and {committed:?} is committed", node.id));
        }
        self.committed.extend_from_slice(&own[known..]);
        Ok(())
    }

    /// Checks the invariants after each step.
    ///
    /// - `SingleLeader`: no broker leads in the leader epoch of another one.
    /// - `LeaderInIsr`.
    /// - `ValidHighWatermark`; `MonotonicHighWatermark` during a broker's run.
    /// - `StrongIsr`, `CommittedDataSurvives`: committed records are on the disks of all committed
    ///   ISR members, except of those that are known to be damaged.
    /// - `MonotonicEpoch`: epochs never decrease, neither a broker's during its run nor those of
    ///   the records in a log.
    fn check(&mut self) -> Result<(), String> {
        for node in 0..self.nodes.len() {
            self.commit(node)?;
            self.check_marks(node)?;
            let records = &self.nodes[node].disk.records;
            if !records.is_sorted_by_key(|record| record.epoch) {
                return Err(format!("epochs go back: {records:?}"));
            }
        }
        let mut leaders: Vec<_> = (self.nodes.iter())
            .filter(|node| node.role() == Role::Leader)
            .filter_map(|node| Some(node.life.as_ref()?.replication.assignment().leader_epoch))
            .collect();
        leaders.sort_unstable();
        if leaders.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("two lead in one epoch: {leaders:?}"));
        }
        let partition = &self.controller.partition;
        if partition.leader != -1 && !partition.isr.contains(&partition.leader) {
            return Err(format!("the leader is out of sync: {partition:?}"));
        }
        for member in &partition.isr {
            let node = &self.nodes[self.index(*member)];
            let durable = node.durable();
            // A damaged broker serves no followers.
            if !node.disk.is_damaged && !durable.starts_with(&self.committed) {
                let committed = &self.committed;
                return Err(format!("{member} is in sync with {durable:?}: not {committed:?}"));
            }
        }
        Ok(())
    }

    fn check_marks(&mut self, node: usize) -> Result<(), String> {
        let Some(life) = &self.nodes[node].life else { return Ok(()) };
        let (epoch, high_watermark) = self.marks[node];
        let now = life.replication.assignment().leader_epoch.get();
        let reached = life.replication.high_watermark();
        if now < epoch || reached < high_watermark {
            let id = self.nodes[node].id;
            return Err(format!(
                "{id} goes back from {epoch}, {high_watermark} to {now}, {reached}"
            ));
        }
        self.marks[node] = (now, reached);
        Ok(())
    }

    fn index(&self, id: i32) -> usize {
        self.nodes.iter().position(|node| node.id == id).expect("a broker")
    }

    fn tell(&mut self, line: impl FnOnce(&World) -> String) {
        if self.tells {
            let line = line(self);
            self.told.push(line);
        }
    }
}
