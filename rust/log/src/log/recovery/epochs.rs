//! Whether `leader-epoch-checkpoint` can be believed.
//!
//! Leader epochs never fall from one batch to the next. So the file is right if it names the epoch
//! of the first and the last batch of the log, and of the batches on both sides of each start
//! offset. Only their headers are read. A file that cannot be believed is rebuilt from all batches.

use std::collections::BTreeSet;

use pykafka_record::LeaderEpoch;

use super::Look;
use super::dir_view::DirView;
use super::recovered::FoundSegment;
use super::snapshots::position_of;
use crate::directory::checkpoint;
use crate::log::epoch_cache::EpochCache;
use crate::log::{OpenError, StorageError};
use crate::segment::FileKind;
use crate::segment::scan::{Header, HeaderScanner, ScanError};

impl Look<'_> {
    /// Reads `leader-epoch-checkpoint`; `false` if it cannot be believed, so that all batches must be
    /// read.
    pub(super) fn load_epochs(&mut self) -> Result<bool, OpenError> {
        let name = checkpoint::LEADER_EPOCH_FILE;
        let Some(bytes) = self.dir.read_if_there(name)? else { return Ok(false) };
        let doubt = match checkpoint::read_epochs(&bytes) {
            Ok(entries) => {
                self.found.epochs = EpochCache::from_entries(entries.iter().copied());
                if self.found.epochs.entries() == entries {
                    self.contradicting_batch()?
                } else {
                    Some("its entries do not grow".to_owned())
                }
            }
            Err(error) => Some(error.to_string()),
        };
        let Some(doubt) = doubt else { return Ok(true) };
        self.found.epochs = EpochCache::default();
        self.warn(name, &format!("{doubt}; rebuilt"));
        Ok(false)
    }

    /// The first batch found with another epoch than the file has for it, in words.
    fn contradicting_batch(&self) -> Result<Option<String>, StorageError> {
        let Look { dir, plan, found, .. } = self;
        let Some(first) = found.segments.first() else { return Ok(None) };
        let start = plan.log_start_offset.unwrap_or(0).max(first.base_offset);
        let starts = found.epochs.entries().iter().map(|entry| entry.start_offset);
        let sides = starts.flat_map(|offset| [offset - 1, offset]).filter(|offset| *offset > start);
        let offsets: BTreeSet<i64> = sides.chain([start, i64::MAX]).collect();
        for offset in offsets {
            let mut segments = found.segments.iter().rev();
            let holds = |segment: &&FoundSegment| segment.size > 0 && segment.base_offset <= offset;
            let Some(segment) = segments.find(holds) else { continue };
            let header = last_header(dir, segment, offset)?;
            let Some(header) = header.filter(|header| header.last_offset >= start) else {
                continue;
            };
            let Some(epoch) = header.leader_epoch else { continue };
            for offset in [header.base_offset.max(start), header.last_offset] {
                let named = found.epochs.epoch_for_offset(offset);
                if named != Some(epoch) {
                    return Ok(Some(contradiction(offset, named, epoch)));
                }
            }
        }
        Ok(None)
    }
}

fn contradiction(offset: i64, named: Option<LeaderEpoch>, epoch: LeaderEpoch) -> String {
    let named = named.map_or("no epoch".to_owned(), |named| format!("epoch {named}"));
    format!("it has {named} for offset {offset}, and the batch there has {epoch}")
}

/// The last batch of a segment that begins at or before `offset`, up to a bad one.
fn last_header(
    dir: &DirView<'_>,
    segment: &FoundSegment,
    offset: i64,
) -> Result<Option<Header>, StorageError> {
    let position = position_of(dir, segment.base_offset, offset)?;
    let name = segment.name(FileKind::Log);
    let file = dir.open(&name)?;
    let mut headers = HeaderScanner::new(&*file, position, segment.size);
    let mut last = None;
    loop {
        match headers.next() {
            Ok(Some(header)) if header.base_offset <= offset => last = Some(header),
            Ok(_) | Err(ScanError::Bad(_)) => return Ok(last),
            Err(ScanError::Io(error)) => return Err(dir.error("read", &name)(error)),
        }
    }
}
