//! The right to change a partition's files, and what waits for it.
//!
//! Whoever changes the log's files has the right to write: a [`Writer`], which only [`Partition::work`],
//! [`Partition::drain`] and [`Turn::take_right_at_once`] make, and of which there is one at a time. It is not a lock, so
//! nobody can wait for it: what needs it is left in the partition's queue, and the thread that has it does that too. If
//! nobody has it, a thread that may wait for disks is sent: one of the pool for writes if clients wait, one of the
//! maintenance lane otherwise.
//!
//! One round of work is, in this order: a deleted log's files go; retention; commands; the opening of the log; the beginning of a
//! leader epoch; appends. A thread goes on with the next round unless other partitions wait for a thread.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, mpsc};

use pykafka_log::perturb::hand_over;
use tokio::sync::oneshot;

use super::append::{Append, Queued};
use super::large::LargeRoom;
use super::leaving::Left;
use super::sync::Begun;
use super::threads::contained::contained;
use super::threads::lane::Urgency;
use super::threads::pool::MayWait;
use super::turn::Turn;
use super::waiters::AckWaiter;
use super::{LogSlot, Partition};
use crate::kafka_error::KafkaError;

/// What is appended between two turns.
const ROUND_BYTES_MAX: usize = 4 << 20;

/// The right to change the log's files. See the module.
pub(super) struct Writer(());

/// Runs with the right to write, or is refused.
pub(super) type Command = Box<dyn FnOnce(&Partition, Result<&Writer, KafkaError>) + Send>;

/// What waits for the right to write.
#[derive(Default)]
pub(super) struct WorkQueue {
    /// Those up to the first that is large, which waits for its turn unless `room` is here ([`super::large`]).
    appends: VecDeque<Queued>,
    room: Option<LargeRoom>,
    at_work: Option<AtWork>,
    /// Whether this partition is listed for the room.
    is_listed: bool,
    /// Who waits for the log to be opened.
    openers: Vec<oneshot::Sender<()>>,
    commands: Vec<Command>,
    /// The files of a partition that was deleted: they have to go.
    leaving: Option<Left>,
    /// Whether retention is to be enforced.
    expires: bool,
    /// Whether a thread has the right to write, or is on its way.
    is_taken: bool,
}

/// The appends that a thread writes.
enum AtWork {
    /// The first of them arrived at this time.
    Since(u64),
    /// A large one, which needs the processor as well.
    Large,
}

/// What one round does.
struct Round {
    leaving: Option<Left>,
    expires: bool,
    commands: Vec<Command>,
    needs_log: bool,
    appends: Vec<Queued>,
    room: Option<LargeRoom>,
}

impl WorkQueue {
    /// Lets a new partition work on nothing before [`Partition::begin_drain`] is called for it.
    pub(super) fn hold_back(&mut self) {
        self.is_taken = true;
    }

    /// Whether an append may go ahead of it.
    pub(super) fn is_idle(&self) -> bool {
        self.appends.is_empty() && !self.is_taken
    }

    /// Whether nothing in it takes long but the disk.
    fn is_quick(&self) -> bool {
        self.appends.iter().all(Queued::is_quick)
    }

    pub(super) fn push(&mut self, append: Queued) {
        self.appends.push_back(append);
    }

    /// Puts appends back, in front of those that came after them.
    pub(super) fn put_back(&mut self, appends: Vec<Queued>) {
        for append in appends.into_iter().rev() {
            self.appends.push_front(append);
        }
    }

    /// Whether the first append is a large one.
    fn is_large(&self) -> bool {
        self.appends.front().is_some_and(Queued::is_large)
    }

    /// Whether an append can go on.
    fn has_appends(&self) -> bool {
        !self.appends.is_empty() && (self.room.is_some() || !self.is_large())
    }

    /// What is appended between two turns; at least one, if any can go on. A large one comes alone: those behind it can be
    /// forgotten meanwhile.
    fn take_appends(&mut self) -> Vec<Queued> {
        if self.is_large() {
            let count = usize::from(self.room.is_some());
            self.at_work = self.room.is_some().then_some(AtWork::Large);
            return self.appends.drain(..count).collect();
        }
        self.at_work = self.appends.front().map(|first| AtWork::Since(first.since_ns));
        let mut bytes = 0;
        let within = self.appends.iter().take_while(|queued| {
            let is_within = bytes < ROUND_BYTES_MAX && !queued.is_large();
            bytes += queued.append().batch.len();
            is_within
        });
        let count = within.count();
        self.appends.drain(..count).collect()
    }

    /// Begins the write of an append by the thread that brought it.
    pub(super) fn begin_work(&mut self, now_ns: u64) {
        self.at_work = Some(AtWork::Since(now_ns));
    }

    /// Ends the work on the appends that were taken out.
    pub(super) fn end_work(&mut self) {
        self.at_work = None;
    }

