//! What can be wrong with bytes that came in, and with values that are to go out.

use thiserror::Error;

/// Bytes that are not the message they should be. Nothing was allocated beyond the bytes at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// A field or a declared length goes past the end.
    #[error("{needed} bytes needed at position {position}, {remaining} remain")]
    Truncated {
        /// Bytes from the start of the body.
        position: usize,
        /// Bytes that the field takes.
        needed: usize,
        /// Bytes that are left.
        remaining: usize,
    },
    /// A varint is longer than its type allows (5 bytes for 32 bits, 10 for 64).
    #[error("varint at position {position} is too long")]
    VarintTooLong {
        /// Where the varint begins.
        position: usize,
    },
    /// A length below -1, or null (-1) where null is not allowed.
    #[error("length {length} at position {position} is not allowed")]
    Length {
        /// As declared.
        length: i64,
        /// Just past the declared length.
        position: usize,
    },
    /// Null in a field that cannot be null in this version.
    #[error("field {field} must not be null in version {version}")]
    Null {
        /// Name of the field.
        field: &'static str,
        /// Version of the message.
        version: i16,
    },
    /// Tags must grow strictly; this one does not.
    #[error("tag {tag} at position {position} is not greater than the one before")]
    TagOrder {
        /// The offending tag.
        tag: u32,
        /// Just past the tag.
        position: usize,
    },
    /// A tagged field did not take exactly the bytes it declared.
    #[error("tag {tag} declares {declared} bytes and takes {taken}")]
    TagSize {
        /// The tag.
        tag: u32,
        /// Bytes declared.
        declared: usize,
        /// Bytes read.
        taken: usize,
    },
    /// More elements in one list than [`crate::LIST_LENGTH_MAX`].
    #[error("a list of {length} elements is longer than {max}")]
    ListTooLong {
        /// As declared.
        length: usize,
        /// The bound.
        max: usize,
    },
    /// More tagged fields in one struct than [`crate::TAGGED_FIELDS_MAX`].
    #[error("{count} tagged fields are more than {max}")]
    TooManyTags {
        /// As declared.
        count: u32,
        /// The bound.
        max: u32,
    },
    /// More array elements in one message than [`crate::OBJECTS_MAX`].
    #[error("more than {max} array elements in one message")]
    TooManyObjects {
        /// The bound.
        max: usize,
    },
    /// The API key is not known, or not in this version.
    #[error("version {version} of API key {api_key} is not supported")]
    UnsupportedVersion {
        /// As in the header.
        api_key: i16,
        /// As in the header.
        version: i16,
    },
}

/// A value that the message cannot carry in the version asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The field does not exist in this version, is not ignorable, and holds more than its default.
    #[error("field {field} cannot be carried by version {version}")]
    NotInVersion {
        /// Name of the field.
        field: &'static str,
        /// Version of the message.
        version: i16,
    },
    /// Null in a field that cannot be null in this version.
    #[error("field {field} must not be null in version {version}")]
    Null {
        /// Name of the field.
        field: &'static str,
        /// Version of the message.
        version: i16,
    },
    /// A string, byte string or array is longer than its length field can say.
    #[error("{length} is too long for the length field")]
    TooLong {
        /// Bytes or elements.
        length: usize,
    },
    /// The message does not exist in this version.
    #[error("version {version} is not supported")]
    UnsupportedVersion {
        /// As asked for.
        version: i16,
    },
    /// A uuid that is not of 16 bytes.
    #[error("field {field} has {size} bytes instead of 16")]
    UuidSize {
        /// Name of the field.
        field: &'static str,
        /// Bytes it has.
        size: usize,
    },
    /// Records that are not in memory, in a message that is made whole.
    #[error("records that the transport puts in place cannot be part of a whole message")]
    Room,
    /// A value that is not of its field's type, or a number out of its range.
    #[error("field {field} holds a value of the wrong type or range")]
    WrongType {
        /// Name of the field.
        field: &'static str,
    },
}
