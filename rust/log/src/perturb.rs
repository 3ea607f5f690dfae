//! Random delays where threads hand work to each other, for tests (`make perturbed`).
//!
//! A test that asserts something before it has waited for it almost always passes, because the
//! other thread is almost always fast enough. With the feature `perturb` it fails within a few
//! runs. Without the feature nothing is compiled in.

/// Marks a point where a thread receives or passes on work.
#[inline]
pub fn hand_over() {
    #[cfg(feature = "perturb")]
    delay();
}

/// Usually no delay, often up to a millisecond, sometimes 8 ms.
#[cfg(feature = "perturb")]
fn delay() {
    use std::hash::{BuildHasher, RandomState};
    use std::thread;
    use std::time::Duration;

    let random = RandomState::new().hash_one(0);
    match random % 8 {
        0 => thread::sleep(Duration::from_millis(8)),
        1..=3 => thread::sleep(Duration::from_micros(random >> 54)),
        4 => thread::yield_now(),
        _ => {}
    }
}
