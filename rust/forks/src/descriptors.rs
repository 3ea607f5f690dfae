//! Owners of descriptors.

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};

use crate::numbers;
use crate::process::OfProcess;

/// The owner of a descriptor, which `fork` closes in the child.
#[derive(Debug)]
pub struct ForkClosed<T: AsFd>(OfProcess<T>);

impl<T: AsFd> ForkClosed<T> {
    /// Takes over the owner. Until it is dropped, its descriptor must not change.
    pub fn new(owner: T) -> ForkClosed<T> {
        let owner = OfProcess::new(owner);
        numbers::insert(owner.as_fd().as_raw_fd());
        ForkClosed(owner)
    }

    /// Whether this process opened it, so that the descriptor is open.
    pub fn is_open(&self) -> bool {
        self.0.is_own()
    }
}

impl<T: AsFd> Deref for ForkClosed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: AsFd> DerefMut for ForkClosed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: AsFd> Drop for ForkClosed<T> {
    fn drop(&mut self) {
        if self.is_open() {
            numbers::remove(self.as_fd().as_raw_fd());
        }
    }
}
