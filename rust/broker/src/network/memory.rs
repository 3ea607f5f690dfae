//! How much memory peers may make a broker hold.
//!
//! # Theory of operation
//! `memory_max` is shared out once. Three eighths are for frames that have begun, until they are answered. An eighth is for
//! requests with Python, an eighth for fetch sessions, an eighth for waiting fetches, and a quarter for answers, from
//! before they are made until they are sent ([`Answers`]).
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

/// The parts of one broker's `memory_max`.
pub(crate) struct Memory {
    pub(crate) bytes_max: usize,
    pub(crate) input: Arc<Budget>,
    pub(crate) answers: Answers,
}

impl Memory {
    pub(crate) fn new(memory_max: u64) -> Memory {
        let bytes_max = usize::try_from(memory_max).unwrap_or(usize::MAX);
        let input = Arc::new(Budget::new(bytes_max / 8 * 3));
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
