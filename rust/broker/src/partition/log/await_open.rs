//! Waits, without a thread, for logs to open and for other work that is slow or waits for disks.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::oneshot;

use crate::partition::{Host, Partition};

/// Completes when logs have been opened.
pub(crate) type Opening = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits until the log of each partition is open or cannot be opened; `None` if all are open.
pub(crate) fn of<P: AsRef<Partition>>(partitions: impl IntoIterator<Item = P>) -> Option<Opening> {
    let openings: Vec<_> =
        partitions.into_iter().filter_map(|partition| partition.as_ref().opening()).collect();
    if openings.is_empty() { None } else { Some(Box::pin(wait_all(openings))) }
}

async fn wait_all(openings: Vec<oneshot::Receiver<()>>) {
    for opening in openings {
        // It completes when the sender is dropped.
        let _ = opening.await;
    }
}

impl Host {
    /// Runs slow `work` on a thread of the worker pool; returns `None` if it panicked.
    ///
    /// `work` gets a function that returns true once the future was dropped; then it is not started
    /// any more. Captured values live until it ends.
    pub(crate) fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let (done, result) = oneshot::channel();
        self.workers.submit(move |_| {
            if !done.is_closed() {
                let worked = work(&|| done.is_closed());
                // The future may have been dropped.
                let _ = done.send(worked);
            }
        });
        async move { result.await.ok() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use bytes::BytesMut;
    use pykafka_forks::Mutex;
    use pykafka_wire::{ApiKey, list_offsets};

    use std::sync::Arc;

    use crate::api::dispatch::dispatch;
    use crate::control_api::image::delta::ImageDelta;
    use crate::network::outcome::Outcome;
    use crate::partition::threads::may_wait::MayWait;
    use crate::testing::{Broker, connection, header, pending, poll};

    /// More than the number of threads in the pool.
    const MANY: usize = 64;

    fn dispatched(broker: &Broker, api_key: ApiKey, version: i16, body: &[u8]) -> Outcome {
        dispatch(&broker.ctx, &connection(), &header(api_key, version), BytesMut::from(body))
    }

    fn look_up() -> BytesMut {
        let partitions = (0..20_000)
            .map(|partition_index| list_offsets::Partition {
                partition_index,
                current_leader_epoch: -1,
                timestamp: 0,
            })
            .collect();
        let topics = vec![list_offsets::Topic { name: "t", partitions }];
        let mut body = BytesMut::new();
        let request = list_offsets::Request { topics, ..Default::default() };
        request.encode(5, &mut body).unwrap();
        body
    }

    #[test]
    fn memory_of_a_closed_request_counts_until_its_thread_is_done() {
        let mut broker = Broker::in_memory().with_topic(1, &[]);
        let served = [(ApiKey::CREATE_TOPICS.0, (2, 7))];
        broker.apply(ImageDelta { api_versions: Some(served.into()), ..ImageDelta::default() });
        let host = broker.ctx.partitions.host();
        let requests = [
            (ApiKey::LIST_OFFSETS, 5, look_up()),
            (ApiKey::CREATE_TOPICS, 4, BytesMut::zeroed(1 << 20)),
        ];
        for (api_key, version, body) in requests {
            let gate = Arc::new(Mutex::new(()));
            let closed = gate.lock();
            for _ in 0..MANY {
                let gate = gate.clone();
                host.workers.submit(move |_| drop(gate.lock()));
            }
            let mut waiting = pending(dispatched(&broker, api_key, version, &body));
            assert!(poll(&mut waiting).is_none());
            drop(waiting);
            let held = broker.ctx.network.memory.responses.bytes();
            assert!(held >= body.len(), "{api_key:?}: {held}");
            drop(closed);
            host.workers.wait_idle(&MayWait::as_documented());
            assert_eq!(broker.ctx.network.memory.responses.bytes(), 0, "{api_key:?}");
        }
    }

    #[test]
    fn work_of_a_closed_request_is_not_started() {
        let broker = Broker::in_memory();
        let host = broker.ctx.partitions.host();
        let gate = Arc::new(Mutex::new(()));
        let closed = gate.lock();
        for _ in 0..MANY {
            let gate = gate.clone();
            host.workers.submit(move |_| drop(gate.lock()));
        }
        let has_begun = Arc::new(AtomicBool::new(false));
        let begins = has_begun.clone();
        drop(host.work(move |_| begins.store(true, Ordering::Relaxed)));
        drop(closed);
        host.workers.wait_idle(&MayWait::as_documented());
        assert!(!has_begun.load(Ordering::Relaxed));
    }
}
