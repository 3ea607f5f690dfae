//! Values of one process, and values that each process has its own of.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::generation::Generation;

/// A value that is dropped in the process that made it, and leaked in its forked children: there
/// its threads do not run, and a drop would wait for them, or change files that the parent uses.
#[derive(Debug)]
pub struct OfProcess<T> {
    value: ManuallyDrop<T>,
    generation: Generation,
}

impl<T> OfProcess<T> {
    /// A value of this process.
    pub fn new(value: T) -> OfProcess<T> {
        OfProcess { value: ManuallyDrop::new(value), generation: Generation::current() }
    }

    /// Whether this process made the value. If not, it should not be used.
    pub fn is_own(&self) -> bool {
        self.generation.is_current()
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OfProcess<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.is_own() {
            #[expect(unsafe_code, reason = "a child leaves the value alone")]
            // SAFETY: the value is not used after this.
            unsafe {
                ManuallyDrop::drop(&mut self.value);
            }
        }
    }
}

/// A static value that a forked child makes again: another thread of the parent may have been
/// changing it.
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    current: AtomicPtr<Made<T>>,
    make: fn() -> T,
}

#[derive(Debug)]
struct Made<T> {
    value: T,
    generation: Generation,
}

impl<T: Send + Sync> PerProcess<T> {
    /// `make` is called by the first use in each process.
    pub const fn new(make: fn() -> T) -> PerProcess<T> {
        PerProcess { current: AtomicPtr::new(ptr::null_mut()), make }
    }

    /// The value of this process, which is never dropped.
    pub fn get(&'static self) -> &'static T {
        let found = self.current.load(Ordering::Acquire);
        own(found).unwrap_or_else(|| self.made(found))
    }

    /// Makes the value, unless another thread has done so since `found` was read.
    fn made(&'static self, found: *mut Made<T>) -> &'static T {
        let made = Made { value: (self.make)(), generation: Generation::current() };
        let made: &'static Made<T> = Box::leak(Box::new(made));
        let pointer = ptr::from_ref(made).cast_mut();
        let stored =
            self.current.compare_exchange(found, pointer, Ordering::AcqRel, Ordering::Acquire);
        stored.err().and_then(|theirs| own(theirs)).unwrap_or(&made.value)
    }
}

/// The value, if this process made it.
fn own<T>(found: *mut Made<T>) -> Option<&'static T> {
    #[expect(unsafe_code, reason = "no static of the standard library is set again without a lock")]
    // SAFETY: `PerProcess::made` alone stores pointers. Each is of a value that it leaked.
    let made = unsafe { found.as_ref() }?;
    made.generation.is_current().then_some(&made.value)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_of_a_process_get_the_same_value() {
        static VALUE: PerProcess<Box<u8>> = PerProcess::new(Box::default);
        let addresses = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| ptr::from_ref(VALUE.get()).addr())).collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("it ends"));
            joined.collect::<Vec<_>>()
        });
        assert!(addresses.iter().all(|address| *address == ptr::from_ref(VALUE.get()).addr()));
    }

    #[test]
    fn values_of_another_process_are_created_again_or_leaked() {
        static VALUE: PerProcess<Box<u8>> = PerProcess::new(Box::default);
        let foreign = Made { value: Box::new(7), generation: Generation::foreign() };
        VALUE.current.store(Box::leak(Box::new(foreign)), Ordering::Release);
        assert_eq!(**VALUE.get(), 0);

        let dropped = std::rc::Rc::new(());
        let mut theirs = OfProcess::new(dropped.clone());
        theirs.generation = Generation::foreign();
        assert!(!theirs.is_own());
        drop((theirs, OfProcess::new(dropped.clone())));
        assert_eq!(std::rc::Rc::strong_count(&dropped), 2);
    }
}
