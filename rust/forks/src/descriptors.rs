//! Owners of descriptors.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};

use crate::generation::Generation;
use crate::numbers;

/// The owner of a descriptor, which `fork` closes in the child.
#[derive(Debug)]
pub struct ForkClosed<T: AsFd> {
    owner: ManuallyDrop<T>,
    generation: Generation,
}

impl<T: AsFd> ForkClosed<T> {
    /// Takes over the owner. Until it is dropped, its descriptor must not change.
    pub fn new(owner: T) -> ForkClosed<T> {
        let generation = Generation::current();
        numbers::insert(owner.as_fd().as_raw_fd());
        ForkClosed { owner: ManuallyDrop::new(owner), generation }
    }

    /// Whether this process opened it, so that the descriptor is open.
    pub fn is_open(&self) -> bool {
        self.generation.is_current()
    }
}

impl<T: AsFd> Deref for ForkClosed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.owner
    }
}

impl<T: AsFd> DerefMut for ForkClosed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.owner
    }
}

impl<T: AsFd> Drop for ForkClosed<T> {
    fn drop(&mut self) {
        if !self.is_open() {
            return;
        }
        numbers::remove(self.owner.as_fd().as_raw_fd());
        #[expect(unsafe_code, reason = "a child leaves the owner alone")]
        // SAFETY: the owner is not used after this.
        unsafe {
            ManuallyDrop::drop(&mut self.owner);
        }
    }
}
