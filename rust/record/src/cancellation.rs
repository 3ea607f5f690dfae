//! Cancellation of work on a large batch: the worker checks between pieces if it is still needed.

use std::fmt;
use std::sync::Arc;

/// A check for cancellation. Cheap to clone; the default is never cancelled.
#[derive(Clone, Default)]
pub struct Cancellation(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

/// The result is no longer needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled: the result is not awaited")]
pub struct Cancelled;

impl Cancellation {
    /// Cancelled once `is_cancelled` returns true; it is called every few hundred microseconds.
    pub fn when(is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_cancelled)))
    }

    /// Call it between pieces of work.
    ///
    /// # Errors
    /// The work is cancelled.
    pub fn check(&self) -> Result<(), Cancelled> {
        match &self.0 {
            Some(is_cancelled) if is_cancelled() => Err(Cancelled),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cancellation").finish_non_exhaustive()
    }
}
