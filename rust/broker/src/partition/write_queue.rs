//! The writer token of a partition, and the queue of work that needs it.
//!
//! A thread that changes the log's files holds the writer token: a [`WriterToken`], which only
//! [`Partition::work`], [`Partition::drain`] and [`PartitionGuard::take_token_at_once`] create;
//! there is at most one at a time. It is not a lock, so no thread waits for it: work is put into
//! the partition's queue, and the thread with the token does it. If no thread has the token, one
//! that may wait for disks is started: a thread of the write pool if clients wait, otherwise one of
//! the background queue.
//!
//! One round of work, in this order: removal of a deleted log's files, retention, commands, opening
//! the log, the start of a leader epoch, appends. A thread continues with the next round unless
//! other partitions wait for a thread.

pub(crate) mod queue;

use std::mem;
use std::sync::mpsc;

use pykafka_log::perturb::hand_over;
use tokio::sync::oneshot;

use self::queue::{Left, WorkQueue, WriterToken};
use super::Partition;
use super::append::large_batches::{LargeAppends, LargeBatchPermit};
use super::guard::PartitionGuard;
use super::threads::background::Urgency;
use super::threads::catch_panic::contained;
use super::threads::may_wait::MayWait;
use crate::kafka_error::KafkaError;
use crate::partition::append::queued::Queued;
use crate::partition::log::open_log::log_slot::LogSlot;
use crate::partition::log::sync::round::Begun;

/// Work that needs the writer token.
type Command = queue::Command<Partition>;

/// The work of one round.
struct Round {
    leaving: Option<Left>,
    expires: bool,
    commands: Vec<Command>,
    needs_log: bool,
    appends: Vec<Queued>,
    room: Option<LargeBatchPermit>,
}

impl Partition {
    /// Queues `command` to run with the writer token; it fails once the topic is deleted. Never
    /// waits.
    pub(super) fn command(
        &self,
        urgency: Urgency,
        command: impl FnOnce(&Partition, Result<&WriterToken, KafkaError>) + Send + 'static,
    ) {
        if self.leave_command(Box::new(command)) {
            self.send_to_work(urgency);
        }
    }

    /// Like [`Partition::command`], on the write pool, because clients wait for it.
    pub(crate) fn urgent_command(
        &self,
        command: impl FnOnce(&Partition, Result<&WriterToken, KafkaError>) + Send + 'static,
    ) {
        if self.leave_command(Box::new(command)) {
            self.lock().drain_after();
        }
    }

