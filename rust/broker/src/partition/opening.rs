//! Waiting for logs to be opened, and for other work that waits for disks or takes long, without a thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Host, Partition};

/// Ends once logs have been opened.
pub(crate) type Opening = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits until the log of each partition has been opened, or cannot be; `None` if all are.
pub(crate) fn of<'a>(partitions: impl IntoIterator<Item = &'a Arc<Partition>>) -> Option<Opening> {
    let openings: Vec<_> =
        partitions.into_iter().filter_map(|partition| partition.opening()).collect();
    if openings.is_empty() { None } else { Some(Box::pin(wait_all(openings))) }
}

async fn wait_all(openings: Vec<oneshot::Receiver<()>>) {
    for opening in openings {
        // It ends by being dropped.
        let _ = opening.await;
    }
}

impl Host {
    /// Has `work`, which may take long, done by a thread of the pool; `None` if it panicked there.
    pub(crate) fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let (done, result) = oneshot::channel();
        self.workers.submit(move |_| {
            // Whoever asked may have gone away.
            let _ = done.send(work());
        });
        async move { result.await.ok() }
    }
}
