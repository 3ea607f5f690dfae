//! Decodes and encodes messages in parts, between which Python's control thread does other work.

use std::mem;

use bytes::Bytes;
use pykafka_wire::codec::{self, Decoding, Source};
use pykafka_wire::plan::{Operation, Plan, Step};
use pykafka_wire::schema::{Field, Type, request_of};
use pykafka_wire::{ApiKey, Progress, Reader, Writer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::errors::{ProtocolError, unknown_api, unsupported};
use super::layout::{Layouts, layouts_of, message_of};
use super::objects::{CodecError, Objects, OpenList, OpenObject, Slots};
use super::slots::Items;

/// Maximum elements of all lists of one request for Python. A request that is decoded in parts is
/// freed at once, which takes some 0.2 microseconds per element.
const REQUEST_ELEMENTS_MAX: usize = 100_000;

/// A part of a response ends after the field that exceeds this size, so that a response of few
/// large fields reserves its memory like one of many small fields.
const PART_BYTES: usize = 16 << 10;

#[cold]
fn too_many_elements() -> PyErr {
    ProtocolError::new_err(format!("more than {REQUEST_ELEMENTS_MAX} elements in one request"))
}

#[pyclass(module = "pykafka_core._core")]
pub(super) struct RequestDecoder {
    body: Py<PyBytes>,
    plan: &'static Plan,
    layouts: &'static Layouts,
    progress: Progress,
    decoding: Decoding<OpenObject, OpenList>,
}

#[pymethods]
impl RequestDecoder {
    #[new]
    fn new(
        py: Python<'_>,
        api_key: i16,
        version: i16,
        body: Py<PyBytes>,
    ) -> PyResult<RequestDecoder> {
        let message = request_of(ApiKey(api_key)).ok_or_else(|| unknown_api(api_key))?;
        let plan = message.plan(version).map_err(|_| unsupported(message, version))?;
        let layouts = layouts_of(py, message)?;
        let decoding = Decoding::new(plan, &mut Objects::new(py, layouts))?;
        Ok(RequestDecoder { body, plan, layouts, progress: Progress::default(), decoding })
    }

    fn read<'py>(
        &mut self,
        py: Python<'py>,
        fields_max: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let body = self.body.as_bytes(py);
        let (version, flexible) = (self.plan.version, self.plan.flexible);
        let mut reader = Reader::resume(body, version, flexible, self.progress);
        let mut objects = Objects::new(py, self.layouts);
        let message = self.decoding.advance(&mut reader, &mut objects, fields_max)?;
        self.progress = reader.progress();
        if self.progress.objects() > REQUEST_ELEMENTS_MAX {
            return Err(too_many_elements());
        }
        Ok(message)
    }
}

#[pyclass(module = "pykafka_core._core")]
pub(super) struct MessageEncoder {
    plan: &'static Plan,
    layouts: &'static Layouts,
    open: Vec<Writing>,
    out: Vec<u8>,
    /// Bytes of the parts that were measured.
    measured: usize,
}