    /// Runs `command` with the writer token and returns its result. May wait for the disk, and for
    /// the thread that has the token.
    ///
    /// # Errors
    /// The error of a [`Departure`]; `KAFKA_STORAGE_ERROR` if the command panicked.
    ///
    /// [`Departure`]: super::log::open_log::log_slot::Departure
    pub(super) fn with_writer<T: Send + 'static>(
        &self,
        may_wait: &MayWait,
        command: impl FnOnce(&Partition, &WriterToken) -> Result<T, KafkaError> + Send + 'static,
    ) -> Result<T, KafkaError> {
        let (done, result) = mpsc::channel();
        self.leave_command(Box::new(move |partition, writer| {
            // The receiver waits below.
            let _ = done.send(writer.and_then(|writer| command(partition, writer)));
        }));
        self.work(may_wait);
        result.recv().unwrap_or(Err(KafkaError::KafkaStorageError))
    }

    /// Queues the command; returns false if it was refused.
    fn leave_command(&self, command: Command) -> bool {
        let mut guard = self.lock();
        if let LogSlot::Left(departure) = guard.log {
            drop(guard);
            command(self, Err(departure.error()));
            return false;
        }
        guard.queue.commands.push(command);
        true
    }

    /// Requests that the next working thread enforces retention; returns false if that was
    /// requested before.
    pub(crate) fn ask_for_retention(&self) -> bool {
        let mut guard = self.lock();
        let has_left = matches!(guard.log, LogSlot::Left(_));
        !has_left && !mem::replace(&mut guard.queue.expires, true)
    }

    /// Makes a thread of the background queue check this partition for work.
    pub(crate) fn send_to_work(&self, urgency: Urgency) {
        if let Some(partition) = self.me.upgrade() {
            self.host.background.push(urgency, move |may_wait| partition.work(may_wait));
        }
    }

    /// Waits until the log is open or cannot be opened; `None` if there is nothing to wait for.
    pub fn opening(&self) -> Option<oneshot::Receiver<()>> {
        let mut guard = self.lock();
        if !matches!(guard.log, LogSlot::Unopened) || guard.check_leader(None).is_err() {
            return None;
        }
        let (opened, mut opening) = oneshot::channel();
        guard.queue.openers.push(opened);
        guard.drain_after();
        drop(guard);
        let is_due = matches!(opening.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        is_due.then_some(opening)
    }

    /// Runs one round if there is work and no thread has the writer token. Work that arrives during
    /// the round goes to the write pool.
    pub(super) fn work(&self, may_wait: &MayWait) {
        if !self.lock().take_token() {
            return;
        }
        if let Some(begun) = self.round(may_wait, &WriterToken(())) {
            self.run_sync(begun);
        }
        hand_over();
        if self.lock().keep_token() {
            self.begin_drain();
        }
    }

    /// Starts a thread that may wait for the disk. The caller has taken the writer token for it.
    pub(super) fn begin_drain(&self) {
        if self.host.in_memory && self.lock().queue.is_quick() {
            // In memory, no work waits.
            return self.drain(&MayWait::in_memory());
        }
        self.submit_drain();
    }

    fn submit_drain(&self) {
        if let Some(partition) = self.me.upgrade() {
            self.host.writers.submit(move |may_wait| partition.drain(may_wait));
        }
    }

    /// Runs queued work, including work that arrives in the meantime, with the writer token that
    /// its caller has reserved.
    fn drain(&self, may_wait: &MayWait) {
        let mut begun = None;
        for round in 0.. {
            hand_over();
            if !self.lock().keep_token() {
                break;
            }
            if let Some(begun) = begun.take() {
                self.run_sync(begun);
            }
            if round > 0 && self.host.writers.is_behind() {
                return self.submit_drain();
            }
            begun = self.round(may_wait, &WriterToken(()));
        }
        if let Some(begun) = begun {
            self.sync(may_wait, &begun);
        }
    }

    /// Runs a round. Returns a sync whose waiters the current thread may serve.
    fn round(&self, _: &MayWait, writer: &WriterToken) -> Option<Begun> {
        let round = self.lock().take_round();
        let Round { leaving, expires, commands, needs_log, appends, room } = round;
        let was_busy = expires || !commands.is_empty();
        if let Some(left) = leaving {
            self.remove_files(&left.log, writer);
        }
        if expires {
            // The error was reported as an event where it occurred.
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
        drop(mem::take(&mut self.lock().queue.openers));
        if let Ok(log) = &opened {
            self.begin_due_epoch(log, writer);
        }
        self.append_round(&opened, appends, room, writer)
    }
}

impl LargeAppends for Partition {
    fn give_room(&self, room: &dyn Fn() -> LargeBatchPermit) -> bool {
        self.lock().give_room(room)
    }
}

impl Partition {
    /// Applies a high watermark that moved during maintenance of the log.
    fn note_stable_records(&self) {
        let mut guard = self.lock();
        if let Some(log) = guard.opened() {
            guard.note_last_stable_offset(&log);
        }
    }
}

impl PartitionGuard<'_> {
    /// Drains the queue after the release, unless a thread does that already or no work can be
    /// done.
    pub(super) fn drain_after(&mut self) {
        if self.has_work() && !mem::replace(&mut self.queue.is_taken, true) {
            self.begin_drain();
        }
    }

    fn has_work(&self) -> bool {
        let WorkQueue { room, openers, commands, leaving, expires, .. } = &self.queue;
        // A permit that is not needed any more is passed on by a round, too.
        self.queue.has_appends()
            || room.is_some()
            || !(openers.is_empty() && commands.is_empty())
            || leaving.is_some()
            || *expires
            || self.is_epoch_due()
    }

    /// If the first append is large, takes the permit for it, or queues for the permit.
    pub(super) fn ask_for_room(&mut self) {
        if !self.queue.is_large() || self.queue.is_listed || self.queue.room.is_some() {
            return;
        }
        let partition = self.partition();
        self.queue.room = partition.host.large.take_or_wait(partition.me.clone());
        self.queue.is_listed = self.queue.room.is_none();
    }

    /// Accepts the permit for a large append, if there still is one.
    fn give_room(&mut self, room: &dyn Fn() -> LargeBatchPermit) -> bool {
        self.queue.is_listed = false;
        let is_needed = self.queue.is_large();
        if is_needed {
            self.queue.room = Some(room());
            self.drain_after();
        }
        is_needed
    }

    /// True if the log is open, and the leader epoch has not started in it yet.
    pub(super) fn is_epoch_due(&self) -> bool {
        matches!(self.log, LogSlot::Open(_)) && self.replication.is_epoch_due()
    }

    /// Takes the writer token for one append by the current thread, if there is no other work.
    pub(super) fn take_token_at_once(&mut self) -> Option<WriterToken> {
        let is_free = !self.queue.is_taken && !self.has_work();
        self.queue.is_taken |= is_free;
        is_free.then_some(WriterToken(()))
    }

    /// Gives back the token that was taken at once; starts a thread for work that arrived in the
    /// meantime.
    pub(super) fn give_token_back(&mut self, _: WriterToken) {
        if self.keep_token() {
            self.begin_drain();
        }
    }

    /// Takes the writer token for the current thread, if no thread has it and there is work.
    fn take_token(&mut self) -> bool {
        if self.queue.is_taken {
            return false;
        }
        self.keep_token()
    }

    /// Keeps the writer token if there is work; otherwise gives it back.
    fn keep_token(&mut self) -> bool {
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
