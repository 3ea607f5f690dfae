//! Syncs: their threads, and rounds of several writers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod rounds;
mod syncer;
