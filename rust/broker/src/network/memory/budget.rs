//! A bound on the bytes that many holders reserve together, with a queue of waiting tasks.
//!
//! # Theory of operation
//! A task reserves bytes as a [`Share`], which frees them when it is dropped. When no bytes are
//! left, tasks wait in a queue until others free bytes, and are served in the order in which their
//! waits started.
//!
//! Holding while waiting could deadlock: each of four frames could wait for the bytes of the
//! others. So the first in the queue may exceed the bound, one task at a time, until the end of its
//! frame, its response or its connection. Its bytes beyond the bound do not count against the
//! others, which continue within the bound. The ceiling is therefore the bound plus one request in
//! each class.
//!
//! Reservations above [`ORDINARY_BYTES_MAX`] may use three quarters of the budget and have a
//! separate turn to exceed the bound: clients with requests of the usual size are served alongside
//! any number of large ones.
//!
//! Freeing takes no lock while no task waits. A waiting task first counts itself in `waiting` and
//! then reads `held`; a task that frees bytes first lowers `held` and then reads `waiting`. So at
//! least one of them sees the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pykafka_forks::Mutex;
use tokio::sync::oneshot;

/// Twice the default maximum of clients and brokers (`max.request.size`, `message.max.bytes`).
const ORDINARY_BYTES_MAX: usize = 2 << 20;

/// The queues of a budget, by size of the reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetClass {
    Ordinary,
    Large,
}

impl BudgetClass {
    pub(crate) fn of(bytes: usize) -> BudgetClass {
        if bytes <= ORDINARY_BYTES_MAX { BudgetClass::Ordinary } else { BudgetClass::Large }
    }
}

/// A bound on reserved bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    state: Mutex<State>,
    /// Raised under the mutex by tasks that may have to wait, and lowered without it.
    held: AtomicUsize,
    /// Bytes that the one share of each class holds beyond the bound.
    beyond: AtomicUsize,
    tight_above: AtomicUsize,
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct State {
    bytes_max: usize,
    lines: [Line; 2],
}

/// The queue of one class.
#[derive(Debug, Default)]
struct Line {
    /// True if a share of this class exceeds the bound.
    overdrawn: bool,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    bytes: usize,
    granted: oneshot::Sender<Share>,
}

/// A task in the queue; dropping it leaves the queue.
struct InLine {
    budget: Arc<Budget>,
    class: BudgetClass,
    receiver: oneshot::Receiver<Share>,
}

/// Bytes of the budget that one connection or one response has reserved. Dropping it frees them.
#[must_use]
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    within: usize,
    beyond: usize,
    /// The class whose turn to exceed the bound this share has.
    overdrawn: Option<BudgetClass>,
}

impl State {
    fn bound(&self, class: BudgetClass) -> usize {
        match class {
            BudgetClass::Ordinary => self.bytes_max,
            BudgetClass::Large => self.bytes_max / 4 * 3,
        }
    }
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Budget {
        Budget {
            state: Mutex::new(State { bytes_max, lines: Default::default() }),
            held: AtomicUsize::new(0),
            beyond: AtomicUsize::new(0),
            tight_above: AtomicUsize::new(bytes_max / 2),
            waiting: AtomicUsize::new(0),
        }
    }

    pub(crate) fn set_bytes_max(self: &Arc<Self>, bytes_max: usize) {
        let mut state = self.state.lock();
        state.bytes_max = bytes_max;
        self.tight_above.store(bytes_max / 2, Ordering::Relaxed);
        self.serve_lines(&mut state);
    }

