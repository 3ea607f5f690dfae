//! The throttled replicas of a topic (KIP-73), from the topic's settings.

use std::collections::BTreeMap;

/// The settings `leader.replication.throttled.replicas` and
/// `follower.replication.throttled.replicas`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThrottledReplicas {
    /// Throttled at the leader.
    pub leader: Replicas,
    /// Throttled at the follower.
    pub follower: Replicas,
}

/// Replicas of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replicas {
    /// All replicas of all partitions.
    All,
    /// Pairs of partition and broker, ascending.
    Some(Vec<(i32, i32)>),
}

impl Default for Replicas {
    fn default() -> Replicas {
        Replicas::Some(Vec::new())
    }
}

impl ThrottledReplicas {
    /// Reads a topic's `overrides`; Python has checked them.
    pub fn of(overrides: &BTreeMap<String, String>) -> ThrottledReplicas {
        let mut throttled = ThrottledReplicas::default();
        for (name, value) in overrides {
            match name.as_str() {
                "leader.replication.throttled.replicas" => {
                    throttled.leader = Replicas::parse(value);
                }
                "follower.replication.throttled.replicas" => {
                    throttled.follower = Replicas::parse(value);
                }
                _ => {}
            }
        }
        throttled
    }
}

impl Replicas {
    /// Parses `*`, or `PARTITION:BROKER,...`. Invalid entries and numbers that are too large are
    /// ignored.
    fn parse(value: &str) -> Replicas {
        if value.trim() == "*" {
            return Replicas::All;
        }
        let replica = |text: &str| {
            let (partition, broker_id) = text.trim().split_once(':')?;
            Some((partition.parse().ok()?, broker_id.parse().ok()?))
        };
        let mut replicas: Vec<(i32, i32)> = value.split(',').filter_map(replica).collect();
        replicas.sort_unstable();
        Replicas::Some(replicas)
    }

    /// Whether the replica of a partition at a broker is one of them.
    pub fn contains(&self, partition: i32, broker_id: i32) -> bool {
        match self {
            Replicas::All => true,
            Replicas::Some(replicas) => replicas.binary_search(&(partition, broker_id)).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: &str) -> ThrottledReplicas {
        ThrottledReplicas::of(&[(name.to_owned(), value.to_owned())].into())
    }

    #[test]
    fn a_replica_is_throttled_where_it_is_named() {
        let throttled = of("leader.replication.throttled.replicas", "3:1, 0:2,0:1");
        assert!(throttled.leader.contains(0, 1));
        assert!(throttled.leader.contains(0, 2));
        assert!(throttled.leader.contains(3, 1));
        assert!(!throttled.leader.contains(1, 3));
        assert!(!throttled.follower.contains(0, 1));
    }

    #[test]
    fn a_star_means_every_replica() {
        let throttled = of("follower.replication.throttled.replicas", "*");
        assert!(throttled.follower.contains(99, 7));
        assert!(!throttled.leader.contains(99, 7));
    }

    #[test]
    fn lists_that_name_no_replica_throttle_none() {
        for value in ["", ",", "99999999999:1", "1", "*,0:1", "0:1:2", "a:b"] {
            let throttled = of("leader.replication.throttled.replicas", value);
            let is_named = value == "*,0:1";
            assert_eq!(throttled.leader.contains(0, 1), is_named, "{value:?}");
        }
        assert_eq!(of("retention.ms", "*"), ThrottledReplicas::default());
    }
}
