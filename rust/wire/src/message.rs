//! Declaration of the hot messages: a struct with the versions of each field.
//!
//! ```text
//! message! {
//!     pub struct FetchPartition {
//!         partition: i32 = 0, since(0);
//!         current_leader_epoch: i32 = -1, since(9).ignorable();
//!     }
//! }
//! ```
//!
//! expands to the struct, its `Default` and a straight-line [`Wire`] implementation. The
//! specification of a field is a constant, so all checks that do not depend on the message's
//! version are removed at compile time.
//!
//! Semantics are those of Kafka's message generator: a field that a version lacks reads as its
//! default; writing another value in such a version is an error, unless the field is ignorable; a
//! tagged field is written if it is not its default.

pub mod api_versions;
pub mod describe_topic_partitions;
pub mod fetch;
pub mod list_offsets;
pub mod metadata;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod structs;

use bytes::Bytes;

use crate::{DecodeError, EncodeError, Reader, Sink, Writer};

/// A type of values in messages.
pub trait Wire<'a>: Sized {
    /// Whether arrays of it count against [`crate::OBJECTS_MAX`]; fixed-size primitives do not.
    const COUNTED: bool = true;

    /// Reads one value.
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Writes the value.
    fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError>;

    /// Whether the value is null.
    fn is_null(&self) -> bool {
        false
    }
}

/// Record batches of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Records {
    /// In memory; large ones are shared with the response, never copied.
    Bytes(Bytes),
    /// In a file, with this size; the transport inserts them, see [`crate::Chunk::Room`].
    Room(usize),
}

impl Records {
    /// Size of all batches.
    pub fn len(&self) -> usize {
        match self {
            Records::Bytes(bytes) => bytes.len(),
            Records::Room(size) => *size,
        }
    }

    /// Whether there are no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The versions of a field, and its properties.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Field {
    since: i16,
    until: i16,
    nullable_since: i16,
    tag: Option<u32>,
    ignorable: bool,
}

/// A field in `version` and all later ones.
pub const fn since(version: i16) -> Field {
    Field { since: version, until: i16::MAX, nullable_since: 0, tag: None, ignorable: false }
}

impl Field {
    /// Last version that has the field, inclusive.
    pub const fn until(self, version: i16) -> Field {
        Field { until: version, ..self }
    }

    /// First version in which the field may be null; by default any version.
    pub const fn nullable_since(self, version: i16) -> Field {
        Field { nullable_since: version, ..self }
    }

    /// Makes it a tagged field.
    pub const fn tag(self, tag: u32) -> Field {
        Field { tag: Some(tag), ..self }
    }

    /// Versions without the field drop it without an error.
    pub const fn ignorable(self) -> Field {
        Field { ignorable: true, ..self }
    }

    /// Whether the field is in `version`.
    #[inline]
    pub const fn is_in(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }

    /// Whether the field is not tagged.
    pub const fn is_plain(&self) -> bool {
        self.tag.is_none()
    }

    /// The tag of a tagged field.
    pub const fn tag_number(&self) -> Option<u32> {
        self.tag
    }

    /// Reads the field; `value` keeps its default in versions without it.
    #[inline]
    pub fn read<'a, T: Wire<'a>>(
        &self,
        name: &'static str,
        reader: &mut Reader<'a>,
        value: &mut T,
    ) -> Result<(), DecodeError> {
        let version = reader.version();
        if self.is_in(version) {
            *value = T::read(reader)?;
            if version < self.nullable_since && value.is_null() {
                return Err(DecodeError::Null { field: name, version });
            }
        }
        Ok(())
    }

    /// Checks that the message's version can represent the value; `Ok(true)` if it is written.
    #[inline]
    pub fn admit<'a, T: Wire<'a>>(
        &self,
        name: &'static str,
        version: i16,
        value: &T,
        is_default: impl FnOnce() -> bool,
    ) -> Result<bool, EncodeError> {
        if self.is_in(version) {
            if version < self.nullable_since && value.is_null() {
                return Err(EncodeError::Null { field: name, version });
            }
            return Ok(self.tag.is_none() || !is_default());
        }
        if self.ignorable || is_default() {
            return Ok(false);
        }
        Err(EncodeError::NotInVersion { field: name, version })
    }
}

