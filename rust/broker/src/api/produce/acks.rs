//! The acknowledgements that a client requires.

use crate::partition::waiters::Promise;

/// Acknowledgements that the client requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acks {
    None,
    Leader,
    All,
}

impl Acks {
    pub(super) fn from_wire(acks: i16) -> Option<Acks> {
        match acks {
            0 => Some(Acks::None),
            1 => Some(Acks::Leader),
            -1 => Some(Acks::All),
            _ => None,
        }
    }

    pub(super) fn promise(self) -> Promise {
        match self {
            Acks::None => Promise::Appended,
            Acks::Leader => Promise::Durable,
            Acks::All => Promise::Committed,
        }
    }
}
