//! A bound on bytes that many hold together, and the line of those who wait for some.
//!
//! # Theory of operation
//! Whoever wants bytes takes a [`Share`], which gives them back when it is dropped. When nothing is left, the next waits in
//! line until others have given back, in the order in which they began to wait.
//!
//! Holding and waiting would deadlock, where each of four frames waits for what the others hold. So the first that waits
//! goes on beyond the bound, one at a time, and gives all back with the end of its frame or its answer, or with the end of
//! its connection. What it holds beyond is not counted against the others, who go on within the bound. The ceiling is
//! therefore the bound and one more in each lane.
//!
//! What is larger than [`ORDINARY_BYTES_MAX`] has three quarters of the budget and a turn of its own to go beyond it:
//! clients with requests of the usual size are served beside any number of large ones.
//!
//! Giving back takes no lock while nobody waits. Who waits first counts itself in `waiting` and then looks at `held`; who
//! gives back first lowers `held` and then looks at `waiting`: one of the two sees the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pykafka_forks::Mutex;
use tokio::sync::oneshot;

/// Twice what clients send unless they are told otherwise (`max.request.size`, `message.max.bytes`).
const ORDINARY_BYTES_MAX: usize = 2 << 20;

/// What stands in line together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Ordinary,
    Large,
}

impl Lane {
    pub(crate) fn of(bytes: usize) -> Lane {
        if bytes <= ORDINARY_BYTES_MAX { Lane::Ordinary } else { Lane::Large }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Budget {
    state: Mutex<State>,
    /// Raised for those who may have to wait under the mutex, and lowered without.
    held: AtomicUsize,
    /// Held by the one of each lane that is beyond the bound.
    beyond: AtomicUsize,
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
    budget: Arc<Budget>,
    lane: Lane,
    receiver: oneshot::Receiver<Share>,
}

/// What one connection or one answer holds of the budget; dropping it gives all back.
#[must_use]
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    within: usize,
    beyond: usize,
    /// Whose turn to go beyond the bound this is.
    overdrawn: Option<Lane>,
}

impl State {
    fn bound(&self, lane: Lane) -> usize {
        match lane {
            Lane::Ordinary => self.bytes_max,
            Lane::Large => self.bytes_max / 4 * 3,
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

    /// Nothing yet.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { budget: self.clone(), within: 0, beyond: 0, overdrawn: None }
    }

    /// Bytes of all shares.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed) + self.beyond.load(Ordering::Relaxed)
    }

    /// How many wait in line.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether so much is held that nobody should keep what it does not need at once.
    pub(crate) fn is_tight(&self) -> bool {
        self.held.load(Ordering::Relaxed) > self.tight_above.load(Ordering::Relaxed)
    }

    /// What others have to give back until the first in line fits.
    pub(crate) fn missing(&self) -> usize {
        let state = self.state.lock();
        let missing = |lane: Lane| {
            let first = state.lines[lane as usize].waiting.front();
            let held = self.held.load(Ordering::Relaxed);
            first.map_or(0, |first| (held + first.bytes).saturating_sub(state.bound(lane)))
        };
        missing(Lane::Ordinary).max(missing(Lane::Large))
    }

    fn fits(&self, state: &State, lane: Lane, bytes: usize) -> bool {
        let held = self.held.load(Ordering::SeqCst);
        held.saturating_add(bytes) <= state.bound(lane)
    }

    /// Takes `bytes` for the one whose turn it is; `None` if there is nothing for it.
    fn take(self: &Arc<Self>, state: &mut State, lane: Lane, bytes: usize) -> Option<Share> {
        let fits = self.fits(state, lane, bytes);
        if fits {
            self.held.fetch_add(bytes, Ordering::Relaxed);
            return Some(Share { budget: self.clone(), within: bytes, beyond: 0, overdrawn: None });
        }
        if std::mem::replace(&mut state.lines[lane as usize].overdrawn, true) {
            return None;
        }
        self.beyond.fetch_add(bytes, Ordering::Relaxed);
        Some(Share { budget: self.clone(), within: 0, beyond: bytes, overdrawn: Some(lane) })
    }

