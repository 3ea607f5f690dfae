//! The table codec: reads and writes any message by its [`crate::plan::Plan`].
//!
//! It is independent of the type of values: reading drives a [`Builder`], writing reads from a
//! [`Source`]. So Python's objects are created directly from bytes, and bytes directly from them.
//! Semantics are those of Kafka's message generator:
//!
//! - a field that the version lacks reads as its default;
//! - writing a value other than the default to such a field is an error, unless it is ignorable;
//! - a tagged field is written if it is not its default; unknown tags are skipped;
//! - a nullable struct starts with an int8, negative for null, or, as a tagged field, with an
//!   unsigned varint, 0 for null.
//!
//! The nesting of structs is that of the schemas, which are not recursive, so depth has no limit.

mod decode;
mod encode;
mod parts;

pub use self::decode::{Builder, decode, decode_from};
pub use self::encode::{Source, check_struct, encode, write_field, write_primitive, write_tagged};
pub use self::parts::Decoding;
