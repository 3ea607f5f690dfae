//! An inspection of the directory of a log.

use std::collections::BTreeSet;

use super::dir_view::DirView;
use super::input::RecoveryInput;
use super::recovered::Recovered;

/// An inspection of a log's directory: its input and the findings so far.
pub(super) struct Inspection<'a> {
    pub(super) dir: DirView<'a>,
    pub(super) input: RecoveryInput,
    /// Offsets of the producer snapshots that will be on disk.
    pub(super) snapshots: BTreeSet<i64>,
    pub(super) found: Recovered,
}

impl Inspection<'_> {
    /// Adds a warning about a file for the log output.
    pub(super) fn warn(&mut self, name: &str, warning: &str) {
        let path = self.dir.path(name);
        self.found.verdict.warnings.push(format!("{}: {warning}", path.display()));
    }
}