macro_rules! primitive {
    ($($type:ident),*) => {$(
        impl Wire<'_> for $type {
            const COUNTED: bool = false;

            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                reader.$type()
            }

            #[inline]
            fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
                writer.put(&self.to_be_bytes());
                Ok(())
            }
        }
    )*};
}
primitive!(i8, i16, i32, i64);

impl Wire<'_> for bool {
    const COUNTED: bool = false;

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(reader.i8()? != 0)
    }

    fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        i8::from(*self).write(writer)
    }
}

/// A uuid.
impl Wire<'_> for [u8; 16] {
    const COUNTED: bool = false;

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array()
    }

    fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        writer.put(self);
        Ok(())
    }
}

/// Types with a length of -1 for null: `Option<T>` is nullable, `T` rejects null.
macro_rules! nullable {
    ($type:ty, $read:ident, $value:ident => $write:expr) => {
        impl<'a> Wire<'a> for Option<$type> {
            #[inline]
            fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                reader.$read()
            }

            #[inline]
            fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
                let $value = self.as_ref();
                $write(writer)
            }

            fn is_null(&self) -> bool {
                self.is_none()
            }
        }

        impl<'a> Wire<'a> for $type {
            #[inline]
            fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                reader
                    .$read()?
                    .ok_or(DecodeError::Length { length: -1, position: reader.position() })
            }

            #[inline]
            fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
                let $value = Some(self);
                $write(writer)
            }
        }
    };
}
nullable!(&'a str, string, value => |writer: &mut Writer<'_, S>| writer.string(value.copied()));
nullable!(&'a [u8], bytes, value => |writer: &mut Writer<'_, S>| writer.bytes(value.copied()));
nullable!(Bytes, shared_bytes, value => |writer: &mut Writer<'_, S>| {
    writer.length(value.map(Bytes::len))?;
    if let Some(bytes) = value {
        writer.put_shared(bytes);
    }
    Ok(())
});

impl<'a> Wire<'a> for Option<Records> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(reader.shared_bytes()?.map(Records::Bytes))
    }

    fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        writer.length(self.as_ref().map(Records::len))?;
        match self {
            Some(Records::Bytes(bytes)) => writer.put_shared(bytes),
            Some(Records::Room(size)) => writer.put_room(*size)?,
            None => {}
        }
        Ok(())
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for Option<Vec<T>> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let Some(count) = reader.list_length()? else { return Ok(None) };
        if T::COUNTED {
            reader.count_objects(count)?;
        }
        // The count is at most the number of remaining bytes. A struct may be larger in memory
        // than on the wire, so a long array grows with its elements.
        let mut items = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            items.push(T::read(reader)?);
        }
        Ok(Some(items))
    }

    fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        match self {
            Some(items) => items.write(writer),
            None => writer.length(None),
        }
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for Vec<T> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Option::<Vec<T>>::read(reader)?
            .ok_or(DecodeError::Length { length: -1, position: reader.position() })
    }

    fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        writer.length(Some(self.len()))?;
        self.iter().try_for_each(|item| item.write(writer))
    }
}

