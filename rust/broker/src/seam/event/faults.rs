//! The faults of a partition's log, as one value: each report has all of them.

use std::collections::BTreeMap;

/// A fault of a log. The gravest is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogFault {
    /// It failed or cannot be opened: it serves nothing.
    Offline,
    /// It is damaged: it is read up to the damage, and never written.
    ReadOnly,
    /// A read met bytes that are not a batch; the log still takes records.
    Unreadable,
    /// It cannot be compacted; it serves.
    Uncleanable,
}

impl LogFault {
    /// As Python names it.
    pub fn name(self) -> &'static str {
        match self {
            LogFault::Offline => "offline",
            LogFault::ReadOnly => "read_only",
            LogFault::Unreadable => "unreadable",
            LogFault::Uncleanable => "uncleanable",
        }
    }
}

/// The faults of a log and the reason of each. A whole or a deleted log has no fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<LogFault, String>);

impl Faults {
    /// Each fault with its reason, the gravest first.
    pub fn iter(&self) -> impl Iterator<Item = (LogFault, &str)> {
        self.0.iter().map(|(fault, reason)| (*fault, &**reason))
    }

    pub(crate) fn has(&self, fault: LogFault) -> bool {
        self.0.contains_key(&fault)
    }

    /// The log is open: with damage, or without.
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
