//! Waiting for the sync threads, as a stop does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pykafka_log::Syncer;

#[test]
fn wait_idle_waits_for_every_task_even_a_panicking_one() {
    let syncer = Syncer::new(2);
    syncer.wait_idle();
    let done = Arc::new(AtomicUsize::new(0));
    for n in 0..50 {
        let done = done.clone();
        syncer.submit(move || {
            std::thread::yield_now();
            assert_ne!(n, 20, "one of them");
            done.fetch_add(1, Ordering::SeqCst);
        });
    }
    syncer.wait_idle();
    assert_eq!(done.load(Ordering::SeqCst), 49);
}