    /// Arrival of the append that has waited longest for the disk alone.
    pub(super) fn waits_since_ns(&self) -> Option<u64> {
        match &self.at_work {
            Some(AtWork::Since(since_ns)) => Some(*since_ns),
            Some(AtWork::Large) => None,
            None => {
                let first = self.appends.front().filter(|first| !first.is_large());
                first.map(|first| first.since_ns)
            }
        }
    }

    /// Takes all appends out, to be told that they are refused.
    pub(super) fn refuse_appends(&mut self) -> impl Iterator<Item = Append> {
        mem::take(&mut self.appends).into_iter().map(Queued::into_append)
    }

    pub(super) fn take_openers(&mut self) -> Vec<oneshot::Sender<()>> {
        mem::take(&mut self.openers)
    }

    pub(super) fn take_commands(&mut self) -> Vec<Command> {
        mem::take(&mut self.commands)
    }

    /// Has the files go of a partition that was deleted.
    pub(super) fn leave(&mut self, left: Left) {
        self.leaving = Some(left);
    }

    /// Takes out the appends of `waiter`, which are told to `note`.
    pub(super) fn forget(&mut self, waiter: &Arc<dyn AckWaiter>, note: impl Fn(&Append)) {
        self.appends.retain(|queued| {
            let is_forgotten = queued.is_of(waiter);
            if is_forgotten {
                note(queued.append());
            }
            !is_forgotten
        });
    }
}

impl Partition {
    /// Has `command` run with the right to write, behind those before it; refused once the topic is deleted. Never waits.
    pub(super) fn command(
        &self,
        urgency: Urgency,
        command: impl FnOnce(&Partition, Result<&Writer, KafkaError>) + Send + 'static,
    ) {
        if self.leave_command(Box::new(command)) {
            self.send_to_work(urgency);
        }
    }

    /// As [`Partition::command`], by the pool for writes: clients wait for what it does.
    pub(super) fn urgent_command(
        &self,
        command: impl FnOnce(&Partition, Result<&Writer, KafkaError>) + Send + 'static,
    ) {
        if self.leave_command(Box::new(command)) {
            self.turn().drain_after();
        }
    }

    /// Runs `command` with the right to write and returns what it does; may wait for the disk, and for who has the right.
    ///
    /// # Errors
    /// That of a [`Departure`], `KAFKA_STORAGE_ERROR` if it panicked.
    ///
    /// [`Departure`]: super::leaving::Departure
    pub(super) fn with_writer<T: Send + 'static>(
        &self,
        may_wait: &MayWait,
        command: impl FnOnce(&Partition, &Writer) -> Result<T, KafkaError> + Send + 'static,
    ) -> Result<T, KafkaError> {
        let (done, result) = mpsc::channel();
        self.leave_command(Box::new(move |partition, writer| {
            // Who asked waits below.
            let _ = done.send(writer.and_then(|writer| command(partition, writer)));
        }));
        self.work(may_wait);
        result.recv().unwrap_or(Err(KafkaError::KafkaStorageError))
    }

    /// Whether the command was queued, not refused.
    fn leave_command(&self, command: Command) -> bool {
        let mut turn = self.turn();
        if let LogSlot::Left(departure) = turn.log {
            drop(turn);
            command(self, Err(departure.error()));
            return false;
        }
        turn.queue.commands.push(command);
        true
    }

    /// Has retention enforced by the next thread that works here; `false` if somebody has asked already.
    pub(super) fn ask_for_retention(&self) -> bool {
        let mut turn = self.turn();
        let has_left = matches!(turn.log, LogSlot::Left(_));
        !has_left && !mem::replace(&mut turn.queue.expires, true)
    }

    /// Has a thread of the maintenance lane look for work here.
    pub(super) fn send_to_work(&self, urgency: Urgency) {
        if let Some(partition) = self.me.upgrade() {
            self.host.lane.push(urgency, move |may_wait| partition.work(may_wait));
        }
    }

    /// Waits until the log has been opened, or cannot be; `None` if there is nothing to wait for.
    pub fn opening(&self) -> Option<oneshot::Receiver<()>> {
        let mut turn = self.turn();
        if !matches!(turn.log, LogSlot::Unopened) || turn.check_leader(None).is_err() {
            return None;
        }
        let (opened, mut opening) = oneshot::channel();
        turn.queue.openers.push(opened);
        turn.drain_after();
        drop(turn);
        let is_due = matches!(opening.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        is_due.then_some(opening)
    }

    /// One round, if there is work and nobody has the right to write. What clients bring meanwhile goes to their pool.
    pub(super) fn work(&self, may_wait: &MayWait) {
        if !self.turn().take_right() {
            return;
        }
        if let Some(begun) = self.round(may_wait, &Writer(())) {
            self.run_sync(begun);
        }
        hand_over();
        if self.turn().keeps_right() {
            self.begin_drain();
        }
    }

    /// Sends a thread that may wait for the disk; the right to write is taken for it.
    pub(super) fn begin_drain(&self) {
        if self.host.in_memory && self.turn().queue.is_quick() {
            // Memory lets nobody wait.
            return self.drain(&MayWait::in_memory());
        }
        self.submit_drain();
    }

    fn submit_drain(&self) {
        if let Some(partition) = self.me.upgrade() {
            self.host.writers.submit(move |may_wait| partition.drain(may_wait));
        }
    }

    /// Does what waits, and what comes meanwhile, with the right to write that was taken for it.
    fn drain(&self, may_wait: &MayWait) {
        let mut begun = None;
        for round in 0.. {
            hand_over();
            if !self.turn().keeps_right() {
                break;
            }
            if let Some(begun) = begun.take() {
                self.run_sync(begun);
            }
            if round > 0 && self.host.writers.is_behind() {
                return self.submit_drain();
            }
            begun = self.round(may_wait, &Writer(()));
        }
        if let Some(begun) = begun {
            self.sync(may_wait, &begun);
        }
    }

    /// Returns a sync whose waiters the thread at hand may serve.
    fn round(&self, _: &MayWait, writer: &Writer) -> Option<Begun> {
        let round = self.turn().take_round();
        let Round { leaving, expires, commands, needs_log, appends, room } = round;
        let was_busy = expires || !commands.is_empty();
        if let Some(left) = leaving {
            self.remove_files(&left.log, writer);
        }
        if expires {
            // An error was reported as an event where it arose.
            let _ = self.enforce_retention(writer);
        }
        for command in commands {
            contained(|| command(self, Ok(writer)));
        }
        if was_busy {
            self.note_stable_records();
        }
        if !needs_log {
            return None;
        }
        let opened = self.open_log(writer);
        drop(mem::take(&mut self.turn().queue.openers));
        if let Ok(log) = &opened {
            self.begin_due_epoch(log, writer);
        }
        self.append_round(&opened, appends, room, writer)
    }
}

