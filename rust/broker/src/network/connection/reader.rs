//! The receiving side of a connection: its reads and their deadlines.

use std::io;
use std::time::Duration;

use bytes::BufMut;
use pykafka_log::Clock;
use tokio::io::Interest;
use tokio::time::sleep;

use super::arrivals::{Arrivals, Moment};
use super::link::{Ended, Link, sleep_ms};
use super::sending::{FRAME_BYTES_PER_MS_MIN, FRAME_IN_THE_WAY_BYTES_PER_MS_MIN};
use crate::control_api::settings::Settings;
use crate::network::input::Input;
use crate::network::output::Output;
use crate::network::transport::Transport;

/// Maximum bytes to read while no request can start.
pub(super) const READ_AHEAD_BYTES_MAX: usize = 64 << 10;
/// An idle connection frees its buffers after this time.
const QUIET_MS: u64 = 500;

/// The data that a connection may read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intake {
    /// The next frame, because it can be handled once it is complete.
    Frame,
    /// A few bytes, to detect that the peer disconnected.
    Ahead,
    /// Nothing; a reset is still detected.
    Nothing,
}

/// The received bytes, and the deadline of an incomplete frame.
pub(super) struct Reader {
    pub(super) input: Input,
    arrivals: Arrivals,
    /// Time since which the first frame of the input is incomplete.
    frame_since_ns: Option<u64>,
    /// Time since which the connection waits for memory; the deadline of the frame is paused.
    muted_since_ns: Option<u64>,
    has_finished: bool,
}

impl Reader {
    pub(super) fn new(input: Input) -> Reader {
        Reader {
            input,
            arrivals: Arrivals::default(),
            frame_since_ns: None,
            muted_since_ns: None,
            has_finished: false,
        }
    }

    /// True if the peer has closed its sending side and all its bytes were read.
    pub(super) fn has_finished(&self) -> bool {
        self.has_finished
    }

    /// Removes the first frame of the input, of `size` bytes with its prefix. Returns the arrival
    /// time of its last byte.
    pub(super) fn frame_taken(&mut self, size: usize) -> Moment {
        self.frame_since_ns = None;
        self.arrivals.take(size)
    }

    /// Returns after new input, after the peer closed its sending side, or after a request to close
    /// the connection that may have to wait. `output` is empty; an idle connection frees its
    /// memory. Dropping the future loses nothing.
    pub(super) async fn read_on<T: Transport>(
        &mut self,
        link: &Link<T>,
        intake: Intake,
        output: &mut Output,
    ) -> Result<(), Ended> {
        match intake {
            Intake::Frame => self.fill(link, output).await,
            Intake::Ahead => self.watch(link, Interest::READABLE | Interest::ERROR).await,
            Intake::Nothing => self.watch(link, Interest::ERROR).await,
        }
    }

