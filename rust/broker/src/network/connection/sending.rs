//! Responses that the peer does not receive at once, and their deadline.
//!
//! A peer that does not read counts as idle: it has `connections.max.idle.ms`, plus the time that
//! its responses take at a minimum rate, even if it reads a little now and then. Responses in
//! memory that others wait for have the same minimum rate as frames in such memory.

use crate::control_api::settings::Settings;
use crate::network::memory::Memory;

/// Minimum rate of an incomplete frame after `internal.frame.max.ms`.
pub(super) const FRAME_BYTES_PER_MS_MIN: u64 = 64;
/// Minimum rate of the frame while others wait for its memory.
pub(super) const FRAME_IN_THE_WAY_BYTES_PER_MS_MIN: u64 = 1_024;

/// An incomplete send.
pub(super) struct Sending {
    since_ns: u64,
    size: usize,
    held_bytes: usize,
}

impl Sending {
    /// Starts at `now_ns` with `size` bytes of responses; `held_bytes` of them are in memory.
    pub(super) fn new(now_ns: u64, size: usize, held_bytes: usize) -> Sending {
        Sending { since_ns: now_ns, size, held_bytes }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Remaining milliseconds at `now_ns`; `None` without a deadline.
    pub(super) fn remaining_ms(
        &self,
        now_ns: u64,
        settings: &Settings,
        memory: &Memory,
    ) -> Option<u64> {
        let (begin_ms, bytes_per_ms_min) = if self.held_bytes > 0 && memory.responses.are_scarce() {
            (settings.frame_ms_max, FRAME_IN_THE_WAY_BYTES_PER_MS_MIN)
        } else {
            let idle_ms = u64::try_from(settings.connections_idle_ms_max).ok()?;
            (idle_ms, FRAME_BYTES_PER_MS_MIN)
        };
        let elapsed_ms = now_ns.saturating_sub(self.since_ns) / 1_000_000;
        let allowed_ms = begin_ms.saturating_add(self.size as u64 / bytes_per_ms_min);
        Some(allowed_ms.saturating_sub(elapsed_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pykafka_log::ManualClock;
    use std::pin::pin;
    use std::task::{Context, Waker};

    const SIZE: usize = 64 << 20;
    const MS: u64 = 1_000_000;

    fn settings(idle_ms: i64) -> Settings {
        Settings { connections_idle_ms_max: idle_ms, frame_ms_max: 30, ..Settings::default() }
    }

    #[test]
    fn sending_may_take_the_idle_time_plus_the_time_at_the_minimum_rate() {
        let memory = Memory::new(1 << 30);
        let sending = Sending::new(5 * MS, SIZE, SIZE);
        let allowed_ms = 100 + SIZE as u64 / FRAME_BYTES_PER_MS_MIN;
        let remaining = |at_ms| sending.remaining_ms((5 + at_ms) * MS, &settings(100), &memory);
        assert_eq!(remaining(0), Some(allowed_ms));
        assert_eq!(remaining(allowed_ms - 1), Some(1));
        assert_eq!(remaining(allowed_ms + 1), Some(0));
        assert_eq!(sending.remaining_ms(u64::MAX, &settings(-1), &memory), None);
    }

    #[test]
    fn replies_in_scarce_memory_must_move_faster_than_those_in_files() {
        let memory = Memory::new(4 * SIZE as u64);
        let clock = ManualClock::new(0);
        let _rooms = [memory.responses.try_room(SIZE), memory.responses.try_room(SIZE)];
        let waiting = memory.responses.room(SIZE, &clock);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let mut waiting = pin!(waiting);
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let (in_memory, in_file) = (Sending::new(0, SIZE, SIZE), Sending::new(0, SIZE, 0));
        let remaining = |sending: &Sending| sending.remaining_ms(0, &settings(-1), &memory);
        let allowed_ms = 30 + SIZE as u64 / FRAME_IN_THE_WAY_BYTES_PER_MS_MIN;
        assert_eq!((remaining(&in_memory), remaining(&in_file)), (Some(allowed_ms), None));
    }
}