impl Partition {
    /// A high watermark that moved while the log was at work took effect at its end.
    fn note_stable_records(&self) {
        let mut turn = self.turn();
        if let Some(log) = turn.opened() {
            turn.note_last_stable_offset(&log);
        }
    }
}

impl Turn<'_> {
    /// Has the queue drained after this turn, unless somebody is at it or nothing in it can go on.
    pub(super) fn drain_after(&mut self) {
        if self.has_work() && !mem::replace(&mut self.queue.is_taken, true) {
            self.begin_drain();
        }
    }

    fn has_work(&self) -> bool {
        let WorkQueue { room, openers, commands, leaving, expires, .. } = &self.queue;
        // A room that is not needed any more is passed on by a round as well.
        self.queue.has_appends()
            || room.is_some()
            || !(openers.is_empty() && commands.is_empty())
            || leaving.is_some()
            || *expires
            || self.is_epoch_due()
    }

    /// Takes the room for the append at the front, or has it given here later, if that is a large one.
    pub(super) fn ask_for_room(&mut self) {
        if !self.queue.is_large() || self.queue.is_listed || self.queue.room.is_some() {
            return;
        }
        let partition = self.partition();
        self.queue.room = partition.host.large.take_or_wait(partition);
        self.queue.is_listed = self.queue.room.is_none();
    }

    /// Takes the room for a large append, if there still is one.
    pub(super) fn give_room(&mut self, room: impl FnOnce() -> LargeRoom) -> bool {
        self.queue.is_listed = false;
        let is_needed = self.queue.is_large();
        if is_needed {
            self.queue.room = Some(room());
            self.drain_after();
        }
        is_needed
    }

    /// Whether the log is open and lacks the beginning of the leader epoch.
    pub(super) fn is_epoch_due(&self) -> bool {
        matches!(self.log, LogSlot::Open(_)) && self.replication.is_epoch_due()
    }

    /// Takes the right to write for one append by the thread at hand, if there is no other work.
    pub(super) fn take_right_at_once(&mut self) -> Option<Writer> {
        let is_free = !self.queue.is_taken && !self.has_work();
        self.queue.is_taken |= is_free;
        is_free.then_some(Writer(()))
    }

    /// Gives back the right that was taken at once; a thread is sent for what has come meanwhile.
    pub(super) fn give_right_back(&mut self, _: Writer) {
        if self.keeps_right() {
            self.begin_drain();
        }
    }

    /// Takes the right to write for the thread at hand, if nobody has it and there is work.
    fn take_right(&mut self) -> bool {
        if self.queue.is_taken {
            return false;
        }
        self.keeps_right()
    }

    /// Gives the right to write back, unless there is work.
    fn keeps_right(&mut self) -> bool {
        self.queue.is_taken = self.has_work();
        self.queue.is_taken
    }

    fn take_round(&mut self) -> Round {
        let is_epoch_due = self.is_epoch_due();
        let queue = &mut self.queue;
        let appends = queue.take_appends();
        Round {
            leaving: queue.leaving.take(),
            expires: mem::take(&mut queue.expires),
            commands: mem::take(&mut queue.commands),
            room: queue.room.take(),
            needs_log: !appends.is_empty() || !queue.openers.is_empty() || is_epoch_due,
            appends,
        }
    }
}