    /// Reads a part of the next frame, or waits for input and for memory.
    async fn fill<T: Transport>(
        &mut self,
        link: &Link<T>,
        output: &mut Output,
    ) -> Result<(), Ended> {
        let size_max = link.network.settings.load().socket_request_bytes_max;
        let frame_size = self.input.frame_size(size_max);
        let frame_size = frame_size.map_err(|error| Ended::Refused(error.to_string()))?;
        if !self.input.try_admit(frame_size) {
            return self.wait_admitted(link, frame_size).await;
        }
        self.unmute(&*link.network.clock);
        match self.read(link, frame_size) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result.map_err(Ended::from),
        }
        if self.input.is_empty() {
            self.wait_readable(link, output).await
        } else {
            self.wait_frame(link, frame_size).await
        }
    }

    /// Reads ahead, or only watches the peer while a response is pending.
    async fn watch<T: Transport>(
        &mut self,
        link: &Link<T>,
        interest: Interest,
    ) -> Result<(), Ended> {
        tokio::select! {
            ready = link.transport.ready(interest) => match ready {
                Ok(ready) if !ready.is_error() => match self.read(link, None) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                    result => result.map_err(Ended::from),
                },
                _ => Err(Ended::Peer),
            },
            () = link.closing.changed() => Ok(()),
            () = sleep_ms(link.settings().connections_idle_ms_max) => Err(Ended::Idle),
        }
    }

    /// Reads the bytes that have arrived.
    fn read<T: Transport>(&mut self, link: &Link<T>, frame_size: Option<usize>) -> io::Result<()> {
        let mut room = self.input.room(frame_size);
        let wanted = room.remaining_mut();
        let size = link.transport.try_read(&mut room)?;
        self.has_finished |= size == 0;
        if size > 0 {
            let clock = &link.network.clock;
            let now_ns = clock.now_ns();
            link.info.standing.used(now_ns);
            self.arrivals.received(size, (now_ns, clock.now_ms()));
        }
        self.input.adapt(size, wanted);
        link.slice.moved(size);
        link.network.statistics.bytes_received.add(size as u64);
        Ok(())
    }

    /// Waits for memory for the next read. Nothing is read during the wait.
    async fn wait_admitted<T: Transport>(
        &mut self,
        link: &Link<T>,
        frame_size: Option<usize>,
    ) -> Result<(), Ended> {
        self.muted_since_ns.get_or_insert_with(|| link.network.clock.now_ns());
        tokio::select! {
            () = self.input.admit(frame_size) => Ok(()),
            _ = link.transport.ready(Interest::ERROR) => Err(Ended::Peer),
            () = link.closing.changed() => Ok(()),
        }
    }

    /// Extends the deadline of the frame by the time for which the connection waited for memory.
    fn unmute(&mut self, clock: &dyn Clock) {
        if let Some(muted_since_ns) = self.muted_since_ns.take()
            && let Some(frame_since_ns) = &mut self.frame_since_ns
        {
            *frame_since_ns += clock.now_ns().saturating_sub(muted_since_ns);
        }
    }

    /// Waits for the rest of an incomplete frame until its deadline.
    async fn wait_frame<T: Transport>(
        &mut self,
        link: &Link<T>,
        frame_size: Option<usize>,
    ) -> Result<(), Ended> {
        let settings = link.settings();
        let remaining_ms =
            self.frame_remaining_ms(link.network.clock.now_ns(), &settings, frame_size);
        let stalled_ms = settings.frame_ms_max as i64;
        tokio::select! {
            readable = link.readable() => return readable,
            () = link.closing.changed() => return Ok(()),
            () = sleep_ms(remaining_ms.min(stalled_ms)) => {}
        }
        if remaining_ms <= stalled_ms {
            Err(Ended::Killed(format!("a frame took longer than {stalled_ms} ms")))
        } else if self.input.is_in_the_way() {
            let text = "a frame got no bytes for {} ms while others wait for its memory";
            Err(Ended::Killed(text.replace("{}", &stalled_ms.to_string())))
        } else {
            Ok(())
        }
    }

    /// Waits for the start of the next frame.
    async fn wait_readable<T: Transport>(
        &mut self,
        link: &Link<T>,
        output: &mut Output,
    ) -> Result<(), Ended> {
        let idle_ms = link.settings().connections_idle_ms_max;
        let quiet = Duration::from_millis(QUIET_MS.min(idle_ms.try_into().unwrap_or(u64::MAX)));
        tokio::select! {
            readable = link.readable() => return readable,
            () = link.closing.changed() => return Ok(()),
            () = sleep(quiet) => {}
        }
        self.input.release();
        output.release();
        tokio::select! {
            readable = link.readable() => readable,
            () = link.closing.changed() => Ok(()),
            () = sleep_ms(idle_ms - quiet.as_millis() as i64) => Err(Ended::Idle),
        }
    }

    /// Remaining milliseconds for the incomplete frame.
    fn frame_remaining_ms(
        &mut self,
        now_ns: u64,
        settings: &Settings,
        frame_size: Option<usize>,
    ) -> i64 {
        let since_ns = *self.frame_since_ns.get_or_insert(now_ns);
        let bytes_per_ms_min = if self.input.is_in_the_way() {
            FRAME_IN_THE_WAY_BYTES_PER_MS_MIN
        } else {
            FRAME_BYTES_PER_MS_MIN
        };
        let allowed = settings.frame_ms_max + frame_size.unwrap_or(0) as u64 / bytes_per_ms_min;
        let elapsed = now_ns.saturating_sub(since_ns) / 1_000_000;
        allowed.saturating_sub(elapsed) as i64
    }
}
