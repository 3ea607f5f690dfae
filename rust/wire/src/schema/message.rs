//! A message with its structs and the plan of each version.

use once_cell::race::OnceBox;

use super::fields::{Struct, Versions};
use crate::DecodeError;
use crate::plan::Plan;

/// Maximum number of versions of a message.
const VERSIONS_MAX: usize = 20;

/// Purpose of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sent by a client.
    Request,
    /// Sent to a client.
    Response,
    /// A record of the cluster metadata log.
    Metadata,
    /// The key of a coordinator's record; its API key is the version number at its start.
    CoordinatorKey,
    /// The value of a coordinator's record; its API key is that of its key.
    CoordinatorValue,
    /// Other stored or embedded data.
    Data,
    /// A record of the log about segments in tiered storage.
    RemoteMetadata,
}

/// A message with all its versions.
#[derive(Debug)]
pub struct Message {
    /// Index in [`super::messages`].
    pub index: usize,
    /// Kafka's name: `CreateTopicsRequest`, `TopicRecord`.
    pub name: &'static str,
    /// Its purpose.
    pub kind: Kind,
    /// API key, or the type number of a stored record; -1 without one.
    pub api_key: i16,
    /// Versions that exist.
    pub versions: Versions,
    /// First version with compact lengths and tagged fields, `i16::MAX` if none has them.
    pub flexible_since: i16,
    /// Its structs; the first is the message itself.
    pub structs: &'static [&'static Struct],
    plans: [OnceBox<Plan>; VERSIONS_MAX],
}

impl Message {
    /// Creates a table row.
    pub(crate) const fn new(
        index: usize,
        name: &'static str,
        kind: Kind,
        api_key: i16,
        versions: [i16; 2],
        flexible_since: i16,
        structs: &'static [&'static Struct],
    ) -> Message {
        assert!(((versions[1] - versions[0]) as usize) < VERSIONS_MAX);
        let versions = Versions(versions[0], versions[1]);
        let plans = [const { OnceBox::new() }; VERSIONS_MAX];
        Message { index, name, kind, api_key, versions, flexible_since, structs, plans }
    }

    /// The plan for `version`, created on first use.
    pub fn plan(&'static self, version: i16) -> Result<&'static Plan, DecodeError> {
        if !self.versions.contains(version) {
            return Err(DecodeError::UnsupportedVersion { api_key: self.api_key, version });
        }
        let place = (version - self.versions.0) as usize;
        Ok(self.plans[place].get_or_init(|| {
            Box::new(Plan::new(self.structs[0], version, version >= self.flexible_since))
        }))
    }
}
