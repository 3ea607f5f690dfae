//! Messages as Python objects: the table codec's builder and source.

use pykafka_wire::codec::{Builder, Source};
use pykafka_wire::schema::{Field, Struct};
use pykafka_wire::{DecodeError, EncodeError};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString};

use super::errors::ProtocolError;
use super::layout::Layouts;
use super::slots::{Items, SlotClass};

/// An error in the conversion between bytes and objects.
#[derive(Debug)]
pub enum CodecError {
    /// A Python exception: memory, attributes, types.
    Python(PyErr),
    /// Invalid bytes or values.
    Protocol(String),
}

impl From<DecodeError> for CodecError {
    fn from(error: DecodeError) -> CodecError {
        CodecError::Protocol(error.to_string())
    }
}

impl From<EncodeError> for CodecError {
    fn from(error: EncodeError) -> CodecError {
        CodecError::Protocol(error.to_string())
    }
}

impl From<PyErr> for CodecError {
    fn from(error: PyErr) -> CodecError {
        CodecError::Python(error)
    }
}

impl From<CodecError> for PyErr {
    fn from(error: CodecError) -> PyErr {
        match error {
            CodecError::Python(error) => error,
            CodecError::Protocol(text) => ProtocolError::new_err(text),
        }
    }
}

/// An incomplete object.
pub type OpenObject = (Py<PyAny>, &'static SlotClass);
/// An incomplete list.
pub type OpenList = Vec<Py<PyAny>>;

/// Creates objects of a message's classes.
pub struct Objects<'py> {
    py: Python<'py>,
    layouts: &'static Layouts,
}

impl<'py> Objects<'py> {
    /// Uses the classes in `layouts`.
    pub fn new(py: Python<'py>, layouts: &'static Layouts) -> Objects<'py> {
        Objects { py, layouts }
    }
}

impl<'py> Builder<'_> for Objects<'py> {
    type Value = Bound<'py, PyAny>;
    type Object = OpenObject;
    type List = OpenList;
    type Error = CodecError;

    #[inline]
    fn object(&mut self, schema: &'static Struct) -> Result<Self::Object, CodecError> {
        let class = self.layouts.class(schema);
        Ok((class.allocate(self.py)?.unbind(), class))
    }

    #[inline]
    fn set(&mut self, (object, class): &mut Self::Object, slot: usize, value: Self::Value) {
        class.set(object.bind(self.py), slot, value);
    }

    fn finish_object(&mut self, (object, _): Self::Object) -> Self::Value {
        object.into_bound(self.py)
    }

    fn default(&mut self, schema: &'static Struct, slot: usize) -> Result<Self::Value, CodecError> {
        Ok(self.layouts.default(self.py, schema, slot)?)
    }

    fn list(&mut self, count: usize) -> Result<Self::List, CodecError> {
        Ok(Vec::with_capacity(count.min(1024)))
    }

    #[inline]
    fn push(&mut self, list: &mut Self::List, value: Self::Value) -> Result<(), CodecError> {
        list.push(value.unbind());
        Ok(())
    }

    fn finish_list(&mut self, list: Self::List) -> Result<Self::Value, CodecError> {
        Ok(PyList::new(self.py, list)?.into_any())
    }

    fn null(&mut self) -> Self::Value {
        self.py.None().into_bound(self.py)
    }

    fn boolean(&mut self, value: bool) -> Self::Value {
        PyBool::new(self.py, value).to_owned().into_any()
    }

    #[inline]
    fn integer(&mut self, value: i64) -> Result<Self::Value, CodecError> {
        let Ok(value) = value.into_pyobject(self.py);
        Ok(value.into_any())
    }

    fn float(&mut self, value: f64) -> Result<Self::Value, CodecError> {
        Ok(PyFloat::new(self.py, value).into_any())
    }

    #[inline]
    fn string(&mut self, bytes: &[u8]) -> Result<Self::Value, CodecError> {
        let text = PyString::from_bytes(self.py, bytes);
        // Java's decoder in Kafka replaces bytes that are not UTF-8.
        let text = text.unwrap_or_else(|_| PyString::new(self.py, &String::from_utf8_lossy(bytes)));
        Ok(text.into_any())
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Result<Self::Value, CodecError> {
        Ok(PyBytes::new(self.py, bytes).into_any())
    }
}

