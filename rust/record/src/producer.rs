//! Id and epoch of an idempotent or transactional producer (KIP-98).

use std::fmt;

/// A producer's id, ≥ 0. Any negative number means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(i64);

impl ProducerId {
    /// The value in batches without an idempotent producer. Less than any id.
    pub const NONE: ProducerId = ProducerId(-1);

    /// The id with this number.
    pub const fn new(id: i64) -> ProducerId {
        ProducerId(id)
    }

    /// Its number, for output.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Whether it is a valid id.
    pub fn is_some(self) -> bool {
        self > Self::NONE
    }
}

impl fmt::Display for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Epoch of a producer id: it increases each time that an older instance is fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerEpoch(i16);

impl ProducerEpoch {
    /// The value next to [`ProducerId::NONE`], and of an unknown producer. Less than any epoch.
    pub const NONE: ProducerEpoch = ProducerEpoch(-1);

    /// The epoch with this number.
    pub const fn new(epoch: i16) -> ProducerEpoch {
        ProducerEpoch(epoch)
    }

    /// Its number, for output.
    pub const fn get(self) -> i16 {
        self.0
    }
}

impl fmt::Display for ProducerEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
