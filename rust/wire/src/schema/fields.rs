//! Structs, their fields, and the versions of both.

/// Upper end of versions without a limit.
pub const MAX: i16 = i16::MAX;

/// First and last version, both inclusive; empty if the first is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions(pub i16, pub i16);

impl Versions {
    /// No version.
    pub const NONE: Versions = Versions(MAX, -1);

    /// Whether `version` is one of them.
    pub const fn contains(self, version: i16) -> bool {
        self.0 <= version && version <= self.1
    }
}

/// A message's outermost struct, or a nested one.
#[derive(Debug)]
pub struct Struct {
    /// Kafka's name.
    pub name: &'static str,
    /// Index in [`super::Message::structs`].
    pub index: usize,
    /// The fields in wire order; a field's index is its slot.
    pub fields: &'static [Field],
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// Name in snake case.
    pub name: &'static str,
    /// Type of the field, or of its elements if it is a list.
    pub kind: Type,
    /// Whether this is an array.
    pub is_list: bool,
    /// Versions with the field.
    pub versions: Versions,
    /// Versions in which it may be null.
    pub nullable: Versions,
    /// Versions in which it is a tagged field.
    pub tagged: Versions,
    /// Its tag in these versions.
    pub tag: u32,
    /// Whether versions without the field drop it silently.
    pub ignorable: bool,
    /// The value in versions that lack the field.
    pub default: Default,
}

/// The primitive types, and structs.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// One byte, 0 or 1.
    Bool,
    /// Signed, one byte.
    Int8,
    /// Signed, two bytes.
    Int16,
    /// Unsigned, two bytes.
    Uint16,
    /// Signed, four bytes.
    Int32,
    /// Unsigned, four bytes.
    Uint32,
    /// Signed, eight bytes.
    Int64,
    /// IEEE 754, eight bytes.
    Float64,
    /// Sixteen bytes.
    Uuid,
    /// UTF-8 of at most 32767 bytes.
    String,
    /// Any bytes; no text encoding.
    Bytes,
    /// Record batches; the default is null unless specified otherwise.
    Records,
    /// A struct.
    Of(&'static Struct),
}

/// A field's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// 0, false, empty, or a struct of defaults.
    Empty,
    /// This number; 1 is true.
    Int(i64),
    /// No value; only for a nullable field.
    Null,
}

/// Creates a table row: a field that exists in versions `first` to `last`.
pub(crate) const fn field(name: &'static str, kind: Type, first: i16, last: i16) -> Field {
    let default = if matches!(kind, Type::Records) { Default::Null } else { Default::Empty };
    Field {
        name,
        kind,
        is_list: false,
        versions: Versions(first, last),
        nullable: Versions::NONE,
        tagged: Versions::NONE,
        tag: 0,
        ignorable: false,
        default,
    }
}

impl Field {
    pub(crate) const fn list(self) -> Field {
        Field { is_list: true, ..self }
    }

    pub(crate) const fn nullable(self, first: i16, last: i16) -> Field {
        Field { nullable: Versions(first, last), ..self }
    }

    pub(crate) const fn tagged(self, tag: u32, first: i16, last: i16) -> Field {
        Field { tag, tagged: Versions(first, last), ..self }
    }

    pub(crate) const fn ignorable(self) -> Field {
        Field { ignorable: true, ..self }
    }

    pub(crate) const fn or(self, default: i64) -> Field {
        Field { default: Default::Int(default), ..self }
    }

    pub(crate) const fn or_null(self) -> Field {
        Field { default: Default::Null, ..self }
    }
}
