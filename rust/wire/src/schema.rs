//! Message schemas: the fields of a message, their versions and their types.
//!
//! The rows are in `tables/`, one for each field of each message of Kafka 4.4. `tools/schemas.py`
//! writes them with the `const fn`s of this module. [`crate::plan`] converts a schema and a version
//! to the steps that read and write it.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use crate::plan::Plan;
use crate::{ApiKey, DecodeError, tables};

/// Upper end of versions without a limit.
pub const MAX: i16 = i16::MAX;

/// Maximum number of versions of a message.
const VERSIONS_MAX: usize = 20;

/// First and last version, both inclusive; empty if the first is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions(pub i16, pub i16);

impl Versions {
    /// No version.
    pub const NONE: Versions = Versions(MAX, -1);

    /// Whether `version` is one of them.
    pub const fn contains(self, version: i16) -> bool {
        self.0 <= version && version <= self.1
    }
}

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
    /// Index in [`messages`].
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
    plans: [OnceLock<Box<Plan>>; VERSIONS_MAX],
}

/// A message's outermost struct, or a nested one.
#[derive(Debug)]
pub struct Struct {
    /// Kafka's name.
    pub name: &'static str,
    /// Index in [`Message::structs`].
    pub index: usize,
    /// The fields in wire order; a field's index is its slot.
    pub fields: &'static [Field],
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// Name in snake case.
    pub name: &'static str,
    /// Type of the field, or of its elements if it is a list.
    pub kind: Type,
    /// Whether this is an array.
    pub is_list: bool,
    /// Versions with the field.
    pub versions: Versions,
    /// Versions in which it may be null.
    pub nullable: Versions,
    /// Versions in which it is a tagged field.
    pub tagged: Versions,
    /// Its tag in these versions.
    pub tag: u32,
    /// Whether versions without the field drop it silently.
    pub ignorable: bool,
    /// The value in versions that lack the field.
    pub default: Default,
}

/// The primitive types, and structs.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// One byte, 0 or 1.
    Bool,
    /// Signed, one byte.
    Int8,
    /// Signed, two bytes.
    Int16,
    /// Unsigned, two bytes.
    Uint16,
    /// Signed, four bytes.
    Int32,
    /// Unsigned, four bytes.
    Uint32,
    /// Signed, eight bytes.
    Int64,
    /// IEEE 754, eight bytes.
    Float64,
    /// Sixteen bytes.
    Uuid,
    /// UTF-8 of at most 32767 bytes.
    String,
    /// Bytes.
    Bytes,
    /// Record batches; the default is null unless specified otherwise.
    Records,
    /// A struct.
    Of(&'static Struct),
}

/// A field's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// 0, false, empty, or a struct of defaults.
    Empty,
    /// This number; 1 is true.
    Int(i64),
    /// Null.
    Null,
}

/// Creates a table row: a field that exists in versions `first` to `last`.
pub(crate) const fn field(name: &'static str, kind: Type, first: i16, last: i16) -> Field {
    let default = if matches!(kind, Type::Records) { Default::Null } else { Default::Empty };
    Field {
        name,
        kind,
        is_list: false,
        versions: Versions(first, last),
        nullable: Versions::NONE,
        tagged: Versions::NONE,
        tag: 0,
        ignorable: false,
        default,
    }
}

impl Field {
    pub(crate) const fn list(self) -> Field {
        Field { is_list: true, ..self }
    }

    pub(crate) const fn nullable(self, first: i16, last: i16) -> Field {
        Field { nullable: Versions(first, last), ..self }
    }

    pub(crate) const fn tagged(self, tag: u32, first: i16, last: i16) -> Field {
        Field { tag, tagged: Versions(first, last), ..self }
    }

    pub(crate) const fn ignorable(self) -> Field {
        Field { ignorable: true, ..self }
    }

    pub(crate) const fn or(self, default: i64) -> Field {
        Field { default: Default::Int(default), ..self }
    }

    pub(crate) const fn or_null(self) -> Field {
        Field { default: Default::Null, ..self }
    }
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
        let plans = [const { OnceLock::new() }; VERSIONS_MAX];
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

/// All messages, by [`Message::index`].
pub fn messages() -> &'static [&'static Message] {
    &INDEX.all
}

/// The message with Kafka's name.
pub fn message_by_name(name: &str) -> Option<&'static Message> {
    INDEX.by_name.get(name).copied()
}

/// The request of an API.
pub fn request_of(api_key: ApiKey) -> Option<&'static Message> {
    INDEX.by_key(Kind::Request, api_key.0)
}

/// The response of an API.
pub fn response_of(api_key: ApiKey) -> Option<&'static Message> {
    INDEX.by_key(Kind::Response, api_key.0)
}

/// The metadata record with that type number.
pub fn metadata_record_of(api_key: i16) -> Option<&'static Message> {
    INDEX.by_key(Kind::Metadata, api_key)
}

struct Index {
    all: Vec<&'static Message>,
    by_name: HashMap<&'static str, &'static Message>,
    keyed: [Vec<Option<&'static Message>>; 3],
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut all: Vec<&'static Message> = tables::MESSAGES.iter().copied().flatten().collect();
    all.sort_by_key(|message| message.index);
    let by_name = all.iter().map(|message| (message.name, *message)).collect();
    let keyed = [Kind::Request, Kind::Response, Kind::Metadata].map(|kind| by_key(&all, kind));
    Index { all, by_name, keyed }
});

fn by_key(all: &[&'static Message], kind: Kind) -> Vec<Option<&'static Message>> {
    let mut keyed = Vec::new();
    for message in all.iter().filter(|message| message.kind == kind) {
        let key = message.api_key as usize;
        keyed.resize(keyed.len().max(key + 1), None);
        keyed[key] = Some(*message);
    }
    keyed
}

impl Index {
    fn by_key(&self, kind: Kind, api_key: i16) -> Option<&'static Message> {
        *self.keyed[kind as usize].get(usize::try_from(api_key).ok()?)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_found_by_its_index_its_name_and_its_key() {
        for (index, &message) in messages().iter().enumerate() {
            assert_eq!(message.index, index);
            let found = message_by_name(message.name).expect("every name is in the index");
            assert!(std::ptr::eq(found, message));
            let by_key = match message.kind {
                Kind::Request => request_of(ApiKey(message.api_key)),
                Kind::Response => response_of(ApiKey(message.api_key)),
                Kind::Metadata => metadata_record_of(message.api_key),
                _ => continue,
            };
            assert!(by_key.is_some_and(|found| std::ptr::eq(found, message)), "{}", message.name);
        }
        assert!(metadata_record_of(-1).is_none() && metadata_record_of(999).is_none());
    }

    #[test]
    fn requests_and_responses_have_the_versions_of_the_api_table() {
        for api in crate::apis() {
            for message in [request_of(api.key), response_of(api.key)] {
                let message = message.expect("an API has a request and a response");
                assert_eq!(message.versions, Versions(api.min_version, api.max_version));
                assert_eq!(message.flexible_since, api.flexible_since, "{}", message.name);
            }
        }
    }

    #[test]
    fn every_version_of_every_message_has_a_plan() {
        for message in messages() {
            for version in message.versions.0..=message.versions.1 {
                let plan = message.plan(version).expect("the version is one of the message");
                let planned = plan.plain.len() + plan.tagged.len() + plan.absent.len();
                assert_eq!(planned, message.structs[0].fields.len(), "{}", message.name);
            }
        }
    }
}
