//! The broker settings that Rust uses, by Kafka's names. Python validates them; invalid values are
//! reported here.

use std::collections::HashMap;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// The value of a setting is of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: not a valid value: {value:?}")]
pub struct SettingError {
    /// Kafka's name.
    pub name: String,
    /// The given value.
    pub value: String,
}

/// Effective values; the defaults are Kafka's.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `socket.request.max.bytes`: a larger size prefix closes the connection.
    pub socket_request_bytes_max: usize,
    /// `connections.max.idle.ms`; negative for no limit.
    pub connections_idle_ms_max: i64,
    /// `max.connections`: excess connections wait until another one ends.
    pub connections_max: usize,
    /// `max.connections.per.ip`: excess connections are closed.
    pub connections_per_ip_max: usize,
    /// `max.connections.per.ip.overrides`.
    pub connections_per_ip_overrides: HashMap<IpAddr, usize>,
    /// `max.connection.creation.rate`, per second: excess connections are delayed.
    pub connection_rate_max: u32,
    /// `internal.frame.max.ms`: a frame whose first bytes have arrived must be complete after this
    /// time plus 1 ms for each 64 bytes of its size.
    pub frame_ms_max: u64,
    /// `internal.parked.max.bytes`: bodies of requests in Python; above this limit, connections are
    /// muted (docs/PLANES.md S7).
    pub parked_bytes_max: usize,
    /// `queued.max.request.bytes`: maximum bytes of frames that are being received or handled,
    /// unless the broker's memory allows less; not positive for no limit.
    pub queued_request_bytes_max: i64,
    /// `fetch.max.bytes`.
    pub fetch_bytes_max: i32,
    /// `max.request.partition.size.limit`: partitions in one response to `DescribeTopicPartitions`.
    pub request_partitions_max: i32,
    /// `max.incremental.fetch.session.cache.slots`.
    pub fetch_session_slots: usize,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// `transaction.partition.verification.enable`: whether the partitions of clients that add
    /// partitions to a transaction themselves are verified.
    pub transaction_verification_enable: bool,
    /// `quota.window.num`: windows over which the rates of clients are measured.
    pub quota_windows: usize,
    /// `quota.window.size.seconds`.
    pub quota_window_ms: u64,
    /// `inter.broker.listener.name`: the listener for fetches of replicas; `None` without such a
    /// listener.
    pub inter_broker_listener: Option<Arc<str>>,
    /// `replica.selector.class`: whether consumers read from a replica in their rack, if any.
    pub reads_in_rack: bool,
    /// `replica.lag.time.max.ms`.
    pub replica_lag_ms_max: u64,
    /// Settings of the fetchers of followers.
    pub replica_fetch: ReplicaFetch,
    /// Rate limits of throttled replicas.
    pub replication_throttle: ReplicationThrottle,
    /// `auto.create.topics.enable`: whether Metadata reports missing topics to Python.
    pub auto_create_topics_enable: bool,
    /// `log.cleaner.enable`: whether logs are compacted.
    pub cleaner_enable: bool,
    /// `log.cleaner.backoff.ms`: pause between two rounds of compactions.
    pub cleaner_backoff_ms: u64,
    /// `log.cleaner.dedupe.buffer.size`: memory for the keys of a compaction.
    pub cleaner_key_bytes_max: usize,
    /// `log.cleaner.io.buffer.load.factor`: usable fraction of that memory.
    pub cleaner_load_factor: f64,
    /// `log.cleaner.io.buffer.size`: size of a compaction's writes.
    pub cleaner_write_bytes: usize,
    /// `log.cleaner.io.max.bytes.per.second`: reads and writes of compactions.
    pub cleaner_bytes_per_second_max: f64,
}

/// Settings of the fetchers of followers; the defaults are Kafka's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaFetch {
    /// `num.replica.fetchers`: concurrent fetches from one leader, each for its own partitions.
    pub fetchers_count: u32,
    /// `replica.fetch.backoff.ms`: maximum pause after an error.
    pub backoff_ms: u64,
    /// `replica.fetch.max.bytes`: soft limit for one partition.
    pub partition_bytes_max: i32,
    /// `replica.fetch.min.bytes`: minimum size of a response before the wait ends.
    pub bytes_min: i32,
    /// `replica.fetch.response.max.bytes`: soft limit for one response.
    pub bytes_max: i32,
    /// `replica.fetch.wait.max.ms`: maximum wait of a fetch at a leader without new records;
    /// negative for no wait.
    pub wait_ms_max: i32,
    /// `replica.socket.timeout.ms`: a request to a leader fails after this time; negative counts as
    /// 0.
    pub timeout_ms: i32,
}

