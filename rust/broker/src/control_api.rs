//! The control API: the calls from Python and the events for it (docs/PLANES.md).

pub(crate) mod await_high_watermark;
pub(crate) mod clock;
pub(crate) mod core;
pub(crate) mod cow_collections;
pub(crate) mod event;
pub(crate) mod image;
pub(crate) mod log_ring;
pub(crate) mod peers;
pub(crate) mod requests;
pub(crate) mod settings;
pub(crate) mod statistics;
pub(crate) mod verifications;
