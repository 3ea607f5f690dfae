//! Sockets: listeners, connections, requests and responses, and bounds for the memory that peers
//! can occupy.

pub(crate) mod answers;
mod connection;
pub(crate) mod connections;
pub(crate) mod descriptors;
pub(crate) mod engine;
pub(crate) mod gate;
mod input;
pub(crate) mod known_nodes;
pub(crate) mod listener;
pub(crate) mod memory;
pub(crate) mod output;
pub(crate) mod spares;
mod transport;
mod turn;