/// Limits of replication (KIP-73); the defaults are Kafka's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationThrottle {
    /// `leader.replication.throttled.rate`: bytes per second to throttled followers that are not in
    /// sync; the maximum integer is no limit.
    pub leader_rate_max: i64,
    /// `follower.replication.throttled.rate`: bytes per second from leaders; the maximum integer is
    /// no limit.
    pub follower_rate_max: i64,
    /// `replication.quota.window.num`.
    pub windows: usize,
    /// `replication.quota.window.size.seconds`.
    pub window_ms: u64,
}

/// Role of a broker in replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Its followers fetch from it.
    Leader,
    /// It fetches from leaders.
    Follower,
}

impl ReplicationThrottle {
    /// Bytes per second; `None` for no limit.
    pub fn limit(&self, side: Side) -> Option<i64> {
        let bytes_per_second = match side {
            Side::Leader => self.leader_rate_max,
            Side::Follower => self.follower_rate_max,
        };
        (bytes_per_second != i64::MAX).then_some(bytes_per_second)
    }
}

impl Default for ReplicationThrottle {
    fn default() -> ReplicationThrottle {
        ReplicationThrottle {
            leader_rate_max: i64::MAX,
            follower_rate_max: i64::MAX,
            windows: 11,
            window_ms: 1_000,
        }
    }
}

impl Default for ReplicaFetch {
    fn default() -> ReplicaFetch {
        ReplicaFetch {
            fetchers_count: 1,
            backoff_ms: 1_000,
            partition_bytes_max: 1 << 20,
            bytes_min: 1,
            bytes_max: 10 << 20,
            wait_ms_max: 500,
            timeout_ms: 30_000,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            socket_request_bytes_max: 104_857_600,
            connections_idle_ms_max: 600_000,
            connections_max: i32::MAX as usize,
            connections_per_ip_max: i32::MAX as usize,
            connections_per_ip_overrides: HashMap::new(),
            connection_rate_max: i32::MAX as u32,
            frame_ms_max: 30_000,
            parked_bytes_max: 64 << 20,
            queued_request_bytes_max: -1,
            fetch_bytes_max: 57_671_680,
            request_partitions_max: 2_000,
            fetch_session_slots: 1_000,
            producer_id_expiration_ms: 86_400_000,
            transaction_verification_enable: true,
            quota_windows: 11,
            quota_window_ms: 1_000,
            inter_broker_listener: None,
            reads_in_rack: false,
            replica_lag_ms_max: 30_000,
            replica_fetch: ReplicaFetch::default(),
            replication_throttle: ReplicationThrottle::default(),
            auto_create_topics_enable: true,
            cleaner_enable: true,
            cleaner_backoff_ms: 15_000,
            cleaner_key_bytes_max: 128 << 20,
            cleaner_load_factor: 0.9,
            cleaner_write_bytes: 512 << 10,
            cleaner_bytes_per_second_max: f64::MAX,
        }
    }
}

impl Settings {
    /// The defaults with those of `values` that Rust uses; other names are ignored. An invalid
    /// value leaves the default and is returned.
    pub fn resolve<'a>(
        values: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> (Settings, Vec<SettingError>) {
        let (mut settings, mut refused) = (Settings::default(), Vec::new());
        for (name, value) in values {
            if settings.set(name, value).is_err() {
                refused.push(SettingError { name: name.into(), value: value.into() });
            }
        }
        (settings, refused)
    }

