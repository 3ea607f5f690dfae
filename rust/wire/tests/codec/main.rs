//! The codec on recorded frames, and on damaged and random bytes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../fuzz/driver.rs"]
mod driver;
mod frames;
mod fuzz;
mod golden;
mod limits;
mod round_trip;
