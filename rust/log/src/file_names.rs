//! Names of the files in a log's directory.

/// The files of a segment, by suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    Snapshot,
}

impl FileKind {
    /// All kinds of files whose name starts with a segment's base offset.
    pub(crate) const SEGMENT: [FileKind; 4] =
        [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex, FileKind::Log];

    pub(crate) fn suffix(self) -> &'static str {
        match self {
            FileKind::Log => ".log",
            FileKind::OffsetIndex => ".index",
            FileKind::TimeIndex => ".timeindex",
            FileKind::TransactionIndex => ".txnindex",
            FileKind::Snapshot => ".snapshot",
        }
    }

    pub(crate) fn from_suffix(suffix: &str) -> Option<FileKind> {
        FileKind::SEGMENT
            .into_iter()
            .chain([FileKind::Snapshot])
            .find(|kind| kind.suffix() == suffix)
    }
}

/// Suffix of files that are complete and will be renamed to their plain names.
pub(crate) const SWAP_SUFFIX: &str = ".swap";
/// Suffix of files that are being written to replace others.
pub(crate) const CLEANED_SUFFIX: &str = ".cleaned";
/// Suffix of files that will be removed.
pub(crate) const DELETED_SUFFIX: &str = ".deleted";
/// Suffix of the copies that a truncation makes.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// Marker in a log's directory after a failed sync; removed once all data that may be lost was
/// written again.
///
/// After a failed sync the kernel may treat pages as clean that never reached the disk. An open of
/// the log reads them from the page cache, and no later sync of that file writes them. The marker
/// need not be durable: a crash of the machine loses these pages too.
pub(crate) const SYNC_FAILED_FILE: &str = "sync-failed";

/// Stages of files on the way to their plain names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SwapStage {
    /// The files have their plain names.
    Plain,
    /// The files have the suffix [`SWAP_SUFFIX`], or are about to lose it.
    Swapped,
    /// The files have the suffix [`CLEANED_SUFFIX`].
    Cleaned,
}

impl SwapStage {
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            SwapStage::Plain => "",
            SwapStage::Swapped => SWAP_SUFFIX,
            SwapStage::Cleaned => CLEANED_SUFFIX,
        }
    }
}

/// `<20 digits>` and the suffix.
pub(crate) fn file_name(base_offset: i64, kind: FileKind) -> String {
    format!("{base_offset:020}{}", kind.suffix())
}

/// The offset and kind in a file's name; `None` for names of another form, and for 2^63 − 1, which
/// is not a valid record offset.
pub(crate) fn parse_file_name(name: &str) -> Option<(i64, FileKind)> {
    let (digits, suffix) = name.split_at_checked(20)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let offset = digits.parse().ok().filter(|offset| is_number && *offset < i64::MAX)?;
    Some((offset, FileKind::from_suffix(suffix)?))
}

/// True if the next open removes or renames the file with this name.
pub(crate) fn is_left_over(name: &str) -> bool {
    [DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX, SWAP_SUFFIX]
        .into_iter()
        .any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_round_trip_and_other_names_are_rejected() {
        for kind in FileKind::SEGMENT {
            assert_eq!(parse_file_name(&file_name(119, kind)), Some((119, kind)));
        }
        for name in ["119.log", "0000000000000000011x.log", "00000000000000000119.log.deleted", "é"]
        {
            assert_eq!(parse_file_name(name), None, "{name}");
        }
        assert_eq!(parse_file_name("09223372036854775807.log"), None);
        assert_eq!(parse_file_name("+0000000000000000119.log"), None);
    }
}
