//! Message schemas: the fields of a message, their versions and their types.
//!
//! The rows are in `tables/`, one for each field of each message of Kafka 4.4. `tools/schemas.py`
//! writes them with the `const fn`s of this module. [`crate::plan`] converts a schema and a version
//! to the steps that read and write it.

mod fields;
mod lookup;
mod message;

pub(crate) use self::fields::field;
pub use self::fields::{Default, Field, MAX, Struct, Type, Versions};
pub use self::lookup::{message_by_name, messages, metadata_record_of, request_of, response_of};
pub use self::message::{Kind, Message};
