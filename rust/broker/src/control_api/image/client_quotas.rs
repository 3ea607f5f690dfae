//! Limits of clients in bytes per second, from the metadata (KIP-13, KIP-55, KIP-546).
//!
//! A quota applies to a user, a client id, or a combination; a default applies to all without their
//! own. The most specific quota applies, in Kafka's order: quotas with a user precede those with
//! only a client id.

use std::collections::HashMap;
use std::sync::Arc;

/// The limited rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metered {
    /// `producer_byte_rate`: requests to produce.
    Produced,
    /// `consumer_byte_rate`: records fetched.
    Fetched,
}

/// One of the two parts of a quota's entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// The entity has no such part.
    Nobody,
    /// All without a quota by name.
    Default,
    /// The user or client id with this name.
    One(String),
}

/// A limit for one rate of some clients.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientQuota {
    /// The user in the quota's entity, by the principal's name.
    pub user: Named,
    /// The client id in the quota's entity.
    pub client_id: Named,
    /// The limited rate.
    pub metered: Metered,
    /// Greater than 0.
    pub bytes_per_second: f64,
}

impl ClientQuota {
    /// Converts a metadata record; `None` if it limits something else, or nothing.
    ///
    /// `entity` has pairs of a type, `user` or `client-id`, and a name; the name `None` is the
    /// default.
    pub fn of_record(
        entity: Vec<(String, Option<String>)>,
        key: &str,
        value: f64,
    ) -> Option<ClientQuota> {
        let metered = match key {
            "producer_byte_rate" => Metered::Produced,
            "consumer_byte_rate" => Metered::Fetched,
            _ => return None,
        };
        let (mut user, mut client_id) = (Named::Nobody, Named::Nobody);
        for (kind, name) in entity {
            let named = name.map_or(Named::Default, Named::One);
            match &*kind {
                "user" => user = named,
                "client-id" => client_id = named,
                _ => return None,
            }
        }
        let names_somebody = user != Named::Nobody || client_id != Named::Nobody;
        (names_somebody && value > 0.0).then_some(ClientQuota {
            user,
            client_id,
            metered,
            bytes_per_second: value,
        })
    }
}

/// The limit of a client, and the clients that share it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    pub(crate) bytes_per_second: f64,
    /// Whether each user has a separate rate.
    pub(crate) by_user: bool,
    /// Whether each client id has a separate rate.
    pub(crate) by_client_id: bool,
}

/// All limits.
#[derive(Debug, Default)]
pub struct ClientQuotas {
    produced: Limits,
    fetched: Limits,
}

impl ClientQuotas {
    pub(crate) fn new(quotas: Vec<ClientQuota>) -> ClientQuotas {
        let mut all = ClientQuotas::default();
        for quota in quotas {
            let limits = match quota.metered {
                Metered::Produced => &mut all.produced,
                Metered::Fetched => &mut all.fetched,
            };
            limits.of_user(quota.user).insert(quota.client_id, quota.bytes_per_second);
        }
        all
    }

    /// The limit that applies to a client.
    pub(crate) fn limit(&self, metered: Metered, user: &str, client_id: &str) -> Option<Limit> {
        match metered {
            Metered::Produced => self.produced.of(user, client_id),
            Metered::Fetched => self.fetched.of(user, client_id),
        }
    }
}

#[derive(Debug, Default)]
struct Limits {
    users: HashMap<Arc<str>, OfUser>,
    default_user: OfUser,
    /// Quotas without a user.
    any_user: OfUser,
}

impl Limits {
    fn of_user(&mut self, user: Named) -> &mut OfUser {
        match user {
            Named::Nobody => &mut self.any_user,
            Named::Default => &mut self.default_user,
            Named::One(name) => self.users.entry(Arc::from(name)).or_default(),
        }
    }