/// Reads objects of a message's classes. Nothing here runs Python code, so that borrowed references
/// stay valid while a message is encoded.
#[derive(Debug)]
pub struct Slots<'a, 'py> {
    layouts: &'static Layouts,
    life: std::marker::PhantomData<Borrowed<'a, 'py, PyAny>>,
}

impl Slots<'_, '_> {
    /// Uses the classes in `layouts`.
    pub fn new(layouts: &'static Layouts) -> Self {
        Slots { layouts, life: std::marker::PhantomData }
    }
}

#[cold]
fn wrong_type(field: &'static Field, wanted: &str, value: Borrowed<'_, '_, PyAny>) -> CodecError {
    let found = value.get_type();
    PyTypeError::new_err(format!("{}: expected {wanted}, got {found}", field.name)).into()
}

impl<'a, 'py> Source for Slots<'a, 'py> {
    type Value = Borrowed<'a, 'py, PyAny>;
    type Items = Items<'a, 'py>;
    type Error = CodecError;

    #[inline]
    fn check_object(&self, value: Self::Value, schema: &'static Struct) -> Result<(), CodecError> {
        if self.layouts.class(schema).is_class_of(value) {
            return Ok(());
        }
        let found = value.get_type();
        Err(PyTypeError::new_err(format!("expected {}, got {found}", schema.name)).into())
    }

    #[inline]
    fn get(
        &self,
        object: Self::Value,
        schema: &'static Struct,
        slot: usize,
    ) -> Result<Self::Value, CodecError> {
        self.layouts.class(schema).get(object, slot).ok_or_else(|| {
            let (name, field) = (schema.name, schema.fields[slot].name);
            PyAttributeError::new_err(format!("{name}.{field} was deleted")).into()
        })
    }

    #[inline]
    fn is_null(&self, value: Self::Value) -> bool {
        value.is_none()
    }

    fn boolean(&self, value: Self::Value, field: &'static Field) -> Result<bool, CodecError> {
        match value.cast::<PyBool>() {
            Ok(value) => Ok(value.is_true()),
            Err(_) => Err(wrong_type(field, "bool", value)),
        }
    }

    #[inline]
    fn integer(
        &self,
        value: Self::Value,
        field: &'static Field,
        low: i64,
        high: i64,
    ) -> Result<i64, CodecError> {
        // Only ints are accepted: other types might run their `__index__`.
        if !value.is_instance_of::<PyInt>() {
            return Err(wrong_type(field, "int", value));
        }
        match value.extract::<i64>() {
            Ok(number) if low <= number && number <= high => Ok(number),
            _ => Err(CodecError::Protocol(format!("{}: out of range", field.name))),
        }
    }

    fn float(&self, value: Self::Value, field: &'static Field) -> Result<f64, CodecError> {
        match value.cast::<PyFloat>() {
            Ok(value) => Ok(value.value()),
            // Converted through i64, because a subclass of int may have a `__float__` method.
            Err(_) => match self.integer(value, field, i64::MIN, i64::MAX) {
                Ok(number) => Ok(number as f64),
                Err(_) => Err(wrong_type(field, "float", value)),
            },
        }
    }

    #[inline]
    fn string(&self, value: Self::Value, field: &'static Field) -> Result<&str, CodecError> {
        match value.extract::<&str>() {
            Ok(text) => Ok(text),
            Err(error) if value.is_instance_of::<PyString>() => Err(error.into()),
            Err(_) => Err(wrong_type(field, "str", value)),
        }
    }

    #[inline]
    fn bytes(&self, value: Self::Value, field: &'static Field) -> Result<&[u8], CodecError> {
        value.extract::<&[u8]>().map_err(|_| wrong_type(field, "bytes", value))
    }

    #[inline]
    fn items(&self, value: Self::Value, field: &'static Field) -> Result<Self::Items, CodecError> {
        Items::of(value).ok_or_else(|| wrong_type(field, "list", value))
    }
}
