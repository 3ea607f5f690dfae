//! Damage below the log start offset. The records there were deleted, so the damage does not affect
//! the remaining ones.
//!
//! A segment below the log start offset may end anywhere. In the segment that contains the log
//! start offset, reading continues after the damage at the first whole batch that is not above the
//! log start offset. The index gets an entry there, so that no reader starts before the damage.

use pykafka_record::{Batch, HEADER_SIZE};

use super::dir_view::DirView;
use super::inspection::Inspection;
use super::recovered::FoundSegment;
use super::stored_indexes::position_of;
use super::tail_scan::{Torn, find_batch};
use crate::disk::ReadFile;
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::segment::offset_index::OffsetEntry;
use crate::segment::scan::{HeaderScanner, ScanError, is_batch};

impl Inspection<'_> {
    /// The first whole batch after the bad one at `position`, if only deleted records are between
    /// the two: its base offset and position.
    pub(super) fn batch_behind_deleted(
        &self,
        index: usize,
        position: u64,
    ) -> Result<Option<OffsetEntry>, StorageError> {
        let Inspection { input, found, .. } = self;
        let (segment, end) = (&found.segments[index], found.log_end_offset);
        if position >= segment.size || end >= input.log_start_offset.unwrap_or(0) {
            return Ok(None);
        }
        let name = segment.name(FileKind::Log);
        let file = self.dir.open(&name)?;
        let look = || {
            let torn = Torn::at(&*file, position, end)?;
            let behind = end_of_whole(&*file, position)?.unwrap_or(position + 1);
            find_batch(&*file, behind..segment.size, end, torn)
        };
        let batch = look().map_err(self.dir.error("read", &name))?;
        Ok(batch.filter(|batch| input.is_deleted(batch.offset)))
    }
}

/// The end of the batch at `position` if it is whole, which means that its base offset is wrong.
fn end_of_whole(file: &dyn ReadFile, position: u64) -> std::io::Result<Option<u64>> {
    let mut header = [0; HEADER_SIZE];
    let read = file.read_at(&mut header, position)?;
    let size = Batch::size_in(&header[..read]).ok();
    Ok(if is_batch(file, position)? { size.map(|size| position + size as u64) } else { None })
}

/// True if a reader that starts at the offset index's position for `offset` meets no bad header
/// before `offset`.
pub(super) fn is_readable_from(
    dir: &DirView<'_>,
    segment: &FoundSegment,
    offset: i64,
) -> Result<bool, StorageError> {
    let position = position_of(dir, segment.base_offset, offset)?;
    let name = segment.name(FileKind::Log);
    let file = dir.open(&name)?;
    let mut headers = HeaderScanner::new(&*file, position, segment.size);
    loop {
        match headers.next() {
            Ok(Some(header)) if header.last_offset < offset => {}
            Ok(_) => return Ok(true),
            Err(ScanError::Bad(_)) => return Ok(false),
            Err(ScanError::Io(error)) => return Err(dir.error("read", &name)(error)),
        }
    }
}
