//! Locks that a forked child can use.
//!
//! A lock of the standard library has its waiting threads in the kernel. Other libraries
//! (`parking_lot`) have one table of them for the whole process, in the memory that a child
//! inherits: with threads that it does not have, and locked if one of them was at it.
//!
//! A panic of a thread that holds a lock leaves it as it is for the next one.

use std::sync::{self, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

/// A [`sync::Mutex`] that no panic poisons.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Unlocked.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` while it is locked.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A [`sync::RwLock`] that no panic poisons.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Unlocked.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(sync::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for the writer.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for readers and writers.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without a lock: there is no other reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`sync::Condvar`] for a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// Without a thread that waits.
    pub const fn new() -> Condvar {
        Condvar(sync::Condvar::new())
    }

    /// Wakes one thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits until it is woken; it may return earlier.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as [`Condvar::wait`] does, but ends after the time.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
        self.0.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits while the condition holds.
    pub fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        self.0.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as [`Condvar::wait_while`] does, but ends after the time.
    pub fn wait_while_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
        time: Duration,
    ) -> MutexGuard<'a, T> {
        let waited = self.0.wait_timeout_while(guard, time, condition);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_panic_leaves_a_lock_usable() {
        let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
        let panicked = thread::scope(|scope| {
            let holding = scope.spawn(|| {
                let _guards = (mutex.lock(), lock.write());
                panic!("expected");
            });
            holding.join().is_err()
        });
        assert!(panicked);
        assert_eq!((*mutex.lock(), mutex.try_lock().as_deref().copied()), (1, None));
        assert_eq!(mutex.try_lock().as_deref().copied(), Some(1));
        assert_eq!(*lock.read(), 1);
        assert_eq!(*lock.write(), 1);
    }

    #[test]
    fn a_wait_ends_with_its_condition_or_its_time() {
        let (mutex, changed) = (Mutex::new(0), Condvar::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    *mutex.lock() += 1;
                    changed.notify_all();
                }
            });
            let waited = changed.wait_while(mutex.lock(), |count| *count < 3);
            assert_eq!(*waited, 3);
        });
        let waited = changed.wait_while_for(mutex.lock(), |_| true, Duration::ZERO);
        assert_eq!(*changed.wait_for(waited, Duration::ZERO), 3);
    }
}
