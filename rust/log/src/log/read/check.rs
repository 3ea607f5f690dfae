//! Checks a segment in which a read met bytes that are not a batch.

use pykafka_record::Cancellation;

use crate::error::StorageError;
use crate::log::Log;
use crate::log::compaction::{malformed, unreadable};
use crate::log::snapshot::Snapshot;
use crate::segment::Segment;
use crate::segment::scan::BatchScanner;

impl Log {
    /// Reads the part of the segment at `base_offset` that is available to readers: its batches
    /// from the log start offset on. Does nothing if the segment no longer exists.
    ///
    /// # Errors
    /// [`StorageError::Malformed`] at the first bytes that are not a batch; the log cannot be read,
    /// or is closed. A cancelled check returns the same error as a closed log.
    pub(crate) fn check_segment(
        &self,
        base_offset: i64,
        cancellation: &Cancellation,
    ) -> Result<(), StorageError> {
        self.undisturbed(|snapshot| snapshot.check_segment(base_offset, cancellation))
    }
}

impl Snapshot {
    fn check_segment(
        &self,
        base_offset: i64,
        cancellation: &Cancellation,
    ) -> Result<(), StorageError> {
        let mut segments = self.segments.iter().enumerate();
        let found = segments.find(|(_, segment)| segment.base_offset() == base_offset);
        let Some((index, segment)) = found else { return Ok(()) };
        let end_offset = self.end_of(index);
        if end_offset <= self.log_start_offset {
            return Ok(());
        }
        let position = self.position_of(index, segment, self.log_start_offset)?;
        match check(segment, position, end_offset, cancellation) {
            // As in a read, an index entry may be wrong.
            Err(StorageError::Malformed { .. }) if position > 0 => {
                check(segment, 0, end_offset, cancellation)
            }
            checked => checked,
        }
    }
}

fn check(
    segment: &Segment,
    position: u64,
    end_offset: i64,
    cancellation: &Cancellation,
) -> Result<(), StorageError> {
    let files = &*segment.files;
    let file = files.log()?;
    let mut scanner = BatchScanner::new(&*file, position, segment.size);
    let mut reached = segment.base_offset();
    loop {
        cancellation.check().map_err(|_| StorageError::Closed)?;
        let at = scanner.position();
        let batch = match scanner.next() {
            Ok(Some(batch)) => batch,
            Ok(None) => return Ok(()),
            Err(error) => return Err(unreadable(files, at, error)),
        };
        let (base_offset, last_offset) = (batch.base_offset(), batch.last_offset());
        if base_offset < reached || last_offset < base_offset || last_offset >= end_offset {
            return Err(malformed(files, at, format!("its offset {base_offset} is wrong")));
        }
        if !batch.is_crc_valid().map_err(|error| unreadable(files, at, error.into()))? {
            return Err(malformed(files, at, "its checksum is wrong".to_owned()));
        }
        reached = last_offset + 1;
    }
}
