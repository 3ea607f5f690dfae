//! Writes messages from values of any type.

use crate::plan::{Operation, Plan, Step};
use crate::schema::{Default, Field, Struct, Type};
use crate::{EncodeError, Writer};

/// Provides values while a message is written.
pub trait Source {
    /// A handle to a value.
    type Value: Copy;
    /// The elements of a list.
    type Items: Iterator<Item = Self::Value> + ExactSizeIterator;
    /// Its own errors (a value of the wrong type), and those of the message.
    type Error: From<EncodeError>;

    /// Fails unless `value` is a struct with that schema.
    fn check_object(&self, value: Self::Value, schema: &'static Struct) -> Result<(), Self::Error>;
    /// The value in a slot.
    fn get(
        &self,
        object: Self::Value,
        schema: &'static Struct,
        slot: usize,
    ) -> Result<Self::Value, Self::Error>;
    /// Whether the value is null.
    fn is_null(&self, value: Self::Value) -> bool;
    /// A truth value.
    fn boolean(&self, value: Self::Value, field: &'static Field) -> Result<bool, Self::Error>;
    /// A number from `low` to `high`.
    fn integer(
        &self,
        value: Self::Value,
        field: &'static Field,
        low: i64,
        high: i64,
    ) -> Result<i64, Self::Error>;
    /// An IEEE 754 number of eight bytes.
    fn float(&self, value: Self::Value, field: &'static Field) -> Result<f64, Self::Error>;
    /// Text, which is encoded as UTF-8.
    fn string(&self, value: Self::Value, field: &'static Field) -> Result<&str, Self::Error>;
    /// Bytes, records or a uuid.
    fn bytes(&self, value: Self::Value, field: &'static Field) -> Result<&[u8], Self::Error>;
    /// The elements of a list.
    fn items(&self, value: Self::Value, field: &'static Field) -> Result<Self::Items, Self::Error>;
}

/// Appends a message of `plan` to `out`; after an error, `out` has an incomplete message.
pub fn encode<S: Source>(
    plan: &Plan,
    message: S::Value,
    source: &S,
    out: &mut Vec<u8>,
) -> Result<(), S::Error> {
    write_struct(plan, message, source, &mut Writer::new(out, plan.version, plan.flexible))
}

fn write_struct<S: Source>(
    plan: &Plan,
    object: S::Value,
    source: &S,
    writer: &mut Writer<'_, Vec<u8>>,
) -> Result<(), S::Error> {
    check_struct(plan, object, source)?;
    for step in &plan.plain {
        let value = source.get(object, plan.schema, step.slot)?;
        write_field(step, false, value, source, writer)?;
    }
    if plan.flexible { write_tagged(plan, object, source, writer) } else { Ok(()) }
}

/// Checks that the value is a struct that can be written in this version.
pub fn check_struct<S: Source>(plan: &Plan, object: S::Value, source: &S) -> Result<(), S::Error> {
    source.check_object(object, plan.schema)?;
    for &slot in &plan.absent {
        let field = &plan.schema.fields[slot];
        if !field.ignorable && !is_default(field, source.get(object, plan.schema, slot)?, source)? {
            let error = EncodeError::NotInVersion { field: field.name, version: plan.version };
            return Err(error.into());
        }
    }
    Ok(())
}

/// Appends the tagged fields that end a flexible struct.
pub fn write_tagged<S: Source>(
    plan: &Plan,
    object: S::Value,
    source: &S,
    writer: &mut Writer<'_, Vec<u8>>,
) -> Result<(), S::Error> {
    let mut count = 0;
    let mut fields = Vec::new();
    for step in &plan.tagged {
        let value = source.get(object, plan.schema, step.slot)?;
        if !is_default(step.field, value, source)? {
            count += 1;
            Writer::new(&mut fields, plan.version, true)
                .tagged_field(step.field.tag, |writer| {
                    write_field(step, true, value, source, writer)
                })?;
        }
    }
    writer.uvarint(count);
    writer.put(&fields);
    Ok(())
}

/// Appends a field.
pub fn write_field<S: Source>(
    step: &Step,
    tagged: bool,
    value: S::Value,
    source: &S,
    writer: &mut Writer<'_, Vec<u8>>,
) -> Result<(), S::Error> {
    let field = step.field;
    if source.is_null(value) {
        return Ok(write_null(step, tagged, writer)?);
    }
    match &step.operation {
        Operation::One(kind) => write_primitive(*kind, field, value, source, writer),
        Operation::Struct(plan) => {
            if step.nullable {
                // The varint and the int8 of a non-null struct have the same encoding.
                writer.put(&[1]);
            }
            write_struct(plan, value, source, writer)
        }
        Operation::List(kind) => {
            let mut items = source.items(value, field)?;
            writer.length(Some(items.len()))?;
            items.try_for_each(|item| write_primitive(*kind, field, item, source, writer))
        }
        Operation::Structs(plan) => {
            let mut items = source.items(value, field)?;
            writer.length(Some(items.len()))?;
            items.try_for_each(|item| write_struct(plan, item, source, writer))
        }
    }
}

fn write_null(
    step: &Step,
    tagged: bool,
    writer: &mut Writer<'_, Vec<u8>>,
) -> Result<(), EncodeError> {
    if !step.nullable {
        let version = writer.version();
        return Err(EncodeError::Null { field: step.field.name, version });
    }
    match &step.operation {
        Operation::Struct(_) if tagged => writer.put(&[0]),
        Operation::Struct(_) => writer.put(&[0xff]),
        Operation::One(Type::String) => writer.string_length(None)?,
        _ => writer.length(None)?,
    }
    Ok(())
}

/// Appends a primitive: a field or a list element.
#[inline]
pub fn write_primitive<S: Source>(
    kind: Type,
    field: &'static Field,
    value: S::Value,
    source: &S,
    writer: &mut Writer<'_, Vec<u8>>,
) -> Result<(), S::Error> {
    let integer = |low, high| source.integer(value, field, low, high);
    match kind {
        Type::Bool => writer.put(&[u8::from(source.boolean(value, field)?)]),
        Type::Int8 => {
            let value = integer(i8::MIN.into(), i8::MAX.into())?;
            writer.put(&(value as i8).to_be_bytes());
        }
        Type::Int16 => {
            let value = integer(i16::MIN.into(), i16::MAX.into())?;
            writer.put(&(value as i16).to_be_bytes());
        }
        Type::Uint16 => {
            let value = integer(0, u16::MAX.into())?;
            writer.put(&(value as u16).to_be_bytes());
        }
        Type::Int32 => {
            let value = integer(i32::MIN.into(), i32::MAX.into())?;
            writer.put(&(value as i32).to_be_bytes());
        }
        Type::Uint32 => {
            let value = integer(0, u32::MAX.into())?;
            writer.put(&(value as u32).to_be_bytes());
        }
        Type::Int64 => writer.put(&integer(i64::MIN, i64::MAX)?.to_be_bytes()),
        Type::Float64 => writer.put(&source.float(value, field)?.to_be_bytes()),
        Type::Uuid => {
            let uuid = source.bytes(value, field)?;
            if uuid.len() != 16 {
                return Err(EncodeError::UuidSize { field: field.name, size: uuid.len() }.into());
            }
            writer.put(uuid);
        }
        Type::String => writer.string(Some(source.string(value, field)?))?,
        Type::Bytes | Type::Records => writer.bytes(Some(source.bytes(value, field)?))?,
        Type::Of(_) => unreachable!("a plan keeps structs apart from primitives"),
    }
    Ok(())
}

/// Whether a field has its default value.
fn is_default<S: Source>(
    field: &'static Field,
    value: S::Value,
    source: &S,
) -> Result<bool, S::Error> {
    if source.is_null(value) {
        return Ok(field.default == Default::Null);
    }
    if field.default == Default::Null {
        return Ok(false);
    }
    if field.is_list {
        return Ok(source.items(value, field)?.len() == 0);
    }
    let number = if let Default::Int(number) = field.default { number } else { 0 };
    match field.kind {
        Type::Bool => Ok(source.boolean(value, field)? == (number != 0)),
        // Kafka compares the bits of floats; all defaults are 0.
        Type::Float64 => Ok(source.float(value, field)?.to_bits() == 0),
        Type::String => Ok(source.string(value, field)?.is_empty()),
        Type::Uuid => Ok(source.bytes(value, field)?.iter().all(|&byte| byte == 0)),
        Type::Bytes | Type::Records => Ok(source.bytes(value, field)?.is_empty()),
        Type::Of(schema) => is_default_struct(schema, value, source),
        _ => Ok(source.integer(value, field, i64::MIN, i64::MAX)? == number),
    }
}

fn is_default_struct<S: Source>(
    schema: &'static Struct,
    object: S::Value,
    source: &S,
) -> Result<bool, S::Error> {
    source.check_object(object, schema)?;
    for (slot, field) in schema.fields.iter().enumerate() {
        if !is_default(field, source.get(object, schema, slot)?, source)? {
            return Ok(false);
        }
    }
    Ok(true)
}
