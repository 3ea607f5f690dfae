//! Kafka's wire protocol: frames, the table-driven codec and the hand-written hot messages.
//!
//! The hot messages ([`produce`], [`fetch`], …) are structs on borrowed bytes; [`message`] shows
//! how they are declared. All messages are in the tables ([`schema`]), and the [`codec`] reads and
//! writes them by a [`plan`] for the version. All reads are bounds-checked ([`Reader`]). A body may
//! be longer than its message: the rest is ignored, as in Kafka.

mod api_key;
pub mod codec;
mod decoded_size;
mod error;
pub mod frame;
pub mod fuzz;
pub mod message;
pub mod plan;
mod reader;
pub mod schema;
mod tables;
pub mod value;
mod writer;

pub use api_key::{Api, ApiKey, apis, is_flexible, known_versions, supported_versions};
pub use decoded_size::decoded_size;
pub use error::{DecodeError, EncodeError};
pub use message::{
    Records, Wire, api_versions, describe_topic_partitions, fetch, list_offsets, metadata,
    offset_for_leader_epoch, produce, structs,
};
pub use reader::{LIST_LENGTH_MAX, OBJECTS_MAX, Progress, Reader, TAGGED_FIELDS_MAX, span_within};
pub use writer::{ByteCount, Chunk, Chunks, Sink, Writer, encode_uvarint};
