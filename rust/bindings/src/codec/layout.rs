//! The Python classes of a message, found once, with the places of their slots and their defaults.

use std::collections::HashMap;

use once_cell::race::OnceBox;
use pykafka_forks::{Mutex, PerProcess};
use pykafka_wire::schema::{Default, Field, Message, Struct, Type, message_by_name, messages};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyList, PyString, PyType};

use super::slots::SlotClass;

/// The classes of a message and of its structs, in the order of [`Message::structs`].
#[derive(Debug)]
pub struct Layouts(Vec<Layout>);

#[derive(Debug)]
struct Layout {
    class: SlotClass,
    defaults: Vec<DefaultValue>,
}

#[derive(Debug)]
enum DefaultValue {
    /// Immutable, shared by all objects.
    Shared(Py<PyAny>),
    /// A new empty list.
    List,
    /// A new struct of defaults.
    Struct(&'static Struct),
}

/// By [`Message::index`].
static LAYOUTS: OnceBox<Vec<OnceBox<Layouts>>> = OnceBox::new();

/// Messages by the address of their class.
static MESSAGES: PerProcess<Mutex<HashMap<usize, &'static Message>>> =
    PerProcess::new(Mutex::default);

/// The layouts of a message; its classes are made now if nothing has named them yet.
pub fn layouts_of(py: Python<'_>, message: &'static Message) -> PyResult<&'static Layouts> {
    let all = LAYOUTS.get_or_init(|| Box::new(messages().iter().map(|_| OnceBox::new()).collect()));
    all[message.index].get_or_try_init(|| Layouts::new(py, message).map(Box::new))
}

/// The message whose class `object` has; a `TypeError` for any other class.
pub fn message_of(object: &Bound<'_, PyAny>) -> PyResult<&'static Message> {
    let class = object.get_type();
    let address = class.as_ptr().addr();
    let messages = MESSAGES.get();
    if let Some(message) = messages.lock().get(&address).copied() {
        return Ok(message);
    }
    let no_message = || PyTypeError::new_err(format!("{class} is not a message"));
    let message = message_by_name(&class.name()?.to_cow()?).ok_or_else(no_message)?;
    if !layouts_of(object.py(), message)?.0[0].class.class().is(&class) {
        return Err(no_message());
    }
    messages.lock().insert(address, message);
    Ok(message)
}

impl Layouts {
    fn new(py: Python<'_>, message: &'static Message) -> PyResult<Layouts> {
        let classes = py.import("pykafka_core.protocol.messages")?;
        let outer = classes.getattr(message.name)?.cast_into::<PyType>()?;
        let layout = |schema: &&'static Struct| {
            let class = match schema.index {
                0 => outer.clone(),
                _ => outer.getattr(schema.name)?.cast_into::<PyType>()?,
            };
            Layout::new(&class, schema)
        };
        message.structs.iter().map(layout).collect::<PyResult<_>>().map(Layouts)
    }

    /// The class of a struct.
    #[inline]
    pub fn class(&self, schema: &Struct) -> &SlotClass {
        &self.0[schema.index].class
    }

    /// The default of a field, new if it can be changed.
    #[inline]
    pub fn default<'py>(
        &self,
        py: Python<'py>,
        schema: &Struct,
        slot: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.0[schema.index].defaults[slot] {
            DefaultValue::Shared(value) => Ok(value.bind(py).clone()),
            DefaultValue::List => Ok(PyList::empty(py).into_any()),
            DefaultValue::Struct(schema) => self.default_struct(py, schema),
        }
    }

    fn default_struct<'py>(&self, py: Python<'py>, schema: &Struct) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class(schema);
        let object = class.allocate(py)?;
        for slot in 0..schema.fields.len() {
            class.set(&object, slot, self.default(py, schema, slot)?);
        }
        Ok(object)
    }
}

impl Layout {
    fn new(class: &Bound<'_, PyType>, schema: &'static Struct) -> PyResult<Layout> {
        let class_py = class.py();
        let defaults = schema.fields.iter().map(|field| DefaultValue::of(class_py, field));
        let defaults = defaults.collect::<PyResult<_>>()?;
        let class = SlotClass::new(class, schema.fields.iter().map(|field| field.name))?;
        Ok(Layout { class, defaults })
    }
}

impl DefaultValue {
    fn of(py: Python<'_>, field: &Field) -> PyResult<DefaultValue> {
        Ok(match (field.default, field.is_list, field.kind) {
            (Default::Empty, true, _) => DefaultValue::List,
            (Default::Empty, _, Type::Of(schema)) => DefaultValue::Struct(schema),
            _ => DefaultValue::Shared(shared_default(py, field)?.unbind()),
        })
    }
}

/// The default of a field that is neither list nor struct, or is null.
pub fn shared_default<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyAny>> {
    let number = match field.default {
        Default::Null => return Ok(py.None().into_bound(py)),
        Default::Int(number) => number,
        Default::Empty => 0,
    };
    Ok(match field.kind {
        Type::Bool => PyBool::new(py, number != 0).to_owned().into_any(),
        Type::Float64 => PyFloat::new(py, 0.0).into_any(),
        Type::String => PyString::new(py, "").into_any(),
        Type::Uuid => PyBytes::new(py, &[0; 16]).into_any(),
        Type::Bytes | Type::Records => PyBytes::new(py, &[]).into_any(),
        _ => number.into_pyobject(py)?.into_any(),
    })
}
