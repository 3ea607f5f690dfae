//! The faults of a partition's log, as one value: each report contains all of them.

use std::collections::BTreeMap;

/// A fault of a log, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogFault {
    /// The log failed or cannot be opened: it is unavailable.
    Offline,
    /// The log is damaged: it can be read up to the damage, and is never written.
    ReadOnly,
    /// A read found bytes that are not a batch; the log still accepts records.
    Unreadable,
    /// The log cannot be compacted, but is available.
    Uncleanable,
}

impl LogFault {
    /// The name in Python.
    pub fn name(self) -> &'static str {
        match self {
            LogFault::Offline => "offline",
            LogFault::ReadOnly => "read_only",
            LogFault::Unreadable => "unreadable",
            LogFault::Uncleanable => "uncleanable",
        }
    }
}

/// The faults of a log and the reason of each; empty for an intact or a deleted log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<LogFault, String>);

impl Faults {
    /// Each fault with its reason, the most severe first.
    pub fn iter(&self) -> impl Iterator<Item = (LogFault, &str)> {
        self.0.iter().map(|(fault, reason)| (*fault, &**reason))
    }

    pub(crate) fn has(&self, fault: LogFault) -> bool {
        self.0.contains_key(&fault)
    }

    /// Updates the faults for a log that was opened, with or without damage.
    pub(crate) fn opened(&mut self, damage: Option<String>) {
        self.end(LogFault::Offline);
        self.end(LogFault::ReadOnly);
        if let Some(damage) = damage {
            self.begin(LogFault::ReadOnly, damage);
        }
    }

    pub(crate) fn begin(&mut self, fault: LogFault, reason: String) {
        self.0.insert(fault, reason);
    }

    pub(crate) fn end(&mut self, fault: LogFault) {
        self.0.remove(&fault);
    }
}
