//! One connection, one task: read, handle, answer, in order.
//!
//! A connection has one request in hand at a time (contract/kafka.md#4). Whole frames that are already buffered are handled one after
//! the other without a further read, and their answers go out in one write; that is all the batching there is, and a client
//! that pipelines gets it without any hop between threads.
//!
//! While an answer is pending (a long poll, a produce that waits for its replicas, a request in Python's hands) the connection
//! is muted: the task polls the answer and watches the peer. It reads ahead only to notice that the peer has gone, and at most
//! [`READ_AHEAD_BYTES_MAX`]; dropping the pending answer is its cancellation.
//!
//! A peer that has ended its sending side still gets the answers to all it sent, as from Kafka; only then is its connection
//! closed. A peer that has closed both sides looks the same until something is written to it, so its pending request lives
//! until it is answered or the connection is idle for too long; a reset ends it at once.
//!
//! Deadlines: an idle connection is closed after `connections.max.idle.ms`, whether or not an answer is pending; a frame that
//! has begun must arrive at a minimal rate; a peer that does not take its answers is closed like an idle one.

use std::future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BufMut;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::api::context::{ConnectionInfo, Context, Header, Outcome, PendingOutcome};
use crate::api::dispatch::{LastClientId, dispatch};
use crate::network::connections::Closing;
use crate::network::input::Input;
use crate::network::output;
use crate::network::output::Output;
use crate::network::socket::Socket;
use crate::network::turn::{TURN_BYTES_MAX, Turn, in_turns};
use crate::seam::log_ring::{Level, escaped};
use crate::seam::settings::Settings;

/// A frame in transit must move at least this fast, once `internal.frame.max.ms` is over.
pub(crate) const FRAME_BYTES_PER_MS_MIN: u64 = 64;
/// And at least this fast while others wait for the memory that it holds.
const FRAME_IN_THE_WAY_BYTES_PER_MS_MIN: u64 = 1_024;
/// Answers are written at the latest when they are this large.
const GATHERED_BYTES_MAX: usize = 256 << 10;
/// Read while an answer is pending.
const READ_AHEAD_BYTES_MAX: usize = 64 << 10;
/// An idle connection gives its buffers back after this.
const QUIET_MS: u64 = 500;
const TARGET: &str = "broker.connection";

/// Why a connection ended.
#[derive(Debug)]
enum Ended {
    /// The peer went away.
    Peer,
    /// `connections.max.idle.ms`.
    Idle,
    /// The broker stops.
    Stopped,
    /// By `close_connection` or at the end of a stop.
    Asked,
    /// What the peer sent, or how slowly.
    Killed(String),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Ended {
        Ended::Peer
    }
}

impl Ended {
    /// What the peer does is no news; but an answer that could not be completed is.
    fn of_sending(error: &io::Error) -> Ended {
        if output::is_of_peer(error) {
            return Ended::Peer;
        }
        Ended::Killed(format!("an answer could not be sent to its end: {error}"))
    }
}

/// Serves `stream` until it ends.
pub(crate) async fn run(
    ctx: Arc<Context>,
    stream: TcpStream,
    info: ConnectionInfo,
    closing: Arc<Closing>,
) {
    let turn = Arc::new(Turn::default());
    let mut connection = Connection {
        stream,
        turn: turn.clone(),
        info,
        closing,
        ctx: ctx.clone(),
        input: Input::new(ctx.memory.input.share()),
        output: Output::default(),
        client_id: LastClientId::new(),
        frame_since_ns: None,
    };
    let Err(ended) = in_turns(&turn, connection.serve()).await;
    connection.report(ended);
}

/// A task that never ends well.
enum Never {}

struct Connection {
    stream: TcpStream,
    info: ConnectionInfo,
    closing: Arc<Closing>,
    ctx: Arc<Context>,
    turn: Arc<Turn>,
    input: Input,
    output: Output,
    client_id: LastClientId,
    /// Since when the frame at the head of the input is incomplete.
    frame_since_ns: Option<u64>,
}

impl Connection {
    async fn serve(&mut self) -> Result<Never, Ended> {
        self.wait_serving().await?;
        loop {
            self.handle_buffered().await?;
            self.flush().await?;
            self.input.settle();
            if self.closing.is_draining() {
                return Err(Ended::Stopped);
            }
            self.give_way().await?;
            self.fill().await?;
        }
    }

    fn settings(&self) -> Arc<Settings> {
        self.ctx.image.load().settings.clone()
    }

    async fn wait_serving(&self) -> Result<(), Ended> {
        let mut serving = self.ctx.serving.subscribe();
        tokio::select! {
            served = serving.wait_for(|serving| *serving) => {
                served.map(|_| ()).map_err(|_| Ended::Stopped)
            }
            () = self.closing.changed() => Err(Ended::Stopped),
        }
    }

