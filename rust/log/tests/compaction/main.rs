//! Compaction: its rules, random histories against a model, power cuts, and copied replicas.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod copies;
mod model;
mod power_cut;
mod rules;
mod truncations;
