//! Errors in received bytes, and in values to encode.

use thiserror::Error;

/// Malformed bytes. No memory was allocated in excess of the available bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// A field or a declared length exceeds the available bytes.
    #[error("{needed} bytes needed at position {position}, {remaining} remain")]
    Truncated {
        /// Bytes from the start of the body.
        position: usize,
        /// Size of the field.
        needed: usize,
        /// Number of remaining bytes.
        remaining: usize,
    },
    /// A varint is longer than its type allows (5 bytes for 32 bits, 10 for 64).
    #[error("varint at position {position} is too long")]
    VarintTooLong {
        /// Start of the varint.
        position: usize,
    },
    /// A length below -1, or null (-1) where null is not allowed.
    #[error("length {length} at position {position} is not allowed")]
    Length {
        /// The declared length.
        length: i64,
        /// Position after the declared length.
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
    /// Tags must ascend strictly.
    #[error("tag {tag} at position {position} is not greater than the one before")]
    TagOrder {
        /// The invalid tag.
        tag: u32,
        /// Position after the tag.
        position: usize,
    },
    /// A tagged field does not have its declared size.
    #[error("tag {tag} declares {declared} bytes and takes {taken}")]
    TagSize {
        /// The number that identifies the field.
        tag: u32,
        /// The declared size.
        declared: usize,
        /// The actual size.
        taken: usize,
    },
    /// A list has more elements than [`crate::LIST_LENGTH_MAX`].
    #[error("a list of {length} elements is longer than {max}")]
    ListTooLong {
        /// The declared length.
        length: usize,
        /// The limit.
        max: usize,
    },
    /// A struct has more tagged fields than [`crate::TAGGED_FIELDS_MAX`].
    #[error("{count} tagged fields are more than {max}")]
    TooManyTags {
        /// The declared number.
        count: u32,
        /// The limit.
        max: u32,
    },
    /// A message has more array elements than [`crate::OBJECTS_MAX`].
    #[error("more than {max} array elements in one message")]
    TooManyObjects {
        /// The limit.
        max: usize,
    },
    /// The API key is unknown, or does not have this version.
    #[error("version {version} of API key {api_key} is not supported")]
    UnsupportedVersion {
        /// API key in the header.
        api_key: i16,
        /// Version in the header.
        version: i16,
    },
}

/// A value that the message cannot represent in the requested version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The field is not in this version, not ignorable, and not its default.
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
    /// A string, byte string or array is too long for its length field.
    #[error("{length} is too long for the length field")]
    TooLong {
        /// Number of bytes or elements.
        length: usize,
    },
    /// The message does not exist in this version.
    #[error("version {version} is not supported")]
    UnsupportedVersion {
        /// The requested version.
        version: i16,
    },
    /// A uuid does not have 16 bytes.
    #[error("field {field} has {size} bytes instead of 16")]
    UuidSize {
        /// Name of the field.
        field: &'static str,
        /// Number of bytes it has instead.
        size: usize,
    },
    /// Records that are not in memory, in a message that is encoded into one buffer.
    #[error("records that the transport puts in place cannot be part of a whole message")]
    Room,
    /// A value has the wrong type for its field, or a number is out of range.
    #[error("field {field} holds a value of the wrong type or range")]
    WrongType {
        /// Name of the field.
        field: &'static str,
    },
}