/// Declares a struct with its [`Wire`] implementation; see the module's documentation.
macro_rules! message {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident $(<$life:lifetime>)? {
            $( $(#[$field_meta:meta])* $field:ident : $type:ty = $default:expr, $spec:expr; )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name $(<$life>)? {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl $(<$life>)? Default for $name $(<$life>)? {
            fn default() -> Self {
                $name { $( $field: $default, )* }
            }
        }

        impl<'a> $crate::Wire<'a> for $name $(<$life>)? {
            fn read(reader: &mut $crate::Reader<'a>) -> Result<Self, $crate::DecodeError> {
                #[allow(unused_imports, reason = "a struct without fields needs no builder")]
                use $crate::message::{Field, since};
                let mut message = Self::default();
                $({
                    const FIELD: Field = $spec;
                    if FIELD.is_plain() {
                        FIELD.read(stringify!($field), reader, &mut message.$field)?;
                    }
                })*
                if reader.is_flexible() {
                    reader.tagged_fields(|tag, reader| {
                        let _ = (tag, &reader);
                        $({
                            const FIELD: Field = $spec;
                            if FIELD.tag_number() == Some(tag) && FIELD.is_in(reader.version()) {
                                FIELD.read(stringify!($field), reader, &mut message.$field)?;
                                return Ok(true);
                            }
                        })*
                        Ok(false)
                    })?;
                }
                Ok(message)
            }

            fn write<S: $crate::Sink>(
                &self,
                writer: &mut $crate::Writer<'_, S>,
            ) -> Result<(), $crate::EncodeError> {
                #[allow(unused_imports, reason = "a struct without fields needs no builder")]
                use $crate::message::{Field, since};
                let version = writer.version();
                let mut tagged = 0;
                $({
                    const FIELD: Field = $spec;
                    let is_default = || self.$field == $default;
                    if FIELD.admit(stringify!($field), version, &self.$field, is_default)? {
                        if FIELD.is_plain() {
                            self.$field.write(writer)?;
                        } else {
                            tagged += 1;
                        }
                    }
                })*
                if !writer.is_flexible() {
                    return Ok(());
                }
                writer.uvarint(tagged);
                if tagged == 0 {
                    return Ok(());
                }
                $({
                    const FIELD: Field = $spec;
                    if let Some(tag) = FIELD.tag_number()
                        && FIELD.is_in(version)
                        && self.$field != $default
                    {
                        writer.tagged_field(tag, |writer| self.$field.write(writer))?;
                    }
                })*
                Ok(())
            }
        }
    )*};
}
pub(crate) use message;

/// Adds `decode` and `encode` to the outermost struct of a request or response.
macro_rules! body {
    ($name:ident $(<$life:lifetime>)?, $key:expr) => {
        impl<'a> $name $(<$life>)? {
            /// Reads a body of `version`; bytes after its end are ignored, as in Kafka.
            pub fn decode(version: i16, body: &'a [u8]) -> Result<Self, $crate::DecodeError> {
                let flexible = $crate::message::admit_version($key, version)?;
                $crate::Wire::read(&mut $crate::Reader::new(body, version, flexible))
            }

            /// Like `decode`, but record bytes share `body` instead of being copied.
            pub fn decode_shared(
                version: i16,
                body: &'a bytes::Bytes,
            ) -> Result<Self, $crate::DecodeError> {
                let flexible = $crate::message::admit_version($key, version)?;
                $crate::Wire::read(&mut $crate::Reader::sharing(body, version, flexible))
            }

            /// Appends the body of `version` to `out`; after an error, `out` is incomplete.
            pub fn encode<S: $crate::Sink>(
                &self,
                version: i16,
                out: &mut S,
            ) -> Result<(), $crate::EncodeError> {
                let flexible = $crate::message::admit_version($key, version)
                    .map_err(|_| $crate::EncodeError::UnsupportedVersion { version })?;
                $crate::Wire::write(self, &mut $crate::Writer::new(out, version, flexible))
            }
        }
    };
}
pub(crate) use body;

/// Whether `version` of `key` is flexible; an error if it is unknown.
pub(crate) fn admit_version(key: crate::ApiKey, version: i16) -> Result<bool, DecodeError> {
    let known = crate::known_versions(key).is_some_and(|known| known.contains(&version));
    if !known {
        return Err(DecodeError::UnsupportedVersion { api_key: key.0, version });
    }
    Ok(crate::is_flexible(key, version))
}