    /// Handles every whole frame of the input.
    async fn handle_buffered(&mut self) -> Result<(), Ended> {
        let size_max = self.ctx.image.load().settings.socket_request_bytes_max;
        loop {
            let frame = match self.input.next_frame(size_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(error) => return self.kill(error.to_string()).await,
            };
            self.frame_since_ns = None;
            let received = (self.ctx.clock.now_ns(), self.ctx.clock.now_ms());
            self.turn.handled(received.0);
            let (header, outcome) =
                dispatch(&self.ctx, &self.info, &mut self.client_id, frame, received);
            self.settle(header, outcome).await?;
            if self.output.size() >= GATHERED_BYTES_MAX {
                self.flush().await?;
            }
            if self.closing.is_draining() {
                return Ok(());
            }
            self.give_way().await?;
        }
    }

    /// Lets other connections run if this one has had its turn; what it has answered goes out before.
    async fn give_way(&mut self) -> Result<(), Ended> {
        if self.turn.is_over(self.ctx.clock.now_ns()) {
            self.flush().await?;
            self.turn.give_away().await;
        }
        Ok(())
    }

    async fn settle(&mut self, header: Option<Header>, outcome: Outcome) -> Result<(), Ended> {
        let (header, mut outcome) = match (header, outcome) {
            (_, Outcome::Close(reason)) => return self.kill(reason).await,
            (None, _) => return self.kill("a request without header".into()).await,
            (Some(header), outcome) => (header, outcome),
        };
        while let Outcome::Pending(pending) = outcome {
            self.flush().await?;
            outcome = self.wait_outcome(pending, &header).await?;
        }
        match outcome {
            Outcome::Reply(reply) => self.output.push(&header, reply),
            Outcome::Close(reason) => return self.kill(reason).await,
            Outcome::NoReply | Outcome::Pending(_) => {}
        }
        Ok(())
    }

    /// Ends the connection, after the answers to what came before.
    async fn kill<T>(&mut self, reason: String) -> Result<T, Ended> {
        self.flush().await?;
        Err(Ended::Killed(reason))
    }

    async fn wait_outcome(
        &mut self,
        mut pending: PendingOutcome,
        header: &Header,
    ) -> Result<Outcome, Ended> {
        // A stop waits for what may be appended; it does not wait for polls or for Python.
        let drains = header.api_key == pykafka_wire::ApiKey::PRODUCE;
        let idle_ms = self.settings().connections_idle_ms_max;
        tokio::select! {
            biased;
            outcome = &mut pending => Ok(outcome),
            ended = self.watch_peer(drains) => Err(ended),
            () = sleep_ms(idle_ms) => Err(Ended::Idle),
        }
    }

    /// Returns when the connection should end although its answer is pending.
    async fn watch_peer(&mut self, drains: bool) -> Ended {
        let mut has_finished = false;
        loop {
            if self.closing.is_closed() {
                return Ended::Asked;
            }
            if self.closing.is_draining() && !drains {
                return Ended::Stopped;
            }
            let reads = !has_finished && self.input.size() < READ_AHEAD_BYTES_MAX;
            let interest =
                if reads { Interest::READABLE | Interest::ERROR } else { Interest::ERROR };
            tokio::select! {
                ready = self.stream.ready(interest) => match ready {
                    Ok(ready) if !ready.is_error() => match self.read(None) {
                        Ok(0) => has_finished = true,
                        Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Ended::Peer,
                        _ => {}
                    },
                    _ => return Ended::Peer,
                },
                () = self.closing.changed() => {}
            }
        }
    }

