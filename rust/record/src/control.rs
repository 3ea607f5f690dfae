//! Control records: the single record of a control batch.

/// The kind of a control record, from its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlType {
    /// A transaction was aborted.
    Abort,
    /// A transaction was committed.
    Commit,
    /// Raft: a new leader.
    LeaderChange,
    /// Raft: the first record of a snapshot.
    SnapshotHeader,
    /// Raft: the last record of a snapshot.
    SnapshotFooter,
    /// Raft: the version of the quorum's protocol.
    KRaftVersion,
    /// Raft: the voter set of the quorum.
    KRaftVoters,
    /// A type of a later Kafka version; readers skip it.
    Unknown(i16),
}

impl ControlType {
    /// Read a control record's key: version, then type. `None` if it is shorter than that or
    /// its version is negative. A later version may be longer, as in Kafka.
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let (version, rest) = key.split_first_chunk()?;
        if i16::from_be_bytes(*version) < 0 {
            return None;
        }
        Some(match i16::from_be_bytes(*rest.first_chunk()?) {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KRaftVersion,
            6 => Self::KRaftVoters,
            other => Self::Unknown(other),
        })
    }

    /// Its wire number.
    pub fn id(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::LeaderChange => 2,
            Self::SnapshotHeader => 3,
            Self::SnapshotFooter => 4,
            Self::KRaftVersion => 5,
            Self::KRaftVoters => 6,
            Self::Unknown(id) => id,
        }
    }

    /// The key of such a record, in version 0.
    pub fn key(self) -> [u8; 4] {
        let [high, low] = self.id().to_be_bytes();
        [0, 0, high, low]
    }
}

/// The marker that ends a transaction: its control record's key and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTransactionMarker {
    /// True if committed, false if aborted.
    pub committed: bool,
    /// Epoch of the transaction coordinator that wrote it.
    pub coordinator_epoch: i32,
}

impl EndTransactionMarker {
    /// Read a marker; `None` for other control records and for values too short.
    pub fn from_record(key: &[u8], value: &[u8]) -> Option<Self> {
        let committed = match ControlType::from_key(key)? {
            ControlType::Commit => true,
            ControlType::Abort => false,
            _ => return None,
        };
        let (version, rest) = value.split_first_chunk()?;
        if i16::from_be_bytes(*version) < 0 {
            return None;
        }
        let coordinator_epoch = i32::from_be_bytes(*rest.first_chunk()?);
        Some(Self { committed, coordinator_epoch })
    }

    /// The record's key.
    pub fn key(self) -> [u8; 4] {
        if self.committed { ControlType::Commit.key() } else { ControlType::Abort.key() }
    }

    /// The record's value, in version 0.
    pub fn value(self) -> [u8; 6] {
        let [a, b, c, d] = self.coordinator_epoch.to_be_bytes();
        [0, 0, a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_round_trip() {
        for committed in [false, true] {
            let marker = EndTransactionMarker { committed, coordinator_epoch: 7 };
            let read = EndTransactionMarker::from_record(&marker.key(), &marker.value());
            assert_eq!(read, Some(marker));
        }
    }

    #[test]
    fn short_negative_and_other_records_are_not_markers() {
        let value = [0, 0, 0, 0, 0, 1];
        assert_eq!(EndTransactionMarker::from_record(&[0, 0, 0], &value), None);
        assert_eq!(EndTransactionMarker::from_record(&[0, 0, 0, 2], &value), None);
        assert_eq!(EndTransactionMarker::from_record(&[255, 255, 0, 0], &value), None);
        assert_eq!(EndTransactionMarker::from_record(&[0, 0, 0, 0], &value[..5]), None);
    }

    #[test]
    fn every_type_has_its_own_number() {
        for id in 0..9 {
            let [high, low] = i16::to_be_bytes(id);
            let control = ControlType::from_key(&[0, 0, high, low]).expect("whole key");
            assert_eq!(control.id(), id);
        }
    }
}
