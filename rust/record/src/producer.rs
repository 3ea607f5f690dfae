//! Who wrote a batch: the id and the epoch of an idempotent or transactional producer (KIP-98).

use std::fmt;

/// A producer's id, ≥ 0. Any negative number is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(i64);

impl ProducerId {
    /// Of batches that no idempotent producer wrote. Less than any id.
    pub const NONE: ProducerId = ProducerId(-1);

    /// The id of this number.
    pub const fn new(id: i64) -> ProducerId {
        ProducerId(id)
    }

    /// Its number, to be written or shown.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Whether it is a producer's.
    pub fn is_some(self) -> bool {
        self > Self::NONE
    }
}

impl fmt::Display for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which instance of a producer id wrote a batch: raised each time that an older instance is fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerEpoch(i16);

impl ProducerEpoch {
    /// The epoch beside [`ProducerId::NONE`], and of a producer that nothing is known of. Less than any epoch.
    pub const NONE: ProducerEpoch = ProducerEpoch(-1);

    /// The epoch of this number.
    pub const fn new(epoch: i16) -> ProducerEpoch {
        ProducerEpoch(epoch)
    }

    /// Its number, to be written or shown.
    pub const fn get(self) -> i16 {
        self.0
    }
}

impl fmt::Display for ProducerEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
