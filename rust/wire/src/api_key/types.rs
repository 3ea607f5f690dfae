//! An API's key and properties.

/// The wire number of an API. Known ones are constants; others may be received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKey(pub i16);

/// Properties of one API in Kafka 4.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    /// API key.
    pub key: ApiKey,
    /// Kafka's name without `Request`.
    pub name: &'static str,
    /// Lowest version.
    pub min_version: i16,
    /// Highest version that is not marked unstable.
    pub max_stable_version: i16,
    /// Highest version.
    pub max_version: i16,
    /// First flexible version; `i16::MAX` if none is.
    pub flexible_since: i16,
    /// Whether it is served on a broker's listener, not only on a controller's.
    pub on_broker: bool,
}

impl Api {
    /// Creates a row of the table; [`Api`] defines the order.
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
