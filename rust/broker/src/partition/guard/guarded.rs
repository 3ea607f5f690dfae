//! The mutex of a partition.

use pykafka_forks::{Mutex, MutexGuard};

/// The partition's mutex. Only a guard locks it, so that each critical section is followed by its
/// actions.
pub(in crate::partition) struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    pub(in crate::partition) fn new(inner: T) -> Guarded<T> {
        Guarded(Mutex::new(inner))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}
