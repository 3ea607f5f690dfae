//! Messages as plain trees, for use of the table codec without Python.

use crate::codec::{Builder, Source};
use crate::schema::{Default, Field, Struct, Type};
use crate::{DecodeError, EncodeError};

/// A value of any field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A nullable field without a value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number of any width.
    Int(i64),
    /// An IEEE 754 number of eight bytes.
    Float(f64),
    /// Valid UTF-8.
    String(String),
    /// Bytes, records or a uuid.
    Bytes(Vec<u8>),
    /// An array.
    List(Vec<Value>),
    /// A struct, by slot.
    Struct(Vec<Value>),
}

impl Value {
    /// The default of a field.
    pub fn default_of(field: &Field) -> Value {
        match (field.default, field.kind) {
            (Default::Null, _) => Value::Null,
            _ if field.is_list => Value::List(Vec::new()),
            (Default::Int(number), Type::Bool) => Value::Bool(number != 0),
            (Default::Int(number), _) => Value::Int(number),
            (_, Type::Bool) => Value::Bool(false),
            (_, Type::Float64) => Value::Float(0.0),
            (_, Type::String) => Value::String(String::new()),
            (_, Type::Uuid) => Value::Bytes(vec![0; 16]),
            (_, Type::Bytes | Type::Records) => Value::Bytes(Vec::new()),
            (_, Type::Of(schema)) => Value::default_struct(schema),
            _ => Value::Int(0),
        }
    }

    /// A struct whose fields hold their defaults.
    pub fn default_struct(schema: &Struct) -> Value {
        Value::Struct(schema.fields.iter().map(Value::default_of).collect())
    }
}

/// Builds [`Value`]s.
#[derive(Debug, Clone, Copy)]
pub struct Values;

impl<'a> Builder<'a> for Values {
    type Value = Value;
    type Object = Vec<Value>;
    type List = Vec<Value>;
    type Error = DecodeError;

    fn object(&mut self, schema: &'static Struct) -> Result<Vec<Value>, DecodeError> {
        Ok(vec![Value::Null; schema.fields.len()])
    }

    fn set(&mut self, object: &mut Vec<Value>, slot: usize, value: Value) {
        object[slot] = value;
    }

    fn finish_object(&mut self, object: Vec<Value>) -> Value {
        Value::Struct(object)
    }

    fn default(&mut self, schema: &'static Struct, slot: usize) -> Result<Value, DecodeError> {
        Ok(Value::default_of(&schema.fields[slot]))
    }

    fn list(&mut self, count: usize) -> Result<Vec<Value>, DecodeError> {
        Ok(Vec::with_capacity(count.min(64)))
    }

    fn push(&mut self, list: &mut Vec<Value>, value: Value) -> Result<(), DecodeError> {
        list.push(value);
        Ok(())
    }

    fn finish_list(&mut self, list: Vec<Value>) -> Result<Value, DecodeError> {
        Ok(Value::List(list))
    }

    fn null(&mut self) -> Value {
        Value::Null
    }

    fn boolean(&mut self, value: bool) -> Value {
        Value::Bool(value)
    }

    fn integer(&mut self, value: i64) -> Result<Value, DecodeError> {
        Ok(Value::Int(value))
    }

    fn float(&mut self, value: f64) -> Result<Value, DecodeError> {
        Ok(Value::Float(value))
    }

    fn string(&mut self, bytes: &'a [u8]) -> Result<Value, DecodeError> {
        Ok(Value::String(String::from_utf8_lossy(bytes).into_owned()))
    }

    fn bytes(&mut self, bytes: &'a [u8]) -> Result<Value, DecodeError> {
        Ok(Value::Bytes(bytes.to_vec()))
    }
}

/// Reads from a [`Value`] tree.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'v>(std::marker::PhantomData<&'v Value>);

impl Tree<'_> {
    /// Creates a source for any tree.
    pub fn new() -> Self {
        Tree(std::marker::PhantomData)
    }
}

impl std::default::Default for Tree<'_> {
    fn default() -> Self {
        Tree::new()
    }
}

const fn wrong<T>(field: &'static Field) -> Result<T, EncodeError> {
    Err(EncodeError::WrongType { field: field.name })
}

impl<'v> Source for Tree<'v> {
    type Value = &'v Value;
    type Items = std::slice::Iter<'v, Value>;
    type Error = EncodeError;

    fn check_object(&self, value: &'v Value, schema: &'static Struct) -> Result<(), EncodeError> {
        match value {
            Value::Struct(slots) if slots.len() == schema.fields.len() => Ok(()),
            _ => Err(EncodeError::WrongType { field: schema.name }),
        }
    }

    fn get(
        &self,
        object: &'v Value,
        schema: &'static Struct,
        slot: usize,
    ) -> Result<&'v Value, EncodeError> {
        match object {
            Value::Struct(slots) => Ok(&slots[slot]),
            _ => Err(EncodeError::WrongType { field: schema.name }),
        }
    }

    fn is_null(&self, value: &'v Value) -> bool {
        *value == Value::Null
    }

    fn boolean(&self, value: &'v Value, field: &'static Field) -> Result<bool, EncodeError> {
        if let Value::Bool(value) = value { Ok(*value) } else { wrong(field) }
    }

    fn integer(
        &self,
        value: &'v Value,
        field: &'static Field,
        low: i64,
        high: i64,
    ) -> Result<i64, EncodeError> {
        match value {
            Value::Int(value) if (low..=high).contains(value) => Ok(*value),
            _ => wrong(field),
        }
    }

    fn float(&self, value: &'v Value, field: &'static Field) -> Result<f64, EncodeError> {
        if let Value::Float(value) = value { Ok(*value) } else { wrong(field) }
    }

    fn string(&self, value: &'v Value, field: &'static Field) -> Result<&str, EncodeError> {
        if let Value::String(value) = value { Ok(value) } else { wrong(field) }
    }

    fn bytes(&self, value: &'v Value, field: &'static Field) -> Result<&[u8], EncodeError> {
        if let Value::Bytes(value) = value { Ok(value) } else { wrong(field) }
    }

    fn items(&self, value: &'v Value, field: &'static Field) -> Result<Self::Items, EncodeError> {
        if let Value::List(items) = value { Ok(items.iter()) } else { wrong(field) }
    }
}
