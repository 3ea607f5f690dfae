//! A schema made ready for one version: which fields are on the wire, in order, and which are not.

use crate::schema::{Field, Struct, Type};

/// A struct at one version.
#[derive(Debug)]
pub struct Plan {
    /// The struct.
    pub schema: &'static Struct,
    /// Version of the message.
    pub version: i16,
    /// Whether lengths are compact and tagged fields end the struct.
    pub flexible: bool,
    /// Plain fields, in wire order.
    pub plain: Box<[Step]>,
    /// Tagged fields, by tag.
    pub tagged: Box<[Step]>,
    /// Slots of fields that this version lacks.
    pub absent: Box<[usize]>,
}

/// A field at one version.
#[derive(Debug)]
pub struct Step {
    /// Place of the field in [`Struct::fields`].
    pub slot: usize,
    /// The field.
    pub field: &'static Field,
    /// What to read or write.
    pub operation: Operation,
    /// Whether null is allowed.
    pub nullable: bool,
}

/// What a field is made of.
#[derive(Debug)]
pub enum Operation {
    /// A primitive.
    One(Type),
    /// A struct.
    Struct(Plan),
    /// An array of primitives.
    List(Type),
    /// An array of structs.
    Structs(Plan),
}

impl Plan {
    /// The plan of `schema`, and of all structs below it.
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
