//! Questions to the transaction coordinator, which is Python's, from the event to the answer.

use tokio::sync::oneshot;

use crate::seam::event::Token;
use crate::slots::Slots;

/// Those that are open. Each is answered, refused or cancelled once.
pub(crate) struct Verifications {
    slots: Slots<oneshot::Sender<Vec<i16>>>,
}

impl Verifications {
    pub(crate) fn new() -> Verifications {
        Verifications { slots: Slots::new() }
    }

    /// The token that Python answers to, and where the answer arrives: an error if none will come.
    pub(crate) fn open(&self) -> (Token, oneshot::Receiver<Vec<i16>>) {
        let (sender, receiver) = oneshot::channel();
        (self.slots.insert(sender), receiver)
    }

    /// An unknown token is dropped: nobody waits for it any more.
    pub(crate) fn settle(&self, token: Token, error_codes: Vec<i16>) {
        if let Some(sender) = self.slots.remove(token) {
            // Whoever asked may have gone away.
            let _ = sender.send(error_codes);
        }
    }

    /// Whether the question was still open.
    pub(crate) fn cancel(&self, token: Token) -> bool {
        self.slots.remove(token).is_some()
    }

    /// Nobody answers any more.
    pub(crate) fn refuse_all(&self) {
        self.slots.clear();
    }
}