    /// Maximum number of connections of an address.
    pub fn connections_of(&self, address: IpAddr) -> usize {
        // A dual-stack listener reports an IPv4 address as an IPv6 address.
        let overrides = &self.connections_per_ip_overrides;
        overrides.get(&address.to_canonical()).copied().unwrap_or(self.connections_per_ip_max)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ()> {
        match name {
            "socket.request.max.bytes" => self.socket_request_bytes_max = parse(value)?,
            "connections.max.idle.ms" => self.connections_idle_ms_max = parse(value)?,
            "max.connections" => self.connections_max = parse(value)?,
            "max.connections.per.ip" => self.connections_per_ip_max = parse(value)?,
            "max.connections.per.ip.overrides" => {
                self.connections_per_ip_overrides = overrides(value)?;
            }
            "max.connection.creation.rate" => self.connection_rate_max = parse(value)?,
            "internal.frame.max.ms" => self.frame_ms_max = parse(value)?,
            "internal.parked.max.bytes" => self.parked_bytes_max = parse(value)?,
            "queued.max.request.bytes" => self.queued_request_bytes_max = parse(value)?,
            "fetch.max.bytes" => self.fetch_bytes_max = parse(value)?,
            "max.request.partition.size.limit" => self.request_partitions_max = parse(value)?,
            "max.incremental.fetch.session.cache.slots" => self.fetch_session_slots = parse(value)?,
            "producer.id.expiration.ms" => self.producer_id_expiration_ms = parse(value)?,
            "transaction.partition.verification.enable" => {
                self.transaction_verification_enable = parse(value)?;
            }
            "quota.window.num" => self.quota_windows = parse(value)?,
            "quota.window.size.seconds" => {
                self.quota_window_ms = 1_000 * u64::from(parse::<u32>(value)?);
            }
            "inter.broker.listener.name" => {
                let name = value.trim();
                self.inter_broker_listener =
                    (!name.is_empty()).then(|| Arc::from(name.to_uppercase()));
            }
            "replica.selector.class" => {
                self.reads_in_rack = match value {
                    "" | LEADER_SELECTOR => false,
                    RACK_AWARE_SELECTOR => true,
                    _ => return Err(()),
                };
            }
            "replica.lag.time.max.ms" => self.replica_lag_ms_max = parse(value)?,
            "num.replica.fetchers" => self.replica_fetch.fetchers_count = parse(value)?,
            "replica.fetch.backoff.ms" => self.replica_fetch.backoff_ms = parse(value)?,
            "replica.fetch.max.bytes" => self.replica_fetch.partition_bytes_max = parse(value)?,
            "replica.fetch.min.bytes" => self.replica_fetch.bytes_min = parse(value)?,
            "replica.fetch.response.max.bytes" => self.replica_fetch.bytes_max = parse(value)?,
            "replica.fetch.wait.max.ms" => self.replica_fetch.wait_ms_max = parse(value)?,
            "replica.socket.timeout.ms" => self.replica_fetch.timeout_ms = parse(value)?,
            "leader.replication.throttled.rate" => {
                self.replication_throttle.leader_rate_max = parse(value)?;
            }
            "follower.replication.throttled.rate" => {
                self.replication_throttle.follower_rate_max = parse(value)?;
            }
            "replication.quota.window.num" => self.replication_throttle.windows = parse(value)?,
            "replication.quota.window.size.seconds" => {
                self.replication_throttle.window_ms = 1_000 * u64::from(parse::<u32>(value)?);
            }
            "auto.create.topics.enable" => self.auto_create_topics_enable = parse(value)?,
            "log.cleaner.enable" => self.cleaner_enable = parse(value)?,
            "log.cleaner.backoff.ms" => self.cleaner_backoff_ms = parse(value)?,
            "log.cleaner.dedupe.buffer.size" => self.cleaner_key_bytes_max = parse(value)?,
            "log.cleaner.io.buffer.load.factor" => self.cleaner_load_factor = parse(value)?,
            "log.cleaner.io.buffer.size" => self.cleaner_write_bytes = parse(value)?,
            "log.cleaner.io.max.bytes.per.second" => {
                self.cleaner_bytes_per_second_max = parse(value)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Maximum bytes of the keys of a compaction.
    pub fn cleaner_used_key_bytes_max(&self) -> usize {
        (self.cleaner_key_bytes_max as f64 * self.cleaner_load_factor) as usize
    }
}

const LEADER_SELECTOR: &str = "org.apache.kafka.common.replica.LeaderSelector";
const RACK_AWARE_SELECTOR: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";

/// Parses `ADDRESS:COUNT,...`; an IPv6 address may be in brackets.
fn overrides(value: &str) -> Result<HashMap<IpAddr, usize>, ()> {
    let entries = value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (address, count) = entry.rsplit_once(':').ok_or(())?;
            let address: IpAddr = parse(address.trim().trim_matches(['[', ']']))?;
            Ok((address.to_canonical(), parse(count)?))
        })
        .collect()
}

fn parse<T: FromStr>(value: &str) -> Result<T, ()> {
    value.trim().parse().map_err(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_applied_and_others_ignored() {
        let values = [
            ("max.connections", "7"),
            ("num.io.threads", "8"),
            ("auto.create.topics.enable", "false"),
        ];
        let (settings, refused) = Settings::resolve(values);
        assert!(refused.is_empty());
        assert_eq!(settings.connections_max, 7);
        assert!(!settings.auto_create_topics_enable);
    }

    #[test]
    fn a_wrong_value_keeps_the_default_and_is_reported_by_name() {
        let (settings, refused) = Settings::resolve([("fetch.max.bytes", "lots")]);
        assert_eq!(settings, Settings::default());
        let [error] = refused.as_slice() else { panic!("one value is wrong") };
        assert_eq!(error.to_string(), "fetch.max.bytes: not a valid value: \"lots\"");
    }
}
