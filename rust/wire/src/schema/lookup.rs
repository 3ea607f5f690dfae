//! Finds messages by name, API key or type number.

use std::collections::HashMap;

use once_cell::race::OnceBox;

use super::message::{Kind, Message};
use crate::{ApiKey, tables};

/// All messages, by [`Message::index`].
pub fn messages() -> &'static [&'static Message] {
    &index().all
}

/// The message with Kafka's name.
pub fn message_by_name(name: &str) -> Option<&'static Message> {
    index().by_name.get(name).copied()
}

/// The request of an API.
pub fn request_of(api_key: ApiKey) -> Option<&'static Message> {
    index().by_key(Kind::Request, api_key.0)
}

/// The response of an API.
pub fn response_of(api_key: ApiKey) -> Option<&'static Message> {
    index().by_key(Kind::Response, api_key.0)
}

/// The metadata record with that type number.
pub fn metadata_record_of(api_key: i16) -> Option<&'static Message> {
    index().by_key(Kind::Metadata, api_key)
}

struct Index {
    all: Vec<&'static Message>,
    by_name: HashMap<&'static str, &'static Message>,
    keyed: [Vec<Option<&'static Message>>; 3],
}

fn index() -> &'static Index {
    static INDEX: OnceBox<Index> = OnceBox::new();
    INDEX.get_or_init(|| Box::new(Index::new()))
}

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
    fn new() -> Index {
        let mut all: Vec<&'static Message> = tables::MESSAGES.iter().copied().flatten().collect();
        all.sort_by_key(|message| message.index);
        let by_name = all.iter().map(|message| (message.name, *message)).collect();
        let keyed = [Kind::Request, Kind::Response, Kind::Metadata].map(|kind| by_key(&all, kind));
        Index { all, by_name, keyed }
    }

    fn by_key(&self, kind: Kind, api_key: i16) -> Option<&'static Message> {
        *self.keyed[kind as usize].get(usize::try_from(api_key).ok()?)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Versions;

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