/// An incomplete part: the recursion of [`codec::encode`] as a stack. It holds a reference to each
/// object, because Python code runs between two parts.
enum Writing {
    Struct { plan: &'static Plan, next: usize, object: Py<PyAny> },
    List { elements: Elements, field: &'static Field, next: usize, length: usize, list: Py<PyAny> },
}

#[derive(Clone, Copy)]
enum Elements {
    Primitives(Type),
    Structs(&'static Plan),
}

enum Wrote {
    One,
    All,
    Opened(Writing),
}

#[pymethods]
impl MessageEncoder {
    #[new]
    fn new(message: &Bound<'_, PyAny>, version: i16) -> PyResult<MessageEncoder> {
        let schema = message_of(message)?;
        let plan = schema.plan(version).map_err(|_| unsupported(schema, version))?;
        let layouts = layouts_of(message.py(), schema)?;
        let open = vec![open_struct(plan, message.as_borrowed(), &Slots::new(layouts))?];
        Ok(MessageEncoder { plan, layouts, open, out: Vec::with_capacity(256), measured: 0 })
    }

    fn write(&mut self, py: Python<'_>, fields_max: usize) -> PyResult<Option<EncodedMessage>> {
        Ok(self.advance(py, fields_max)?.then(|| {
            let mut bytes = mem::take(&mut self.out);
            bytes.shrink_to_fit();
            EncodedMessage { bytes: bytes.into() }
        }))
    }

    fn measure(&mut self, py: Python<'_>, fields_max: usize) -> PyResult<Option<usize>> {
        let is_complete = self.advance(py, fields_max)?;
        self.measured += self.out.len();
        self.out.clear();
        Ok(is_complete.then_some(self.measured))
    }

    #[getter]
    fn written(&self) -> usize {
        self.out.len()
    }
}

impl MessageEncoder {
    /// Writes up to `fields_max` fields and list elements, fewer if they are large; returns whether
    /// the message is complete.
    fn advance(&mut self, py: Python<'_>, fields_max: usize) -> PyResult<bool> {
        let full = self.out.len() + PART_BYTES;
        for _ in 0..fields_max {
            let Some(writing) = self.open.last_mut().filter(|_| self.out.len() <= full) else {
                break;
            };
            let mut writer = Writer::new(&mut self.out, self.plan.version, self.plan.flexible);
            match writing.write_one(py, self.layouts, &mut writer)? {
                Wrote::One => {}
                Wrote::All => drop(self.open.pop()),
                Wrote::Opened(inner) => self.open.push(inner),
            }
        }
        Ok(self.open.is_empty())
    }
}

/// The output of an encoder. The core uses it without a copy, because copying 30 MB takes 30
/// milliseconds.
#[pyclass(frozen, module = "pykafka_core._core")]
pub(crate) struct EncodedMessage {
    pub(crate) bytes: Bytes,
}

#[pymethods]
impl EncodedMessage {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }
}

impl Writing {
    fn write_one(
        &mut self,
        py: Python<'_>,
        layouts: &'static Layouts,
        writer: &mut Writer<'_, Vec<u8>>,
    ) -> Result<Wrote, CodecError> {
        let source = Slots::new(layouts);
        match self {
            Writing::Struct { plan, next, object } => {
                let object = object.bind_borrowed(py);
                let Some(step) = plan.plain.get(*next) else {
                    if plan.flexible {
                        codec::write_tagged(plan, object, &source, writer)?;
                    }
                    return Ok(Wrote::All);
                };
                *next += 1;
                let value = source.get(object, plan.schema, step.slot)?;
                write_or_open(step, value, &source, writer)
            }
            Writing::List { next, length, .. } if next == length => Ok(Wrote::All),
            Writing::List { elements, field, next, list, .. } => {
                let items = Items::of(list.bind_borrowed(py)).map(|items| items.from(*next));
                let item = items.and_then(|mut items| items.next()).ok_or_else(shortened)?;
                *next += 1;
                match elements {
                    Elements::Primitives(kind) => {
                        codec::write_primitive(*kind, field, item, &source, writer)?;
                        Ok(Wrote::One)
                    }
                    Elements::Structs(plan) => open_struct(plan, item, &source).map(Wrote::Opened),
                }
            }
        }
    }
}

fn shortened() -> CodecError {
    CodecError::Python(ProtocolError::new_err("a list became shorter while it was written"))
}

fn open_struct<'a, 'py>(
    plan: &'static Plan,
    object: Borrowed<'a, 'py, PyAny>,
    source: &Slots<'a, 'py>,
) -> Result<Writing, CodecError> {
    codec::check_struct(plan, object, source)?;
    Ok(Writing::Struct { plan, next: 0, object: object.to_owned().unbind() })
}

/// Writes a plain field, or the prefix of a field with parts.
fn write_or_open<'a, 'py>(
    step: &'static Step,
    value: Borrowed<'a, 'py, PyAny>,
    source: &Slots<'a, 'py>,
    writer: &mut Writer<'_, Vec<u8>>,
) -> Result<Wrote, CodecError> {
    let elements = match &step.operation {
        Operation::List(kind) if !value.is_none() => Elements::Primitives(*kind),
        Operation::Structs(plan) if !value.is_none() => Elements::Structs(plan),
        Operation::Struct(plan) if !value.is_none() => {
            if step.nullable {
                writer.put(&[1]);
            }
            return open_struct(plan, value, source).map(Wrote::Opened);
        }
        _ => {
            codec::write_field(step, false, value, source, writer)?;
            return Ok(Wrote::One);
        }
    };
    let length = source.items(value, step.field)?.len();
    writer.length(Some(length))?;
    let list = value.to_owned().unbind();
    Ok(Wrote::Opened(Writing::List { elements, field: step.field, next: 0, length, list }))
}
