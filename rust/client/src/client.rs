//! The client, with a task for each destination.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connector::Connector;
use crate::link::Link;
use crate::options::ClientOptions;
use crate::request::{Completion, Destination, Pending, Request, SendError, Wanted};
use crate::table::{Links, Table};

/// Sends requests to other nodes; see the crate documentation.
#[derive(Debug)]
pub struct Client<C> {
    connector: Arc<C>,
    options: Arc<ClientOptions>,
    runtime: Handle,
    table: Arc<Table>,
    open: Arc<Open>,
}

/// Counts the requests that have not ended.
#[derive(Debug, Default)]
struct Open {
    count: AtomicUsize,
    /// Notified when a request ends.
    ended: Notify,
}

impl<C: Connector> Client<C> {
    /// Creates a client without connections.
    pub fn new(connector: C, options: ClientOptions, runtime: Handle) -> Client<C> {
        Client {
            connector: Arc::new(connector),
            options: Arc::new(options),
            runtime,
            table: Arc::default(),
            open: Arc::default(),
        }
    }

    /// Sends a request. `done` is called once, on a thread of the runtime or on the calling thread,
    /// and must not block.
    pub fn send(
        &self,
        to: &Destination,
        request: Request,
        done: impl FnOnce(Result<Bytes, SendError>) + Send + 'static,
    ) {
        let Request { api_key, api_version, body, timeout, response_bytes_expected } = request;
        let bytes_expected = response_bytes_expected;
        let wanted = Wanted::Response { api_key, api_version, body, bytes_expected };
        self.begin(to, wanted, timeout, done);
    }

    /// Opens a connection if there is none, and reports its end as an error: [`SendError::Refused`]
    /// if the port is not in use, [`SendError::TimedOut`] if the connection outlasts `timeout`.
    /// `done` is called as in [`Client::send`].
    pub fn watch(
        &self,
        to: &Destination,
        timeout: Duration,
        done: impl FnOnce(Result<Bytes, SendError>) + Send + 'static,
    ) {
        self.begin(to, Wanted::End, timeout, done);
    }

    fn begin(
        &self,
        to: &Destination,
        wanted: Wanted,
        timeout: Duration,
        done: impl FnOnce(Result<Bytes, SendError>) + Send + 'static,
    ) {
        let open_before = self.open.count.fetch_add(1, Ordering::AcqRel);
        let open = self.open.clone();
        let completion = Completion::new(move |ended| {
            done(ended);
            open.count.fetch_sub(1, Ordering::AcqRel);
            open.ended.notify_waiters();
        });
        if open_before >= self.options.open_max {
            return completion.complete(Err(SendError::Full(open_before)));
        }
        let pending = Pending { wanted, deadline: Instant::now() + timeout, completion };
        let refused = self.hand_over(to, pending);
        // Completed outside of the lock.
        drop(refused);
    }

    /// Passes the request to the task of its destination; returns it if there is no task and none
    /// can be started.
    fn hand_over(&self, to: &Destination, pending: Pending) -> Option<Pending> {
        let mut links = self.table.0.lock();
        if links.is_closed {
            return Some(pending);
        }
        let Some(sender) = links.senders.get(to) else {
            return self.start(to, &mut links).send(pending).err().map(|refused| refused.0);
        };
        // The task has crashed, so a new one is started.
        let Err(refused) = sender.send(pending) else { return None };
        self.start(to, &mut links).send(refused.0).err().map(|refused| refused.0)
    }

    /// Ends the connection to a destination, and all requests to it with [`SendError::Closed`].
    pub fn disconnect(&self, to: &Destination) {
        let sender = self.table.0.lock().senders.remove(to);
        drop(sender);
    }

    /// Ends all connections and requests; later requests fail with [`SendError::Closed`].
    pub fn close(&self) {
        let senders = {
            let mut links = self.table.0.lock();
            links.is_closed = true;
            std::mem::take(&mut links.senders)
        };
        drop(senders);
    }

    /// Number of open requests.
    pub fn open_count(&self) -> usize {
        self.open.count.load(Ordering::Acquire)
    }

    /// Waits until no request is open, which is soon after [`Client::close`].
    pub async fn wait_none(&self) {
        loop {
            let ended = self.open.ended.notified();
            if self.open_count() == 0 {
                return;
            }
            ended.await;
        }
    }

    fn start(&self, to: &Destination, links: &mut Links) -> UnboundedSender<Pending> {
        let (sender, requests) = unbounded_channel();
        let ClientOptions { backoff_first, backoff_max, seed, .. } = *self.options;
        let seed = seed.wrapping_add(links.senders.len() as u64).wrapping_add(u64::from(to.port));
        let link = Link {
            to: to.clone(),
            options: self.options.clone(),
            connector: self.connector.clone(),
            requests,
            table: self.table.clone(),
            backoff: Backoff::new(backoff_first, backoff_max, seed),
        };
        self.runtime.spawn(link.run());
        links.senders.insert(to.clone(), sender.clone());
        sender
    }
}
