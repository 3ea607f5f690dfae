//! The log of a follower: changes that other nodes decide.

pub(super) mod append;
pub(crate) mod log;
