//! The seam to Python: what it calls, and what it is sent (docs/SEAM.md).

pub(crate) mod clock;
pub(crate) mod committed;
pub(crate) mod core;
pub(crate) mod event;
pub(crate) mod image;
pub(crate) mod log_ring;
pub(crate) mod peers;
pub(crate) mod requests;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod statistics;
pub(crate) mod verifications;
