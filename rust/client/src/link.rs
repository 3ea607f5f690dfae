//! The task of one destination. It opens the connection when there is something to send, and serves
//! it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until, timeout};

use crate::backoff::Backoff;
use crate::connector::Connector;
use crate::exchange::{Broken, Exchange};
use crate::options::ClientOptions;
use crate::request::{Destination, Pending, SendError, expire};
use crate::table::Table;

/// All senders to this destination were dropped.
struct Closed;

pub(crate) struct Link<C> {
    pub(crate) to: Destination,
    pub(crate) options: Arc<ClientOptions>,
    pub(crate) connector: Arc<C>,
    pub(crate) requests: UnboundedReceiver<Pending>,
    pub(crate) table: Arc<Table>,
    pub(crate) backoff: Backoff,
}

impl<C: Connector> Link<C> {
    pub(crate) async fn run(mut self) {
        loop {
            let idle = timeout(self.options.idle_max, self.requests.recv()).await;
            let served = match idle {
                Ok(Some(pending)) => self.serve(pending).await,
                Ok(None) => Err(Closed),
                Err(_) if self.table.retire(&self.to, &self.requests) => Err(Closed),
                Err(_) => Ok(()),
            };
            if served.is_err() {
                return;
            }
        }
    }

    /// Sends a request on a new connection, and further ones while the connection lasts.
    async fn serve(&mut self, pending: Pending) -> Result<(), Closed> {
        let now = Instant::now();
        if let Some(pause) = self.backoff.remaining(now) {
            let reason =
                format!("the next one to {} is tried in {} ms", self.to, pause.as_millis());
            pending.fail(SendError::Disconnected(reason.into()));
            return Ok(());
        }
        let mut waiting = VecDeque::from([pending]);
        match self.connect(&mut waiting).await? {
            Ok(stream) => self.exchange(stream, waiting).await,
            Err(error) => {
                self.backoff.failed(Instant::now());
                let reason = format!("{}: {error}", self.to).into();
                let error = match error.kind() {
                    io::ErrorKind::ConnectionRefused => SendError::Refused(reason),
                    _ => SendError::Disconnected(reason),
                };
                for pending in waiting {
                    pending.fail(error.clone());
                }
                Ok(())
            }
        }
    }

    /// Opens a connection. Requests that arrive during this wait for it until their deadlines.
    async fn connect(
        &mut self,
        waiting: &mut VecDeque<Pending>,
    ) -> Result<io::Result<C::Stream>, Closed> {
        let connector = self.connector.clone();
        let to = self.to.clone();
        let opening = timeout(self.options.setup_timeout, connector.open(&to));
        tokio::pin!(opening);
        loop {
            let deadline = waiting.iter().map(|pending| pending.deadline).min();
            tokio::select! {
                opened = &mut opening => {
                    return Ok(opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())));
                }
                next = self.requests.recv() => waiting.push_back(next.ok_or(Closed)?),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    expire(waiting, Instant::now());
                }
            }
        }
    }

    /// Serves a connection until it ends.
    async fn exchange(
        &mut self,
        stream: C::Stream,
        waiting: VecDeque<Pending>,
    ) -> Result<(), Closed> {
        let ClientOptions { client_id, response_bytes_max, setup_timeout, .. } = &*self.options;
        let told_by = Instant::now() + *setup_timeout;
        let mut exchange = Exchange::begin(client_id.clone(), *response_bytes_max, told_by);
        for pending in waiting {
            exchange.submit(pending);
        }
        let ended = self.converse(stream, &mut exchange).await;
        if exchange.is_established() {
            self.backoff.succeeded();
        } else {
            self.backoff.failed(Instant::now());
        }
        match ended {
            Ok(Closed) => Err(Closed),
            Err(reason) => {
                exchange.fail(&SendError::Disconnected(format!("{}: {reason}", self.to).into()));
                Ok(())
            }
        }
    }

    async fn converse(
        &mut self,
        stream: C::Stream,
        exchange: &mut Exchange,
    ) -> Result<Closed, Broken> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut idle_since = Instant::now();
        loop {
            if !exchange.is_idle() {
                idle_since = Instant::now();
            }
            let until = exchange.deadline().unwrap_or(idle_since + self.options.idle_max);
            let (input, output) = exchange.buffers();
            let has_output = !output.is_empty();
            let step = tokio::select! {
                read = reader.read_buf(input) => Step::Read(read),
                written = writer.write_buf(output), if has_output => Step::Written(written),
                next = self.requests.recv() => Step::Next(next),
                () = sleep_until(until) => Step::Late,
            };
            match step {
                Step::Read(Ok(0)) => return Err("the peer closed it".into()),
                Step::Read(Ok(_)) => exchange.received()?,
                Step::Written(Ok(_)) => {}
                Step::Read(Err(error)) | Step::Written(Err(error)) => {
                    return Err(error.to_string().into());
                }
                Step::Next(None) => return Ok(Closed),
                Step::Next(Some(pending)) => exchange.submit(pending),
                Step::Late if exchange.is_idle() => return Err("it was idle".into()),
                Step::Late => exchange.expire(Instant::now())?,
            }
        }
    }
}

enum Step {
    Read(io::Result<usize>),
    Written(io::Result<usize>),
    Next(Option<Pending>),
    Late,
}
