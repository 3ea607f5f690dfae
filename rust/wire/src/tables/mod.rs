//! Facts of Kafka 4.2's message schemas, written by `tools/schemas.py`.

pub mod api_keys;
