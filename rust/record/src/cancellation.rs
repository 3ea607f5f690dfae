//! How work on a large batch is ended before its end: whoever does it asks between pieces whether somebody waits for it.

use std::fmt;
use std::sync::Arc;

/// Says whether work is cancelled. Cheap to clone; by default it never is.
#[derive(Clone, Default)]
pub struct Cancellation(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

/// Nobody waits for the result any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled: nobody waits for the result")]
pub struct Cancelled;

impl Cancellation {
    /// Cancelled once `is_cancelled` says so, which is called every some hundred microseconds of work.
    pub fn when(is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_cancelled)))
    }

    /// To be called between pieces of work.
    ///
    /// # Errors
    /// It is cancelled.
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