    /// Sends all answers.
    async fn flush(&mut self) -> Result<(), Ended> {
        let size = self.output.size();
        let mut held = None;
        while self.output.size() > 0 {
            let before = self.output.size();
            let sent = self.output.send(&mut Socket(&self.stream), TURN_BYTES_MAX);
            self.turn.moved(before - self.output.size());
            match sent {
                Ok(()) if self.output.size() > 0 => self.turn.give_away().await,
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let memory = &self.ctx.memory;
                    held.get_or_insert_with(|| memory.hold_answers(self.output.memory_size()));
                    self.wait_writable().await?;
                }
                Err(error) => return Err(Ended::of_sending(&error)),
            }
        }
        self.ctx.statistics.bytes_sent.add(size as u64);
        Ok(())
    }

    async fn wait_writable(&self) -> Result<(), Ended> {
        let idle_ms = self.settings().connections_idle_ms_max;
        loop {
            tokio::select! {
                ready = self.stream.writable() => return Ok(ready?),
                () = self.closing.changed() => if self.closing.is_closed() {
                    return Err(Ended::Asked);
                },
                () = sleep_ms(idle_ms) => return Err(Ended::Idle),
            }
        }
    }

    /// Reads until there is something new in the input.
    async fn fill(&mut self) -> Result<(), Ended> {
        let size_max = self.ctx.image.load().settings.socket_request_bytes_max;
        loop {
            let frame_size = match self.input.frame_size(size_max) {
                Ok(size) => size,
                Err(error) => return self.kill(error.to_string()).await,
            };
            self.admit(frame_size).await?;
            match self.read(frame_size) {
                Ok(0) => return Err(Ended::Peer),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_readable(frame_size).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes what has arrived; 0 once the peer has ended its sending side and all was taken.
    fn read(&mut self, frame_size: Option<usize>) -> io::Result<usize> {
        let mut room = self.input.room(frame_size);
        let wanted = room.remaining_mut();
        let size = self.stream.try_read_buf(&mut room)?;
        self.input.adapt(size, wanted);
        self.turn.moved(size);
        self.ctx.statistics.bytes_received.add(size as u64);
        Ok(size)
    }

    /// Waits until there is memory for what is read next. Meanwhile nothing is read, and the frame's time stands still.
    async fn admit(&mut self, frame_size: Option<usize>) -> Result<(), Ended> {
        if self.input.try_admit(frame_size) {
            return Ok(());
        }
        let muted_ns = self.ctx.clock.now_ns();
        tokio::select! {
            () = self.input.admit(frame_size) => {}
            _ = self.stream.ready(Interest::ERROR) => return Err(Ended::Peer),
            () = self.closing.changed() => return Err(Ended::Stopped),
        }
        if let Some(since_ns) = &mut self.frame_since_ns {
            *since_ns += self.ctx.clock.now_ns().saturating_sub(muted_ns);
        }
        Ok(())
    }

    async fn wait_readable(&mut self, frame_size: Option<usize>) -> Result<(), Ended> {
        let settings = self.settings();
        if !self.input.is_empty() {
            let remaining_ms = self.frame_remaining_ms(&settings, frame_size);
            let stalled_ms = settings.frame_ms_max as i64;
            tokio::select! {
                ready = self.stream.readable() => return Ok(ready?),
                () = self.closing.changed() => return Err(Ended::Stopped),
                () = sleep_ms(remaining_ms.min(stalled_ms)) => {}
            }
            return if remaining_ms <= stalled_ms {
                Err(Ended::Killed(format!("a frame took longer than {stalled_ms} ms")))
            } else if self.input.is_in_the_way() {
                let text = "a frame stood still for {} ms in memory that others wait for";
                Err(Ended::Killed(text.replace("{}", &stalled_ms.to_string())))
            } else {
                Ok(())
            };
        }
        let idle_ms = settings.connections_idle_ms_max;
        let quiet = Duration::from_millis(QUIET_MS.min(idle_ms.try_into().unwrap_or(u64::MAX)));
        tokio::select! {
            ready = self.stream.readable() => return Ok(ready?),
            () = self.closing.changed() => return Err(Ended::Stopped),
            () = sleep(quiet) => {}
        }
        self.input.release();
        self.output.release();
        tokio::select! {
            ready = self.stream.readable() => Ok(ready?),
            () = self.closing.changed() => Err(Ended::Stopped),
            () = sleep_ms(idle_ms - quiet.as_millis() as i64) => Err(Ended::Idle),
        }
    }

    /// What is left for the frame that has begun.
    fn frame_remaining_ms(&mut self, settings: &Settings, frame_size: Option<usize>) -> i64 {
        let now_ns = self.ctx.clock.now_ns();
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

    fn report(&self, ended: Ended) {
        let host = &self.info.client_host;
        match ended {
            Ended::Killed(reason) => {
                self.ctx.statistics.connections_killed.add(1);
                let reason = escaped(&reason);
                self.ctx.log_ring.log(Level::Warning, TARGET, || {
                    format!("closed the connection from {host}: {reason}")
                });
            }
            Ended::Asked => {
                let reason = self.closing.reason();
                self.ctx.log_ring.log(Level::Info, TARGET, || {
                    format!("closed the connection from {host} as asked: {}", escaped(&reason))
                });
            }
            Ended::Idle => self
                .ctx
                .log_ring
                .log(Level::Debug, TARGET, || format!("closed the idle connection from {host}")),
            Ended::Peer | Ended::Stopped => {}
        }
    }
}

/// Never returns for a negative duration.
async fn sleep_ms(ms: i64) {
    match u64::try_from(ms) {
        Ok(ms) => sleep(Duration::from_millis(ms)).await,
        Err(_) => future::pending().await,
    }
}
