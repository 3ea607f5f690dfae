//! The state that all parts of a connection use, and the reasons why it ends.

use std::future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::time::sleep;

use super::pipeline::Pipeline;
use super::sending::Sending;
use crate::control_api::log_ring::{Level, escaped};
use crate::control_api::settings::Settings;
use crate::network::Network;
use crate::network::connections::Closing;
use crate::network::output;
use crate::network::time_slice::TimeSlice;
use crate::network::transport::Transport;
use crate::request::ConnectionInfo;

const TARGET: &str = "broker.connection";

/// The reason why a connection ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The peer disconnected.
    Peer,
    /// It was idle for `connections.max.idle.ms`.
    Idle,
    /// The broker stops.
    Stopped,
    /// Closed by `close_connection` or at the end of a stop.
    Asked,
    /// A request closed the connection, after the responses to the requests before it.
    Refused(String),
    /// The peer sent invalid data, or was too slow.
    Killed(String),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Ended {
        Ended::Peer
    }
}

impl Ended {
    /// Peer disconnects are not reported; a response that could not be sent completely is.
    pub(super) fn of_sending(error: &io::Error) -> Ended {
        if output::is_of_peer(error) {
            return Ended::Peer;
        }
        Ended::Killed(format!("a response could not be sent to its end: {error}"))
    }
}

/// The state that all parts of a connection use.
pub(super) struct Link<T> {
    pub(super) transport: T,
    pub(super) info: ConnectionInfo,
    pub(super) closing: Arc<Closing>,
    pub(super) network: Arc<Network>,
    pub(super) slice: Arc<TimeSlice>,
}

impl<T: Transport> Link<T> {
    pub(super) fn settings(&self) -> Arc<Settings> {
        self.network.settings.load_full()
    }

    /// Remaining time for which the client's quota mutes the connection.
    pub(super) fn muted(&self) -> Option<Duration> {
        self.info.mute.remaining(|| self.network.clock.now_ns())
    }

    /// Controllers must communicate before the broker serves, because it needs their decisions.
    pub(super) async fn wait_serving(&self) -> Result<(), Ended> {
        if self.info.controller_apis.is_some() {
            return Ok(());
        }
        let mut serving = self.network.serving.subscribe();
        tokio::select! {
            served = serving.wait_for(|serving| *serving) => {
                served.map(|_| ()).map_err(|_| Ended::Stopped)
            }
            () = self.closing.changed() => Err(Ended::Stopped),
        }
    }

    /// Waits until there is something to read, or until the peer disconnects.
    pub(super) async fn readable(&self) -> Result<(), Ended> {
        self.transport.ready(Interest::READABLE).await?;
        Ok(())
    }

    /// Ends the connection if it should be closed and nothing prevents it: a stop waits for produce
    /// requests, but not for polls or for Python.
    pub(super) fn check_closing(&self, pipeline: &Pipeline) -> Result<(), Ended> {
        if self.closing.is_closed() {
            Err(Ended::Asked)
        } else if self.closing.is_draining() && !pipeline.has_produce() {
            Err(Ended::Stopped)
        } else {
            Ok(())
        }
    }

    /// Waits until more of `sending` can be sent, unless the peer is too slow.
    pub(super) async fn wait_writable(&self, sending: &Sending) -> Result<(), Ended> {
        loop {
            let settings = self.settings();
            let now_ns = self.network.clock.now_ns();
            let remaining_ms = sending.remaining_ms(now_ns, &settings, &self.network.memory);
            if remaining_ms == Some(0) {
                let text = format!("it took {} bytes of responses too slowly", sending.size());
                return Err(Ended::Killed(text));
            }
            // The memory may become scarce during the wait.
            let wait_ms = remaining_ms.unwrap_or(u64::MAX).min(settings.frame_ms_max.max(1));
            tokio::select! {
                ready = self.transport.ready(Interest::WRITABLE) => return Ok(ready.map(|_| ())?),
                () = self.closing.changed() => if self.closing.is_closed() {
                    return Err(Ended::Asked);
                },
                () = sleep(Duration::from_millis(wait_ms)) => {}
            }
        }
    }

    pub(super) fn report(&self, ended: Ended) {
        let host = &self.info.client_host;
        match ended {
            Ended::Killed(reason) | Ended::Refused(reason) => {
                self.network.statistics.connections_killed.add(1);
                let reason = escaped(&reason);
                self.network.log_ring.log(Level::Warning, TARGET, || {
                    format!("closed the connection from {host}: {reason}")
                });
            }
            Ended::Asked => {
                let reason = self.closing.reason();
                self.network.log_ring.log(Level::Info, TARGET, || {
                    format!("closed the connection from {host} as asked: {}", escaped(&reason))
                });
            }
            Ended::Idle => self
                .network
                .log_ring
                .log(Level::Debug, TARGET, || format!("closed the idle connection from {host}")),
            Ended::Peer | Ended::Stopped => {}
        }
    }
}

/// Sleeps for `ms` milliseconds; forever if negative.
pub(super) async fn sleep_ms(ms: i64) {
    match u64::try_from(ms) {
        Ok(ms) => sleep(Duration::from_millis(ms)).await,
        Err(_) => future::pending().await,
    }
}
