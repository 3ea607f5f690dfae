//! File names that an interrupted compaction, truncation or deletion left behind.
//!
//! `.deleted` marks files to delete, `.cleaned` an unfinished result. `.swap` marks a complete
//! result: it replaces the segments that it was made from, which are those whose offsets it covers.
//! But a `.swap` file next to a `.cleaned` file of the same or a lower offset is part of an
//! unfinished split (KAFKA-6264). `.tmp` is the copy of a truncation.
//!
//! The required changes are determined first, without changing a file, so that an open for reading
//! only sees the same log.

use std::io;
use std::path::Path;

use super::recovery::dir_view::DirView;
use crate::disk::{DirEntry, Disk};
use crate::error::StorageError;
use crate::file_names::{
    CLEANED_SUFFIX, DELETED_SUFFIX, FileKind, SWAP_SUFFIX, TEMPORARY_SUFFIX, parse_file_name,
};
use crate::segment::scan::BatchScanner;

/// Files that an interrupted run left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leftovers {
    /// Names of files that are removed.
    removed: Vec<String>,
    /// Plain names of the files that lose their suffix [`SWAP_SUFFIX`].
    swapped: Vec<String>,
}

impl Leftovers {
    /// Finds them among the entries of `dir`.
    pub(crate) fn find(dir: &DirView<'_>, entries: &[DirEntry]) -> Result<Leftovers, StorageError> {
        let names: Vec<&str> = (entries.iter().filter(|entry| !entry.is_dir))
            .filter_map(|entry| entry.name.to_str())
            .collect();
        let ends_with = |suffix: &'static str| {
            names.iter().filter_map(move |name| Some((*name, name.strip_suffix(suffix)?)))
        };
        let offset = |plain: &str| parse_file_name(plain).map(|(offset, _)| offset);
        let cleaned = ends_with(CLEANED_SUFFIX).filter_map(|(_, plain)| offset(plain)).min();
        let is_complete = |plain: &str| match (offset(plain), cleaned) {
            (Some(offset), Some(cleaned)) => offset < cleaned,
            _ => true,
        };
        let mut removed: Vec<&str> = [DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX]
            .into_iter()
            .flat_map(|suffix| ends_with(suffix).map(|(name, _)| name))
            .collect();
        let (swapped, incomplete): (Vec<_>, Vec<_>) =
            ends_with(SWAP_SUFFIX).partition(|(_, plain)| is_complete(plain));
        removed.extend(incomplete.iter().map(|(name, _)| *name));
        for (name, plain) in &swapped {
            let Some((base_offset, FileKind::Log)) = parse_file_name(plain) else { continue };
            let end = next_offset(dir, name)?.max(base_offset.saturating_add(1));
            let is_replaced = |name: &str| {
                parse_file_name(name).is_some_and(|(offset, kind)| {
                    kind != FileKind::Snapshot && (base_offset..end).contains(&offset)
                })
            };
            removed.extend(names.iter().filter(|name| is_replaced(name)));
        }
        removed.sort_unstable();
        removed.dedup();
        Ok(Leftovers {
            removed: removed.into_iter().map(str::to_owned).collect(),
            swapped: swapped.into_iter().map(|(_, plain)| plain.to_owned()).collect(),
        })
    }

    /// Removes and renames files until `dir` has plain names only.
    pub(crate) fn tidy(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        // Removed first: half of a result must not look like a whole one if the process ends here.
        let (halves, others): (Vec<_>, Vec<_>) =
            self.removed.iter().partition(|name| name.ends_with(SWAP_SUFFIX));
        halves.iter().try_for_each(|name| disk.remove_file(&dir.join(name)))?;
        if !halves.is_empty() {
            disk.sync_dir(dir)?;
        }
        others.iter().try_for_each(|name| disk.remove_file(&dir.join(name)))?;
        if self.swapped.is_empty() {
            return Ok(());
        }
        // Replaced files must not reappear next to their replacement.
        disk.sync_dir(dir)?;
        for plain in &self.swapped {
            disk.rename(&dir.join(format!("{plain}{SWAP_SUFFIX}")), &dir.join(plain))?;
        }
        disk.sync_dir(dir)
    }

    /// The entries that remain after [`Leftovers::tidy`].
    pub(crate) fn tidied(&self, entries: &[DirEntry]) -> Vec<DirEntry> {
        let is_left = |entry: &&DirEntry| {
            let removed = |name| self.removed.binary_search_by(|gone| gone.as_str().cmp(name));
            entry.name.to_str().is_none_or(|name| removed(name).is_err())
        };
        let mut left: Vec<DirEntry> = entries.iter().filter(is_left).cloned().collect();
        for entry in &mut left {
            let plain = entry.name.to_str().and_then(|name| name.strip_suffix(SWAP_SUFFIX));
            if let Some(plain) = plain.map(str::to_owned) {
                entry.name = plain.into();
            }
        }
        left
    }

    /// Plain names of the files that still have the suffix [`SWAP_SUFFIX`].
    pub(crate) fn swapped(&self) -> &[String] {
        &self.swapped
    }

    /// True if the file with this plain name still has the suffix [`SWAP_SUFFIX`].
    pub(crate) fn is_swapped(&self, plain: &str) -> bool {
        self.swapped.iter().any(|swapped| swapped == plain)
    }
}

/// The offset after the last batch of a `.log`.
pub(super) fn next_offset(dir: &DirView<'_>, name: &str) -> Result<i64, StorageError> {
    let file = dir.open(name)?;
    let size = file.size().map_err(dir.error("read", name))?;
    let mut scanner = BatchScanner::new(&*file, 0, size);
    let mut next_offset = 0;
    while let Ok(Some(batch)) = scanner.next() {
        next_offset = batch.next_offset();
    }
    Ok(next_offset)
}
