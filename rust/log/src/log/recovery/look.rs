//! A look at the directory of a log.

use std::collections::BTreeSet;

use super::dir_view::DirView;
use super::plan::Plan;
use super::recovered::Recovered;

/// A look at a log's directory: the plan and the findings so far.
pub(super) struct Look<'a> {
    pub(super) dir: DirView<'a>,
    pub(super) plan: Plan,
    /// Offsets of the producer snapshots that will be on disk.
    pub(super) snapshots: BTreeSet<i64>,
    pub(super) found: Recovered,
}

impl Look<'_> {
    /// Adds a warning about a file for the log output.
    pub(super) fn warn(&mut self, name: &str, warning: &str) {
        let path = self.dir.path(name);
        self.found.verdict.warnings.push(format!("{}: {warning}", path.display()));
    }
}
