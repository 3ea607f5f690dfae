//! Bounds for the memory that peers can occupy in a broker.
//!
//! # Theory of operation
//! `memory_max` is divided once, into [`Parts`].
//!
//! A part that requests can wait for is a [`Budget`]; a reservation is a [`Share`](budget::Share),
//! which is attached to the bytes that it covers. The fixed cost of a connection is not counted: 64
//! KiB of input, and responses below
//! [`SMALL_BYTES_MAX`](crate::network::response_memory::SMALL_BYTES_MAX). Small requests with small
//! responses always pass.
//!
//! A request never waits for a part while it holds another part that the first one depends on:
//! frames wait for responses, responses wait for their peers, and a peer that does not read is
//! closed when others wait.

pub(crate) mod budget;

use std::sync::Arc;

use crate::control_api::settings::Settings;
use crate::network::memory::budget::Budget;
use crate::network::response_memory::ResponseMemory;

/// The parts of `memory_max`, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// Frames, from their first byte until their response, or until their request waits in Python.
    pub(crate) input: usize,
    /// Responses, from before they are built until they are sent.
    pub(crate) responses: usize,
    /// Requests that Python runs, in decoded form.
    pub(crate) requests: usize,
    pub(crate) sessions: usize,
    /// Fetches that wait for records.
    pub(crate) parked: usize,
    /// Decompressed records during reads: a window of a large batch, or all of a batch that cannot
    /// be read in windows.
    pub(crate) inflated: usize,
    /// Read buffers that are kept for reuse.
    pub(crate) read_buffers: usize,
}

impl Parts {
    pub(crate) fn of(memory_max: u64) -> Parts {
        let sixteenth = usize::try_from(memory_max).unwrap_or(usize::MAX) / 16;
        Parts {
            input: sixteenth * 5,
            responses: sixteenth * 4,
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
    /// Maximum size of one request after decoding in Python: half of `memory_max`, because its
    /// response takes as much.
    pub(crate) decoded_bytes_max: usize,
    pub(crate) input: Arc<Budget>,
    pub(crate) responses: ResponseMemory,
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
            responses: ResponseMemory::new(parts.responses),
            requests: budget(parts.requests),
            sessions: budget(parts.sessions),
            parked: budget(parts.parked),
        }
    }

    /// Applies the bounds of the settings, if they are lower than those of the broker.
    pub(crate) fn set(&self, settings: &Settings) {
        let queued_bytes_max = match usize::try_from(settings.queued_request_bytes_max) {
            Ok(bytes @ 1..) => bytes,
            _ => usize::MAX,
        };
        self.input.set_bytes_max(queued_bytes_max.min(self.parts.input));
        self.requests.set_bytes_max(settings.parked_bytes_max.min(self.parts.requests));
    }
}
