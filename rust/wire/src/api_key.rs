//! API keys, their versions, and which of them are flexible.

use std::ops::RangeInclusive;

use crate::tables::api_keys::APIS;

/// The number that names an API on the wire. The known ones are constants; any number may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKey(pub i16);

/// What Kafka 4.4 says of one API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    /// API key.
    pub key: ApiKey,
    /// As in Kafka, without `Request`.
    pub name: &'static str,
    /// Lowest version.
    pub min_version: i16,
    /// Highest version that is not marked unstable.
    pub max_stable_version: i16,
    /// Highest version.
    pub max_version: i16,
    /// First flexible version; `i16::MAX` if none.
    pub flexible_since: i16,
    /// Whether it belongs on a broker's listener (else only on a controller's).
    pub on_broker: bool,
}

impl Api {
    /// Row of the table; see [`Api`] for the order.
    pub(crate) const fn new(
        key: i16,
        name: &'static str,
        [min_version, max_stable_version, max_version]: [i16; 3],
        flexible_since: i16,
        on_broker: bool,
    ) -> Api {
        let key = ApiKey(key);
        Api { key, name, min_version, max_stable_version, max_version, flexible_since, on_broker }
    }
}

/// All APIs of Kafka 4.4, in order of their keys.
pub fn apis() -> &'static [Api] {
    APIS
}

impl ApiKey {
    /// Its row; `None` if Kafka 4.4 does not have it.
    pub fn api(self) -> Option<&'static Api> {
        // Four keys of ZooKeeper's time are gone, so a row is at most four places before its key.
        let key = usize::try_from(self.0).ok()?;
        let end = APIS.len().min(key + 1);
        APIS.get(key.saturating_sub(4)..end)?.iter().rfind(|api| api.key == self)
    }

    /// As in Kafka, without `Request`; `Unknown` for what Kafka 4.4 does not have.
    pub fn name(self) -> &'static str {
        self.api().map_or("Unknown", |api| api.name)
    }
}

/// The stable versions of an API, which a broker that serves it may advertise.
///
/// Produce is advertised from 0 on (KAFKA-18659) though it begins with 3.
pub fn supported_versions(api_key: ApiKey) -> Option<RangeInclusive<i16>> {
    api_key.api().map(|api| api.min_version..=api.max_stable_version)
}

/// Every version that the codec can read and write, unstable ones too.
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
