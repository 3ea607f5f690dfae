//! Records of a batch, iterated without allocation and checked on the way.
//!
//! The checks are those of Kafka's readers: each record's size against the remaining bytes and the
//! sizes of its fields, header counts against the remaining bytes, the number of records against
//! the header, and that no bytes remain. Stricter than in Kafka, lengths below −1, offsets outside
//! the batch and timestamps that overflow are errors.

mod error;
mod fields;
mod iter;
mod legacy;
mod reader;

pub use self::error::RecordError;
pub use self::fields::{Header, Headers, Record, RecordHead};
pub use self::iter::RecordIter;
pub(crate) use self::legacy::{Contents, put_record, read_payload};
pub use self::reader::{RecordReader, Window};
