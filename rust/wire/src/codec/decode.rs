//! Reads messages into values of any type.

use crate::plan::{Operation, Plan, Step};
use crate::schema::{Struct, Type};
use crate::{DecodeError, Reader};

/// Creates values while a message is read.
pub trait Builder<'a> {
    /// Any value.
    type Value;
    /// A struct that is being filled.
    type Object;
    /// A list that is being filled.
    type List;
    /// Its own errors, and those of invalid bytes.
    type Error: From<DecodeError>;

    /// Starts a struct; every slot will be set.
    fn object(&mut self, schema: &'static Struct) -> Result<Self::Object, Self::Error>;
    /// Sets a slot.
    fn set(&mut self, object: &mut Self::Object, slot: usize, value: Self::Value);
    /// Ends a struct.
    fn finish_object(&mut self, object: Self::Object) -> Self::Value;
    /// The default of a field.
    fn default(&mut self, schema: &'static Struct, slot: usize)
    -> Result<Self::Value, Self::Error>;
    /// Starts a list of `count` elements.
    fn list(&mut self, count: usize) -> Result<Self::List, Self::Error>;
    /// Adds an element.
    fn push(&mut self, list: &mut Self::List, value: Self::Value) -> Result<(), Self::Error>;
    /// Ends a list.
    fn finish_list(&mut self, list: Self::List) -> Result<Self::Value, Self::Error>;
    /// The value of a nullable field that has none.
    fn null(&mut self) -> Self::Value;
    /// A truth value.
    fn boolean(&mut self, value: bool) -> Self::Value;
    /// A number of any width.
    fn integer(&mut self, value: i64) -> Result<Self::Value, Self::Error>;
    /// An IEEE 754 number of eight bytes.
    fn float(&mut self, value: f64) -> Result<Self::Value, Self::Error>;
    /// A string, which may be invalid UTF-8.
    fn string(&mut self, bytes: &'a [u8]) -> Result<Self::Value, Self::Error>;
    /// Bytes, records or a uuid.
    fn bytes(&mut self, bytes: &'a [u8]) -> Result<Self::Value, Self::Error>;
}

/// Reads a message of `plan` from `body`; bytes after its end are ignored.
pub fn decode<'a, B: Builder<'a>>(
    plan: &Plan,
    body: &'a [u8],
    builder: &mut B,
) -> Result<B::Value, B::Error> {
    decode_from(plan, &mut Reader::new(body, plan.version, plan.flexible), builder)
}

/// Reads a message of `plan`; `reader` is then at its end.
pub fn decode_from<'a, B: Builder<'a>>(
    plan: &Plan,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<B::Value, B::Error> {
    let mut object = builder.object(plan.schema)?;
    for step in &plan.plain {
        let value = read_field(step, false, reader, builder)?;
        builder.set(&mut object, step.slot, value);
    }
    finish_struct(plan, object, reader, builder)
}

/// Reads the tagged fields, if any, and ends the struct.
pub(super) fn finish_struct<'a, B: Builder<'a>>(
    plan: &Plan,
    mut object: B::Object,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<B::Value, B::Error> {
    for &slot in &plan.absent {
        let value = builder.default(plan.schema, slot)?;
        builder.set(&mut object, slot, value);
    }
    if plan.flexible {
        read_tagged(plan, &mut object, reader, builder)?;
    }
    Ok(builder.finish_object(object))
}

/// Reads the tagged fields; missing ones get their default.
fn read_tagged<'a, B: Builder<'a>>(
    plan: &Plan,
    object: &mut B::Object,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<(), B::Error> {
    // Tags ascend, so steps before the current tag are complete.
    let mut steps = plan.tagged.iter().peekable();
    reader.tagged_fields(|tag, reader| {
        while let Some(step) = steps.next_if(|step| step.field.tag < tag) {
            let value = builder.default(plan.schema, step.slot)?;
            builder.set(object, step.slot, value);
        }
        let Some(step) = steps.next_if(|step| step.field.tag == tag) else { return Ok(false) };
        let value = read_field(step, true, reader, builder)?;
        builder.set(object, step.slot, value);
        Ok::<bool, B::Error>(true)
    })?;
    for step in steps {
        let value = builder.default(plan.schema, step.slot)?;
        builder.set(object, step.slot, value);
    }
    Ok(())
}

#[inline]
pub(super) fn read_field<'a, B: Builder<'a>>(
    step: &Step,
    tagged: bool,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<B::Value, B::Error> {
    let value = match &step.operation {
        Operation::One(kind) => read_primitive(*kind, reader, builder)?,
        Operation::Struct(plan) => {
            if step.nullable && is_struct_null(tagged, reader)? {
                return Ok(builder.null());
            }
            return decode_from(plan, reader, builder);
        }
        Operation::List(kind) => read_list(*kind, reader, builder)?,
        Operation::Structs(plan) => read_structs(plan, reader, builder)?,
    };
    value.map_or_else(|| read_null(step, reader, builder), Ok)
}

pub(super) fn read_null<'a, B: Builder<'a>>(
    step: &Step,
    reader: &Reader<'a>,
    builder: &mut B,
) -> Result<B::Value, B::Error> {
    if step.nullable {
        return Ok(builder.null());
    }
    Err(DecodeError::Null { field: step.field.name, version: reader.version() }.into())
}

#[inline]
pub(super) fn is_struct_null(tagged: bool, reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
    if tagged { Ok(reader.uvarint()? == 0) } else { Ok(reader.i8()? < 0) }
}

/// A primitive; `None` is null.
#[inline]
fn read_primitive<'a, B: Builder<'a>>(
    kind: Type,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<Option<B::Value>, B::Error> {
    let value = match kind {
        Type::Bool => builder.boolean(reader.i8()? != 0),
        Type::Int8 => builder.integer(reader.i8()?.into())?,
        Type::Int16 => builder.integer(reader.i16()?.into())?,
        Type::Uint16 => builder.integer((reader.i16()? as u16).into())?,
        Type::Int32 => builder.integer(reader.i32()?.into())?,
        Type::Uint32 => builder.integer((reader.i32()? as u32).into())?,
        Type::Int64 => builder.integer(reader.i64()?)?,
        Type::Float64 => builder.float(f64::from_be_bytes(reader.array()?))?,
        Type::Uuid => builder.bytes(reader.take(16)?)?,
        Type::String => match reader.string_length()? {
            Some(length) => builder.string(reader.take(length)?)?,
            None => return Ok(None),
        },
        Type::Bytes | Type::Records => match reader.bytes()? {
            Some(bytes) => builder.bytes(bytes)?,
            None => return Ok(None),
        },
        Type::Of(_) => unreachable!("a plan keeps structs apart from primitives"),
    };
    Ok(Some(value))
}

fn read_list<'a, B: Builder<'a>>(
    kind: Type,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<Option<B::Value>, B::Error> {
    let Some(count) = reader.list_length()? else { return Ok(None) };
    reader.count_objects(count)?;
    let mut list = builder.list(count)?;
    for _ in 0..count {
        let value = read_element(kind, reader, builder)?;
        builder.push(&mut list, value)?;
    }
    Ok(Some(builder.finish_list(list)?))
}

/// A primitive in a list, where null is not allowed.
#[inline]
pub(super) fn read_element<'a, B: Builder<'a>>(
    kind: Type,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<B::Value, B::Error> {
    let position = reader.position();
    let value = read_primitive(kind, reader, builder)?;
    Ok(value.ok_or(DecodeError::Length { length: -1, position })?)
}

fn read_structs<'a, B: Builder<'a>>(
    plan: &Plan,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<Option<B::Value>, B::Error> {
    let Some(count) = reader.list_length()? else { return Ok(None) };
    reader.count_objects(count)?;
    let mut list = builder.list(count)?;
    for _ in 0..count {
        let value = decode_from(plan, reader, builder)?;
        builder.push(&mut list, value)?;
    }
    Ok(Some(builder.finish_list(list)?))
}
