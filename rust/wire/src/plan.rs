//! A schema prepared for one version: the fields on the wire, in order, and the missing ones.

use crate::schema::{Field, Struct, Type};

/// A struct at one version.
#[derive(Debug)]
pub struct Plan {
    /// The struct.
    pub schema: &'static Struct,
    /// Version of the message.
    pub version: i16,
    /// Whether lengths are compact and structs end with tagged fields.
    pub flexible: bool,
    /// Plain fields, in wire order.
    pub plain: Box<[Step]>,
    /// Tagged fields, by tag.
    pub tagged: Box<[Step]>,
    /// Slots of fields that are not in this version.
    pub absent: Box<[usize]>,
}

/// A field at one version.
#[derive(Debug)]
pub struct Step {
    /// Index of the field in [`Struct::fields`].
    pub slot: usize,
    /// Its declaration in the schema.
    pub field: &'static Field,
    /// The operation to read or write it.
    pub operation: Operation,
    /// Whether null is allowed.
    pub nullable: bool,
}

/// The structure of a field.
#[derive(Debug)]
pub enum Operation {
    /// A primitive.
    One(Type),
    /// A nested struct with the plan of its fields.
    Struct(Plan),
    /// An array of primitives.
    List(Type),
    /// An array of structs.
    Structs(Plan),
}

impl Plan {
    /// Creates the plan of `schema`, and of all structs in it.
    pub fn new(schema: &'static Struct, version: i16, flexible: bool) -> Plan {
        let fields = || schema.fields.iter().enumerate();
        let step = |(slot, field): (usize, &'static Field)| Step {
            slot,
            field,
            operation: Operation::new(field, version, flexible),
            nullable: field.nullable.contains(version),
        };
        let is_tagged = |field: &Field| flexible && field.tagged.contains(version);
        let is_present = |field: &Field| field.versions.contains(version);
        let mut tagged: Vec<Step> =
            fields().filter(|(_, f)| is_present(f) && is_tagged(f)).map(step).collect();
        tagged.sort_by_key(|step| step.field.tag);
        Plan {
            schema,
            version,
            flexible,
            plain: fields().filter(|(_, f)| is_present(f) && !is_tagged(f)).map(step).collect(),
            tagged: tagged.into(),
            absent: fields().filter(|(_, f)| !is_present(f)).map(|(slot, _)| slot).collect(),
        }
    }
}

impl Operation {
    fn new(field: &'static Field, version: i16, flexible: bool) -> Operation {
        match (field.kind, field.is_list) {
            (Type::Of(schema), false) => Operation::Struct(Plan::new(schema, version, flexible)),
            (Type::Of(schema), true) => Operation::Structs(Plan::new(schema, version, flexible)),
            (primitive, false) => Operation::One(primitive),
            (primitive, true) => Operation::List(primitive),
        }
    }
}
