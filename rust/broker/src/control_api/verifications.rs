//! Queries to the transaction coordinator in Python, from the event to the response.

use tokio::sync::oneshot;

use crate::control_api::event::Token;
use crate::slots::Slots;

/// The open queries. Each is completed, refused or cancelled once.
pub(crate) struct Verifications {
    slots: Slots<oneshot::Sender<Vec<i16>>>,
}

impl Verifications {
    pub(crate) fn new() -> Verifications {
        Verifications { slots: Slots::new() }
    }

    /// The token for Python's response, and the receiver of the response, which fails if there will
    /// be none.
    pub(crate) fn open(&self) -> (Token, oneshot::Receiver<Vec<i16>>) {
        let (sender, receiver) = oneshot::channel();
        (self.slots.insert(sender), receiver)
    }

    /// An unknown token is ignored: its query was cancelled.
    pub(crate) fn settle(&self, token: Token, error_codes: Vec<i16>) {
        if let Some(sender) = self.slots.remove(token) {
            // The request may have been cancelled.
            let _ = sender.send(error_codes);
        }
    }

    /// Removes the query; returns whether it was still open.
    pub(crate) fn cancel(&self, token: Token) -> bool {
        self.slots.remove(token).is_some()
    }

    /// Fails all open queries when the broker stops.
    pub(crate) fn refuse_all(&self) {
        self.slots.clear();
    }
}
