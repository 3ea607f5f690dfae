//! The tables. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

pub mod api_keys;
#[rustfmt::skip]
mod clients;
#[rustfmt::skip]
mod group_coordinator;
#[rustfmt::skip]
mod metadata;
#[rustfmt::skip]
mod raft;
#[rustfmt::skip]
mod share_coordinator;
#[rustfmt::skip]
mod storage;
#[rustfmt::skip]
mod transaction_coordinator;

use crate::schema::Message;

/// All messages, by jar.
pub static MESSAGES: &[&[Message]] = &[
    &clients::MESSAGES,
    &group_coordinator::MESSAGES,
    &transaction_coordinator::MESSAGES,
    &share_coordinator::MESSAGES,
    &metadata::MESSAGES,
    &raft::MESSAGES,
    &storage::MESSAGES,
];
