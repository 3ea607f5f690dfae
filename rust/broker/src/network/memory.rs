//! How much memory peers may make a broker hold: frames on their way in, answers on their way out.
//!
//! # Theory of operation
//! `memory_max` is shared out once. Three eighths are for frames that have begun, until they are answered:
//! [`InputBudget`]. An eighth is for requests with Python, an eighth for fetch sessions, an eighth for waiting fetches, and
//! a quarter for answers that their peers do not take: [`Answers`].
//!
//! What a connection costs anyway (64 KiB of input) is not counted: small requests always pass. Beyond it a connection has a
//! [`Share`] of the budget, which grows with what arrived and not by the size prefix. When nothing is left the
//! connection is muted: it reads on when others have given back, in the order in which they began to wait.
//!
//! Holding and waiting would deadlock, where each of four frames waits for what the others hold. So the first that waits
//! goes on beyond the bound, one at a time, and gives all back with the end of its frame, or with the end of its
//! connection, which is closed if it stalls while others wait. The ceiling is therefore the budget and one frame.
//!
//! Frames larger than [`ORDINARY_FRAME_BYTES_MAX`] have three quarters of the budget and a turn of their own to go
//! beyond it: clients with requests of the usual size are served beside any number of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::network::answers::Answers;

/// Twice what clients send unless they are told otherwise (`max.request.size`, `message.max.bytes`).
const ORDINARY_FRAME_BYTES_MAX: usize = 2 << 20;

/// The parts of one broker's `memory_max`.
pub(crate) struct Memory {
    bytes_max: usize,
    pub(crate) input: Arc<InputBudget>,
    pub(crate) answers: Answers,
}

impl Memory {
    pub(crate) fn new(memory_max: u64) -> Memory {
        let bytes_max = usize::try_from(memory_max).unwrap_or(usize::MAX);
        let input = Arc::new(InputBudget::new(bytes_max / 8 * 3));
        Memory { bytes_max, input, answers: Answers::new(bytes_max / 4) }
    }

    /// Takes `queued.max.request.bytes`: a lower bound for frames than that of the broker, if positive.
    pub(crate) fn set_queued_bytes_max(&self, queued_bytes_max: i64) {
        let queued_bytes_max = match usize::try_from(queued_bytes_max) {
            Ok(bytes @ 1..) => bytes,
            _ => usize::MAX,
        };
        self.input.set_bytes_max(queued_bytes_max.min(self.bytes_max / 8 * 3));
    }

    /// What may wait at one place of the broker, at most `bytes_max`.
    pub(crate) fn waiting_bytes_max(&self, bytes_max: usize) -> usize {
        bytes_max.min(self.bytes_max / 8)
    }

    /// What fetch sessions may take.
    pub(crate) fn sessions_bytes_max(&self) -> usize {
        self.bytes_max / 8
    }
}

/// Which frames stand in line together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Ordinary,
    Large,
}