    /// Takes back `bytes` that were within the bound, and the turn to go beyond it.
    fn put_back(self: &Arc<Self>, bytes: usize, overdrawn: Option<Lane>) {
        self.held.fetch_sub(bytes, Ordering::SeqCst);
        if overdrawn.is_none() && self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut state = self.state.lock();
        if let Some(lane) = overdrawn {
            state.lines[lane as usize].overdrawn = false;
        }
        self.serve_lines(&mut state);
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
        self.within + self.beyond
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Whether it should be given back as soon as it is not needed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.overdrawn.is_some() || (self.within > 0 && self.budget.is_tight())
    }

    /// Takes `bytes` more that are there already, whatever others hold.
    pub(crate) fn cover(&mut self, bytes: usize) {
        self.budget.held.fetch_add(bytes, Ordering::Relaxed);
        self.within += bytes;
    }

    /// Gives back all but `bytes`.
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

    /// Whether all is within the bound, or fits by now: the next may go beyond it.
    fn move_within(&mut self) -> bool {
        let Some(lane) = self.overdrawn else { return false };
        let state = self.budget.state.lock();
        let fits = self.budget.fits(&state, lane, self.beyond);
        if fits {
            self.budget.beyond.fetch_sub(self.beyond, Ordering::Relaxed);
            self.budget.held.fetch_add(self.beyond, Ordering::Relaxed);
            self.within += std::mem::take(&mut self.beyond);
        }
        fits
    }

    /// Splits off what covers `bytes`; all of it if it is beyond the bound, with the turn to be so.
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

    /// Takes over what `other` holds.
    pub(crate) fn absorb(&mut self, mut other: Share) {
        debug_assert!(Arc::ptr_eq(&self.budget, &other.budget), "shares of one budget");
        self.within += std::mem::take(&mut other.within);
        self.beyond += std::mem::take(&mut other.beyond);
        if self.overdrawn.is_none() {
            self.overdrawn = other.overdrawn.take();
        }
    }

    /// Takes `bytes` more, unless others have to give back first.
    pub(crate) fn try_grow(&mut self, lane: Lane, bytes: usize) -> bool {
        let budget = self.budget.clone();
        let mut state = budget.state.lock();
        if self.overdrawn.is_some() {
            budget.beyond.fetch_add(bytes, Ordering::Relaxed);
            self.beyond += bytes;
            return true;
        }
        if !state.lines[lane as usize].waiting.is_empty() {
            return false;
        }
        budget.take(&mut state, lane, bytes).is_some_and(|share| {
            self.absorb(share);
            true
        })
    }

    /// Takes `bytes` more if they are within the bound. Nobody goes beyond a budget that is only taken from so.
    pub(crate) fn try_within(&mut self, bytes: usize) -> bool {
        let state = self.budget.state.lock();
        let fits = self.budget.fits(&state, Lane::Ordinary, bytes);
        if fits {
            self.budget.held.fetch_add(bytes, Ordering::Relaxed);
            self.within += bytes;
        }
        fits
    }

    /// Takes `bytes` more for comfort, if there is plenty.
    pub(crate) fn try_spare(&mut self, bytes: usize) -> bool {
        let state = self.budget.state.lock();
        let is_plenty = self.budget.held() + bytes <= state.bytes_max / 2;
        if is_plenty {
            self.budget.held.fetch_add(bytes, Ordering::Relaxed);
            self.within += bytes;
        }
        is_plenty
    }

    /// Waits in line for `bytes` more, unless it is the one beyond the bound. Dropping the future leaves the line.
    pub(crate) async fn grow(&mut self, lane: Lane, bytes: usize) {
        if self.try_grow(lane, bytes) {
            return;
        }
        let mut in_line = {
            let mut state = self.budget.state.lock();
            let (granted, receiver) = oneshot::channel();
            state.lines[lane as usize].waiting.push_back(Waiting { bytes, granted });
            self.budget.waiting.fetch_add(1, Ordering::SeqCst);
            // Somebody may have given back since `try_grow`.
            self.budget.serve_lines(&mut state);
            InLine { budget: self.budget.clone(), lane, receiver }
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
        let line = &mut state.lines[self.lane as usize].waiting;
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
