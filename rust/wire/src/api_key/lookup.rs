//! The APIs of Kafka 4.4, by key.

use std::ops::RangeInclusive;

use super::types::{Api, ApiKey};
use crate::tables::api_keys::APIS;

/// All APIs of Kafka 4.4, in order of their keys.
pub fn apis() -> &'static [Api] {
    APIS
}

impl ApiKey {
    /// Its row; `None` if it is not in Kafka 4.4.
    pub fn api(self) -> Option<&'static Api> {
        // Four ZooKeeper keys were removed, so a row is at most four places before its key.
        let key = usize::try_from(self.0).ok()?;
        let end = APIS.len().min(key + 1);
        APIS.get(key.saturating_sub(4)..end)?.iter().rfind(|api| api.key == self)
    }

    /// Kafka's name without `Request`; `Unknown` if it is not in Kafka 4.4.
    pub fn name(self) -> &'static str {
        self.api().map_or("Unknown", |api| api.name)
    }
}

/// The stable versions of an API, which a broker that serves it may advertise.
///
/// Produce is advertised from 0 on (KAFKA-18659), although its first version is 3.
pub fn supported_versions(api_key: ApiKey) -> Option<RangeInclusive<i16>> {
    api_key.api().map(|api| api.min_version..=api.max_stable_version)
}

/// Every version that the codec can read and write, including unstable ones.
pub fn known_versions(api_key: ApiKey) -> Option<RangeInclusive<i16>> {
    api_key.api().map(|api| api.min_version..=api.max_version)
}

/// Whether requests and responses of that version have compact lengths and tagged fields.
pub fn is_flexible(api_key: ApiKey, version: i16) -> bool {
    api_key.api().is_some_and(|api| version >= api.flexible_since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_key_and_no_other_key_is() {
        for api in apis() {
            assert_eq!(api.key.api(), Some(api));
        }
        for gone in [-1, 4, 5, 6, 7, 95, i16::MAX, i16::MIN] {
            assert_eq!(ApiKey(gone).api(), None);
        }
    }

    #[test]
    fn unstable_versions_are_known_but_not_advertised() {
        assert_eq!(supported_versions(ApiKey::INIT_PRODUCER_ID), Some(0..=5));
        assert_eq!(known_versions(ApiKey::INIT_PRODUCER_ID), Some(0..=6));
    }
}