    fn of(&self, user: &str, client_id: &str) -> Option<Limit> {
        let named = [self.users.get(user), Some(&self.default_user)];
        let of_users = named.into_iter().flatten().find_map(|level| level.of(client_id, true));
        of_users.or_else(|| self.any_user.of(client_id, false))
    }
}

/// The quotas of one user.
#[derive(Debug, Default)]
struct OfUser {
    clients: HashMap<Arc<str>, f64>,
    default_client: Option<f64>,
    all_clients: Option<f64>,
}

impl OfUser {
    fn insert(&mut self, client_id: Named, bytes_per_second: f64) {
        match client_id {
            Named::Nobody => self.all_clients = Some(bytes_per_second),
            Named::Default => self.default_client = Some(bytes_per_second),
            Named::One(name) => {
                self.clients.insert(Arc::from(name), bytes_per_second);
            }
        }
    }

    fn of(&self, client_id: &str, by_user: bool) -> Option<Limit> {
        let limit = |by_client_id| {
            move |bytes_per_second| Limit { bytes_per_second, by_user, by_client_id }
        };
        let of_client = self.clients.get(client_id).copied().or(self.default_client);
        of_client.map(limit(true)).or_else(|| self.all_clients.map(limit(false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> Named {
        Named::One(name.into())
    }

    fn produced(user: Named, client_id: Named, bytes_per_second: f64) -> ClientQuota {
        ClientQuota { user, client_id, metered: Metered::Produced, bytes_per_second }
    }

    /// Kafka's eight kinds, the most specific first (`ClientQuotaManager.DefaultQuotaCallback`).
    fn in_order() -> Vec<ClientQuota> {
        let parts = [
            (one("u"), one("c")),
            (one("u"), Named::Default),
            (one("u"), Named::Nobody),
            (Named::Default, one("c")),
            (Named::Default, Named::Default),
            (Named::Default, Named::Nobody),
            (Named::Nobody, one("c")),
            (Named::Nobody, Named::Default),
        ];
        parts.into_iter().zip(1..).map(|((u, c), n)| produced(u, c, f64::from(n))).collect()
    }

    #[test]
    fn the_most_specific_quota_applies() {
        for first in 0..8 {
            let quotas = ClientQuotas::new(in_order().split_off(first));
            let limit = quotas.limit(Metered::Produced, "u", "c").unwrap();
            assert_eq!(limit.bytes_per_second as usize, first + 1);
            assert_eq!(limit.by_user, first < 6);
            assert_eq!(limit.by_client_id, ![2, 5].contains(&first));
        }
    }

    #[test]
    fn a_record_that_limits_something_else_is_ignored() {
        let of = |kind: &str, key, value| {
            ClientQuota::of_record(vec![(kind.into(), Some("c".into()))], key, value)
        };
        let quota = of("client-id", "producer_byte_rate", 5.0);
        assert_eq!(quota, Some(produced(Named::Nobody, one("c"), 5.0)));
        assert_eq!(of("client-id", "request_percentage", 5.0), None);
        assert_eq!(of("ip", "producer_byte_rate", 5.0), None);
        assert_eq!(of("user", "producer_byte_rate", 0.0), None);
        assert_eq!(of("user", "producer_byte_rate", f64::NAN), None);
        assert_eq!(ClientQuota::of_record(Vec::new(), "producer_byte_rate", 5.0), None);
    }

    #[test]
    fn a_quota_applies_to_the_clients_and_the_traffic_that_it_names() {
        let quotas = ClientQuotas::new(vec![
            produced(one("u"), Named::Nobody, 1.0),
            produced(Named::Nobody, one("c"), 2.0),
        ]);
        assert_eq!(quotas.limit(Metered::Fetched, "u", "c"), None);
        assert_eq!(quotas.limit(Metered::Produced, "v", "d"), None);
        let limit = quotas.limit(Metered::Produced, "v", "c").unwrap();
        assert_eq!(limit.bytes_per_second as usize, 2);
    }
}