    /// Returns an empty share.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { budget: self.clone(), within: 0, beyond: 0, overdrawn: None }
    }

    /// Bytes of all shares.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed) + self.beyond.load(Ordering::Relaxed)
    }

    /// Number of waiting tasks.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// True if so much is reserved that unneeded bytes should be freed at once.
    pub(crate) fn is_tight(&self) -> bool {
        self.held.load(Ordering::Relaxed) > self.tight_above.load(Ordering::Relaxed)
    }

    /// Bytes that others must free before the first task in a queue fits.
    pub(crate) fn missing(&self) -> usize {
        let state = self.state.lock();
        let missing = |class: BudgetClass| {
            let first = state.lines[class as usize].waiting.front();
            let held = self.held.load(Ordering::Relaxed);
            first.map_or(0, |first| (held + first.bytes).saturating_sub(state.bound(class)))
        };
        missing(BudgetClass::Ordinary).max(missing(BudgetClass::Large))
    }

    fn fits(&self, state: &State, class: BudgetClass, bytes: usize) -> bool {
        let held = self.held.load(Ordering::SeqCst);
        held.saturating_add(bytes) <= state.bound(class)
    }

    /// Reserves `bytes` for the task at the head of the queue; `None` if it has to wait.
    fn take(
        self: &Arc<Self>,
        state: &mut State,
        class: BudgetClass,
        bytes: usize,
    ) -> Option<Share> {
        let fits = self.fits(state, class, bytes);
        if fits {
            self.held.fetch_add(bytes, Ordering::Relaxed);
            return Some(Share { budget: self.clone(), within: bytes, beyond: 0, overdrawn: None });
        }
        if std::mem::replace(&mut state.lines[class as usize].overdrawn, true) {
            return None;
        }
        self.beyond.fetch_add(bytes, Ordering::Relaxed);
        Some(Share { budget: self.clone(), within: 0, beyond: bytes, overdrawn: Some(class) })
    }

    /// Frees `bytes` within the bound, and the turn to exceed it.
    fn put_back(self: &Arc<Self>, bytes: usize, overdrawn: Option<BudgetClass>) {
        self.held.fetch_sub(bytes, Ordering::SeqCst);
        if overdrawn.is_none() && self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut state = self.state.lock();
        if let Some(class) = overdrawn {
            state.lines[class as usize].overdrawn = false;
        }
        self.serve_lines(&mut state);
    }

    /// Serves waiting tasks as far as bytes are available.
    fn serve_lines(self: &Arc<Self>, state: &mut State) {
        for class in [BudgetClass::Ordinary, BudgetClass::Large] {
            while let Some(first) = state.lines[class as usize].waiting.front() {
                let bytes = first.bytes;
                let Some(share) = self.take(state, class, bytes) else { break };
                if let Some(first) = state.lines[class as usize].waiting.pop_front() {
                    self.waiting.fetch_sub(1, Ordering::Relaxed);
                    first.granted.send(share).expect("a waiter leaves the queue under the mutex");
                }
            }
        }
    }
}

