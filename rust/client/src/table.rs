//! The destinations that have a task.

use std::collections::HashMap;

use pykafka_forks::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::request::{Destination, Pending};

/// The channels of the tasks that take requests, by destination.
#[derive(Debug, Default)]
pub(crate) struct Table(pub(crate) Mutex<Links>);

#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) is_closed: bool,
    pub(crate) senders: HashMap<Destination, UnboundedSender<Pending>>,
}

impl Table {
    /// Removes a destination without requests; false if a request has arrived.
    pub(crate) fn retire(&self, to: &Destination, requests: &UnboundedReceiver<Pending>) -> bool {
        let mut links = self.0.lock();
        let is_done = requests.is_empty();
        // After `disconnect` the entry may belong to a new task, and must be kept.
        if is_done && !requests.is_closed() {
            links.senders.remove(to);
        }
        is_done
    }
}