impl Lane {
    pub(crate) fn of(frame_size: usize) -> Lane {
        if frame_size <= ORDINARY_FRAME_BYTES_MAX { Lane::Ordinary } else { Lane::Large }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct InputBudget {
    state: Mutex<State>,
    /// Changed under the mutex, read without.
    held: AtomicUsize,
    tight_above: AtomicUsize,
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct State {
    bytes_max: usize,
    lines: [Line; 2],
}

/// Those of one lane.
#[derive(Debug, Default)]
struct Line {
    /// Whether one of them is beyond the bound.
    overdrawn: bool,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    bytes: usize,
    granted: oneshot::Sender<Share>,
}

/// One who waits in line; dropping it leaves the line.
struct InLine {
    budget: Arc<InputBudget>,
    lane: Lane,
    receiver: oneshot::Receiver<Share>,
}

/// What one connection holds of the budget; dropping it gives all back.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<InputBudget>,
    bytes: usize,
    overdrawn: Option<Lane>,
}

impl InputBudget {
    fn new(bytes_max: usize) -> InputBudget {
        InputBudget {
            state: Mutex::new(State { bytes_max, lines: Default::default() }),
            held: AtomicUsize::new(0),
            tight_above: AtomicUsize::new(bytes_max / 2),
            waiting: AtomicUsize::new(0),
        }
    }

    fn set_bytes_max(self: &Arc<Self>, bytes_max: usize) {
        let mut state = self.state.lock();
        state.bytes_max = bytes_max;
        self.tight_above.store(bytes_max / 2, Ordering::Relaxed);
        self.serve_lines(&mut state);
    }

    /// Nothing yet.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { budget: self.clone(), bytes: 0, overdrawn: None }
    }

    /// Bytes of all shares.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Connections that are muted.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether so much is held that nobody should keep what it does not need at once.
    pub(crate) fn is_tight(&self) -> bool {
        self.held() > self.tight_above.load(Ordering::Relaxed)
    }

    fn fits(&self, state: &State, lane: Lane, bytes: usize) -> bool {
        let bytes_max = match lane {
            Lane::Ordinary => state.bytes_max,
            Lane::Large => state.bytes_max / 4 * 3,
        };
        self.held().saturating_add(bytes) <= bytes_max
    }

    /// Takes `bytes` for the one whose turn it is; `None` if there is nothing for it.
    fn take(self: &Arc<Self>, state: &mut State, lane: Lane, bytes: usize) -> Option<Share> {
        let fits = self.fits(state, lane, bytes);
        let line = &mut state.lines[lane as usize];
        if !fits && line.overdrawn {
            return None;
        }
        line.overdrawn |= !fits;
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Some(Share { budget: self.clone(), bytes, overdrawn: (!fits).then_some(lane) })
    }

    fn put_back(&self, state: &mut State, share: &mut Share) {
        self.held.fetch_sub(std::mem::take(&mut share.bytes), Ordering::Relaxed);
        if let Some(lane) = share.overdrawn.take() {
            state.lines[lane as usize].overdrawn = false;
        }
    }

    /// Gives to those who wait what there is for them.
    fn serve_lines(self: &Arc<Self>, state: &mut State) {
        for lane in [Lane::Ordinary, Lane::Large] {
            while let Some(first) = state.lines[lane as usize].waiting.front() {
                let bytes = first.bytes;
                let Some(share) = self.take(state, lane, bytes) else { break };
                if let Some(first) = state.lines[lane as usize].waiting.pop_front() {
                    self.waiting.fetch_sub(1, Ordering::Relaxed);
                    first.granted.send(share).expect("who leaves the line holds the mutex");
                }
            }
        }
    }
}

impl Share {
    /// What it covers.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn budget(&self) -> &Arc<InputBudget> {
        &self.budget
    }

    /// Whether it should be given back as soon as it is not needed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.overdrawn.is_some() || (self.bytes > 0 && self.budget.is_tight())
    }

    /// Takes `bytes` more for a frame, unless others have to give back first.
    pub(crate) fn try_grow(&mut self, lane: Lane, bytes: usize) -> bool {
        let budget = self.budget.clone();
        let mut state = budget.state.lock();
        if self.overdrawn.is_some() {
            budget.held.fetch_add(bytes, Ordering::Relaxed);
            self.bytes += bytes;
            return true;
        }
        if !state.lines[lane as usize].waiting.is_empty() {
            return false;
        }
        budget.take(&mut state, lane, bytes).is_some_and(|share| {
            self.add(share);
            true
        })
    }

    /// Takes `bytes` more for comfort, if there is plenty.
    pub(crate) fn try_spare(&mut self, bytes: usize) -> bool {
        let state = self.budget.state.lock();
        let is_plenty = self.budget.held() + bytes <= state.bytes_max / 2;
        if is_plenty {
            self.budget.held.fetch_add(bytes, Ordering::Relaxed);
            self.bytes += bytes;
        }
        is_plenty
    }

    /// Waits in line for `bytes` more. Dropping the future leaves the line.
    pub(crate) async fn grow(&mut self, lane: Lane, bytes: usize) {
        let mut in_line = {
            let mut state = self.budget.state.lock();
            let (granted, receiver) = oneshot::channel();
            state.lines[lane as usize].waiting.push_back(Waiting { bytes, granted });
            self.budget.waiting.fetch_add(1, Ordering::Relaxed);
            // Somebody may have given back since `try_grow`.
            self.budget.serve_lines(&mut state);
            InLine { budget: self.budget.clone(), lane, receiver }
        };
        if let Ok(share) = (&mut in_line.receiver).await {
            self.add(share);
        }
    }

    fn add(&mut self, mut other: Share) {
        self.bytes += std::mem::take(&mut other.bytes);
        self.overdrawn = self.overdrawn.or(other.overdrawn.take());
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        self.receiver.close();
        let line = &mut state.lines[self.lane as usize].waiting;
        let before = line.len();
        line.retain(|waiting| !waiting.granted.is_closed());
        self.budget.waiting.fetch_sub(before - line.len(), Ordering::Relaxed);
        self.budget.serve_lines(&mut state);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes == 0 && self.overdrawn.is_none() {
            return;
        }
        let budget = self.budget.clone();
        let mut state = budget.state.lock();
        budget.put_back(&mut state, self);
        budget.serve_lines(&mut state);
    }
}

#[cfg(test)]
mod tests;
