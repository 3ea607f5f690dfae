//! How much memory peers may make a broker hold.
//!
//! # Theory of operation
//! `memory_max` is shared out once, in [`Parts`].
//!
//! A part that can be waited for is a [`Budget`]; what is held of it is a [`Share`](budget::Share), which is attached to the
//! bytes that it stands for. What a connection costs anyway is not counted: 64 KiB of input, and answers below
//! [`SMALL_BYTES_MAX`](crate::network::answers::SMALL_BYTES_MAX). Small requests with small answers always pass.
//!
//! Nobody waits for a part while it holds another that the first depends on: frames wait for answers, answers wait for
//! their peers, and a peer that takes nothing is closed when others wait.

pub(crate) mod budget;

use std::sync::Arc;

use crate::network::answers::Answers;
use crate::network::memory::budget::Budget;
use crate::seam::settings::Settings;

/// What `memory_max` is shared out to, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// Frames that have begun, until they are answered.
    pub(crate) input: usize,
    /// Answers, from before they are made until they are sent.
    pub(crate) answers: usize,
    /// Requests with Python, as they are once they are decoded.
    pub(crate) requests: usize,
    pub(crate) sessions: usize,
    /// Fetches that wait for records.
    pub(crate) parked: usize,
    /// What batches inflate to while they are read: a window of a large one, but for one that cannot be read so.
    pub(crate) inflated: usize,
    /// Buffers for reads that are kept to be used again.
    pub(crate) read_buffers: usize,
}

impl Parts {
    pub(crate) fn of(memory_max: u64) -> Parts {
        let sixteenth = usize::try_from(memory_max).unwrap_or(usize::MAX) / 16;
        Parts {
            input: sixteenth * 5,
            answers: sixteenth * 4,
            requests: sixteenth * 2,
            sessions: sixteenth * 2,
            parked: sixteenth,
            inflated: sixteenth,
            read_buffers: sixteenth,
        }
    }
}

/// The budgets of one broker.
pub(crate) struct Memory {
    parts: Parts,
    /// What one request may take once Python has decoded it: half of all, as its answer takes as much.
    pub(crate) decoded_bytes_max: usize,
    pub(crate) input: Arc<Budget>,
    pub(crate) answers: Answers,
    pub(crate) requests: Arc<Budget>,
    pub(crate) sessions: Arc<Budget>,
    pub(crate) parked: Arc<Budget>,
}

impl Memory {
    pub(crate) fn new(memory_max: u64) -> Memory {
        let parts = Parts::of(memory_max);
        let budget = |bytes_max| Arc::new(Budget::new(bytes_max));
        Memory {
            parts,
            decoded_bytes_max: usize::try_from(memory_max / 2).unwrap_or(usize::MAX),
            input: budget(parts.input),
            answers: Answers::new(parts.answers),
            requests: budget(parts.requests),
            sessions: budget(parts.sessions),
            parked: budget(parts.parked),
        }
    }

    /// Takes the bounds that are settings: lower ones than those of the broker.
    pub(crate) fn set(&self, settings: &Settings) {
        let queued_bytes_max = match usize::try_from(settings.queued_request_bytes_max) {
            Ok(bytes @ 1..) => bytes,
            _ => usize::MAX,
        };
        self.input.set_bytes_max(queued_bytes_max.min(self.parts.input));
        self.requests.set_bytes_max(settings.parked_bytes_max.min(self.parts.requests));
    }
}
