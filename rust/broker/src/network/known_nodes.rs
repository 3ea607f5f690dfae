//! The addresses of other nodes, which take precedence over clients on a shared listener.
//!
//! The addresses are from broker registrations. Host names are resolved again periodically, because
//! a node may move.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Pause between two look-ups of a host name.
const LOOK_UP_EVERY: Duration = Duration::from_secs(30);

/// Node ids of brokers with their registered hosts.
pub(crate) type Hosts = Vec<(i32, Arc<str>)>;
type Found = HashMap<Arc<str>, Vec<IpAddr>>;

pub(crate) struct KnownNodes {
    node_id: i32,
    hosts: ArcSwap<Hosts>,
    /// The resolved addresses of host names.
    found: ArcSwap<Found>,
    changed: Notify,
}

impl KnownNodes {
    pub(crate) fn new(node_id: i32) -> KnownNodes {
        KnownNodes {
            node_id,
            hosts: ArcSwap::default(),
            found: ArcSwap::default(),
            changed: Notify::new(),
        }
    }

    /// Replaces the hosts by those of the metadata.
    pub(crate) fn set(&self, hosts: &Arc<Hosts>) {
        if !self.are_known(hosts) {
            self.hosts.store(hosts.clone());
            self.changed.notify_one();
        }
    }

    /// True if another node is registered at this address.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        let (hosts, found) = (self.hosts.load(), self.found.load());
        let is_it = |one: &IpAddr| one.to_canonical() == address.to_canonical();
        hosts.iter().filter(|(node_id, _)| *node_id != self.node_id).any(|(_, host)| {
            match host.parse() {
                Ok(one) => is_it(&one),
                Err(_) => found.get(host).is_some_and(|all| all.iter().any(is_it)),
            }
        })
    }

    /// Resolves the host names of the metadata until the task is aborted.
    pub(crate) async fn follow(&self) {
        loop {
            let hosts = self.hosts.load_full();
            let mut found = Found::new();
            for (_, name) in hosts.iter().filter(|(_, host)| host.parse::<IpAddr>().is_err()) {
                let looked_up = pykafka_client::addresses(name, 0).await;
                let addresses = looked_up.map(|all| all.iter().map(SocketAddr::ip).collect());
                // A name keeps its previous addresses if it cannot be resolved.
                let known = || self.found.load().get(name).cloned().unwrap_or_default();
                found.insert(name.clone(), addresses.unwrap_or_else(|_| known()));
            }
            let has_names = !found.is_empty();
            self.found.store(Arc::new(found));
            self.wait(&hosts, has_names).await;
        }
    }

    /// Returns when the metadata differs from `hosts`, or when the next look-up is due.
    async fn wait(&self, hosts: &Arc<Hosts>, has_names: bool) {
        let changed = async {
            while self.are_known(hosts) {
                self.changed.notified().await;
            }
        };
        tokio::select! {
            () = changed => {}
            () = sleep(LOOK_UP_EVERY), if has_names => {}
        }
    }

    fn are_known(&self, hosts: &Arc<Hosts>) -> bool {
        Arc::ptr_eq(&self.hosts.load(), hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_node_is_known_by_its_address_and_the_addresses_of_its_name() {
        let hosts = [(1, "192.0.2.1"), (2, "192.0.2.2"), (3, "localhost")];
        let known = Arc::new(KnownNodes::new(1));
        let hosts = hosts.map(|(node_id, host)| (node_id, Arc::from(host)));
        known.set(&Arc::new(hosts.to_vec()));
        let is_known = |text: &str| known.has(text.parse().expect("an address"));
        let of_others = ["192.0.2.1", "192.0.2.2", "::ffff:192.0.2.2"].map(is_known);
        assert_eq!(of_others, [false, true, true]);
        let followed = known.clone();
        let following = tokio::spawn(async move { followed.follow().await });
        while !is_known("127.0.0.1") {
            tokio::task::yield_now().await;
        }
        following.abort();
    }
}
