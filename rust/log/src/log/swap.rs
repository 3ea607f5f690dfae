//! Names that an interrupted compaction, truncation or deletion left behind.
//!
//! `.cleaned` is a result not finished, `.deleted` is what was to go: both are removed. `.swap` is a result that
//! was complete: it replaces the segments it was made from, which are those its offsets cover.

use std::io;
use std::path::Path;

use crate::disk::Disk;
use crate::segment::scan::BatchScanner;
use crate::segment::{FileKind, parse_file_name};

/// Brings `dir` to a state with plain names only; returns whether a swap was completed.
pub(crate) fn tidy(disk: &dyn Disk, dir: &Path) -> io::Result<bool> {
    let mut swaps = Vec::new();
    for entry in disk.list(dir)?.into_iter().filter(|entry| !entry.is_dir) {
        let Some(name) = entry.name.to_str() else { continue };
        if [".cleaned", ".deleted", ".tmp"].iter().any(|suffix| name.ends_with(suffix)) {
            disk.remove_file(&dir.join(name))?;
        } else if let Some(plain) = name.strip_suffix(".swap") {
            swaps.push(plain.to_owned());
        }
    }
    for plain in &swaps {
        if let Some((base_offset, FileKind::Log)) = parse_file_name(plain) {
            remove_replaced(disk, dir, plain, base_offset)?;
        }
    }
    for plain in &swaps {
        disk.rename(&dir.join(format!("{plain}.swap")), &dir.join(plain))?;
    }
    if !swaps.is_empty() {
        disk.sync_dir(dir)?;
    }
    Ok(!swaps.is_empty())
}

/// Removes the segments whose records `<plain>.swap` holds.
fn remove_replaced(disk: &dyn Disk, dir: &Path, plain: &str, base_offset: i64) -> io::Result<()> {
    let next_offset = next_offset(disk, &dir.join(format!("{plain}.swap")))?;
    for entry in disk.list(dir)? {
        let Some(name) = entry.name.to_str() else { continue };
        let Some((offset, kind)) = parse_file_name(name) else { continue };
        let is_replaced = (base_offset..next_offset.max(base_offset + 1)).contains(&offset);
        if is_replaced && kind != FileKind::Snapshot {
            disk.remove_file(&dir.join(name))?;
        }
    }
    Ok(())
}

/// The offset after the last batch of a `.log`.
fn next_offset(disk: &dyn Disk, path: &Path) -> io::Result<i64> {
    let file = disk.open(path, crate::disk::OpenMode::Read)?;
    let mut scanner = BatchScanner::new(&*file, 0, file.size()?);
    let mut next_offset = 0;
    while let Ok(Some((_, batch))) = scanner.next() {
        next_offset = batch.next_offset();
    }
    Ok(next_offset)
}