impl Share {
    /// Reserved bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.within + self.beyond
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// True if it should be freed as soon as it is not needed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.overdrawn.is_some() || (self.within > 0 && self.budget.is_tight())
    }

    /// Adds `bytes` that are allocated already, whatever others hold.
    pub(crate) fn cover(&mut self, bytes: usize) {
        self.budget.held.fetch_add(bytes, Ordering::Relaxed);
        self.within += bytes;
    }

    /// Frees all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes().saturating_sub(bytes);
        let of_beyond = surplus.min(self.beyond);
        self.beyond -= of_beyond;
        self.within -= surplus - of_beyond;
        self.budget.beyond.fetch_sub(of_beyond, Ordering::Relaxed);
        if surplus > 0 {
            let overdrawn = if self.move_within() { self.overdrawn.take() } else { None };
            self.budget.put_back(surplus - of_beyond, overdrawn);
        }
    }

    /// Moves the bytes within the bound if they fit by now. Returns true if the next task may
    /// exceed the bound.
    fn move_within(&mut self) -> bool {
        let Some(class) = self.overdrawn else { return false };
        let state = self.budget.state.lock();
        let fits = self.budget.fits(&state, class, self.beyond);
        if fits {
            self.budget.beyond.fetch_sub(self.beyond, Ordering::Relaxed);
            self.budget.held.fetch_add(self.beyond, Ordering::Relaxed);
            self.within += std::mem::take(&mut self.beyond);
        }
        fits
    }

    /// Splits off a share for `bytes`. If this share exceeds the bound, the new share gets all
    /// bytes and the turn.
    pub(crate) fn split_off(&mut self, bytes: usize) -> Share {
        let mut split = self.budget.share();
        if self.overdrawn.is_some() {
            std::mem::swap(self, &mut split);
        } else {
            split.within = bytes.min(self.within);
            self.within -= split.within;
        }
        split
    }

    /// Moves the bytes of `other` into this share.
    pub(crate) fn absorb(&mut self, mut other: Share) {
        debug_assert!(Arc::ptr_eq(&self.budget, &other.budget), "shares of one budget");
        self.within += std::mem::take(&mut other.within);
        self.beyond += std::mem::take(&mut other.beyond);
        if self.overdrawn.is_none() {
            self.overdrawn = other.overdrawn.take();
        }
    }

    /// Reserves `bytes` more; returns false if others must free bytes first.
    pub(crate) fn try_grow(&mut self, class: BudgetClass, bytes: usize) -> bool {
        let budget = self.budget.clone();
        let mut state = budget.state.lock();
        if self.overdrawn.is_some() {
            budget.beyond.fetch_add(bytes, Ordering::Relaxed);
            self.beyond += bytes;
            return true;
        }
        if !state.lines[class as usize].waiting.is_empty() {
            return false;
        }
        budget.take(&mut state, class, bytes).is_some_and(|share| {
            self.absorb(share);
            true
        })
    }

    /// Reserves `bytes` more if they are within the bound. A budget that is only used in this way
    /// is never exceeded.
    pub(crate) fn try_within(&mut self, bytes: usize) -> bool {
        let state = self.budget.state.lock();
        let fits = self.budget.fits(&state, BudgetClass::Ordinary, bytes);
        if fits {
            self.budget.held.fetch_add(bytes, Ordering::Relaxed);
            self.within += bytes;
        }
        fits
    }

    /// Reserves `bytes` more that are useful but not necessary, if at least half of the budget is
    /// free.
    pub(crate) fn try_spare(&mut self, bytes: usize) -> bool {
        let state = self.budget.state.lock();
        let is_plenty = self.budget.held() + bytes <= state.bytes_max / 2;
        if is_plenty {
            self.budget.held.fetch_add(bytes, Ordering::Relaxed);
            self.within += bytes;
        }
        is_plenty
    }

    /// Waits in the queue for `bytes` more; a share that exceeds the bound gets them at once.
    /// Dropping the future leaves the queue.
    pub(crate) async fn grow(&mut self, class: BudgetClass, bytes: usize) {
        if self.try_grow(class, bytes) {
            return;
        }
        let mut in_line = {
            let mut state = self.budget.state.lock();
            let (granted, receiver) = oneshot::channel();
            state.lines[class as usize].waiting.push_back(Waiting { bytes, granted });
            self.budget.waiting.fetch_add(1, Ordering::SeqCst);
            // Another task may have freed bytes since `try_grow`.
            self.budget.serve_lines(&mut state);
            InLine { budget: self.budget.clone(), class, receiver }
        };
        if let Ok(share) = (&mut in_line.receiver).await {
            self.absorb(share);
        }
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        self.receiver.close();
        let line = &mut state.lines[self.class as usize].waiting;
        let before = line.len();
        line.retain(|waiting| !waiting.granted.is_closed());
        self.budget.waiting.fetch_sub(before - line.len(), Ordering::Relaxed);
        self.budget.serve_lines(&mut state);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.beyond.fetch_sub(self.beyond, Ordering::Relaxed);
        if self.within > 0 || self.overdrawn.is_some() {
            self.budget.put_back(self.within, self.overdrawn.take());
        }
    }
}

#[cfg(test)]
mod tests;
