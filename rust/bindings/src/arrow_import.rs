//! Imports Arrow columns from Python: the C data interface in capsules, borrowed for the duration
//! of a call.
//!
//! The data is validated as far as the interface allows: lengths, offsets, the number of buffers
//! and null pointers here, the contents of offsets and views by `pykafka_record::kernels`. The
//! interface does not contain the sizes of buffers: the unsafe blocks below rely on the producer's
//! claim that the buffers hold all rows. (`arrow_array::ffi` panics on much of the data that is
//! rejected here, and would copy buffers that are not aligned.)

#![expect(unsafe_code, reason = "the C data interface is made of pointers")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{NonNull, null_mut};
use std::slice::from_raw_parts;

use pykafka_record::kernels::{Column, Validity, Values};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// `ArrowSchema` of the interface.
#[repr(C)]
struct CSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut CSchema,
    dictionary: *mut CSchema,
    release: Option<unsafe extern "C" fn(*mut CSchema)>,
    private_data: *mut c_void,
}

/// `ArrowArray` of the interface.
#[repr(C)]
struct CArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut CArray,
    dictionary: *mut CArray,
    release: Option<unsafe extern "C" fn(*mut CArray)>,
    private_data: *mut c_void,
}

impl Drop for CArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the array is ours, and is released once: this struct holds the only copy of
            // its callback.
            unsafe { release(self) }
        }
    }
}

/// An array that was moved out of its capsule; its buffers live as long as this does.
pub(crate) struct ImportedArray {
    array: CArray,
    layout: Layout,
    /// Rows.
    length: usize,
    /// Number of rows before the first one in each buffer.
    offset: usize,
}

// SAFETY: the interface lets an array be released by any thread, and it is only read until then.
unsafe impl Send for ImportedArray {}
// SAFETY: as above.
unsafe impl Sync for ImportedArray {}

/// Memory layout of a type's values.
#[derive(Clone, Copy)]
enum Layout {
    Offsets32,
    Offsets64,
    Views,
    Fixed(usize),
    Number(usize),
}

/// The types that a kernel accepts besides strings, binaries, `int32` and `int64`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Types {
    /// No others: each type has one Kafka serializer.
    Keys,
    /// Also all integers, dates, times of day and timestamps.
    Ids,
}

impl ImportedArray {
    /// Call `object.__arrow_c_array__` and move the array out of its capsule.
    pub(crate) fn new(object: &Bound<'_, PyAny>, types: Types) -> PyResult<Self> {
        let capsules = object.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
        let schema: NonNull<CSchema> = schema.pointer_checked(Some(c"arrow_schema"))?.cast();
        let array: NonNull<CArray> = array.pointer_checked(Some(c"arrow_array"))?.cast();
        // SAFETY: capsules of these names hold these structs, and `capsules` keeps them alive.
        let layout = unsafe { layout_of(schema.as_ref(), types)? };
        // SAFETY: see above; an array without `release` was moved away.
        let array = unsafe { array.replace(RELEASED) };
        if array.release.is_none() {
            return Err(PyValueError::new_err("the Arrow array was released already"));
        }
        Self::check(array, layout)
    }

    fn check(array: CArray, layout: Layout) -> PyResult<Self> {
        let inconsistent = |what| Err(PyValueError::new_err(format!("an Arrow array with {what}")));
        let (Ok(length), Ok(offset)) =
            (usize::try_from(array.length), usize::try_from(array.offset))
        else {
            return inconsistent("a negative length or offset");
        };
        // Limits all positions below to the range of pointer offsets.
        if length.checked_add(offset).is_none_or(|rows| rows >= isize::MAX as usize / 4096) {
            return inconsistent("a length that no memory has");
        }
        let is_complete = match layout {
            Layout::Offsets32 | Layout::Offsets64 => array.n_buffers == 3,
            Layout::Views => (3..i64::from(i32::MAX)).contains(&array.n_buffers),
            Layout::Fixed(_) | Layout::Number(_) => array.n_buffers == 2,
        };
        if !is_complete || array.buffers.is_null() {
            return inconsistent("another number of buffers than its type has");
        }
        Ok(Self { array, layout, length, offset })
    }

    /// The column, borrowed from the producer's memory.
    pub(crate) fn column(&self) -> PyResult<Column<'_>> {
        let values = match self.layout {
            _ if self.length == 0 => Values::Fixed(0, &[]),
            Layout::Offsets32 => {
                let offsets: &[[u8; 4]] = self.rows(1, self.length + 1)?;
                Values::Offsets32(offsets, self.data(last_of(offsets, read_i32))?)
            }
            Layout::Offsets64 => {
                let offsets: &[[u8; 8]] = self.rows(1, self.length + 1)?;
                Values::Offsets64(offsets, self.data(last_of(offsets, read_i64))?)
            }
            Layout::Views => Values::Views(self.rows(1, self.length)?, self.buffers_of_views()?),
            Layout::Fixed(width) => Values::Fixed(width, self.fixed(width)?),
            Layout::Number(width) => Values::Number(width, self.fixed(width)?),
        };
        Column::new(self.length, self.validity()?, values).map_err(value_error)
    }

    fn validity(&self) -> PyResult<Option<Validity<'_>>> {
        let bits = self.pointer(0);
        if bits.is_null() || self.array.null_count == 0 || self.length == 0 {
            return Ok(None);
        }
        let size = (self.offset + self.length).div_ceil(8);
        // SAFETY: the bitmap covers all rows and the array's offset before them.
        let bits = unsafe { from_raw_parts(bits, size) };
        Validity::new(bits, self.offset, self.length).map(Some).map_err(value_error)
    }

    /// `count` items of a buffer, from the array's offset on.
    fn rows<const N: usize>(&self, buffer: usize, count: usize) -> PyResult<&[[u8; N]]> {
        let start = self.filled(buffer)?.cast::<[u8; N]>();
        // SAFETY: the producer guarantees that the buffer holds an item for each row and for the
        // rows before them; arrays of bytes have no alignment.
        Ok(unsafe { from_raw_parts(start.add(self.offset), count) })
    }

    fn fixed(&self, width: usize) -> PyResult<&[u8]> {
        let start = self.filled(1)?;
        // SAFETY: as in `rows`; `check` bounds the rows and `layout_of` the width.
        Ok(unsafe { from_raw_parts(start.add(self.offset * width), self.length * width) })
    }

    /// The data of a type with offsets; the last offset is its size.
    fn data(&self, size: i64) -> PyResult<&[u8]> {
        self.sized(2, size)
    }

    fn buffers_of_views(&self) -> PyResult<Vec<&[u8]>> {
        let count = self.array.n_buffers as usize - 3;
        if count == 0 {
            return Ok(Vec::new());
        }
        let sizes = self.filled(count + 2)?.cast::<[u8; 8]>();
        // SAFETY: the last buffer holds the size of each buffer of data.
        let sizes = unsafe { from_raw_parts(sizes, count) };
        sizes.iter().enumerate().map(|(at, size)| self.sized(at + 2, read_i64(*size))).collect()
    }

    fn sized(&self, buffer: usize, size: i64) -> PyResult<&[u8]> {
        match isize::try_from(size) {
            Ok(0) => Ok(&[]),
            // SAFETY: the buffer has the size that the producer wrote for it.
            Ok(1..) => Ok(unsafe { from_raw_parts(self.filled(buffer)?, size as usize) }),
            _ => Err(PyValueError::new_err("an Arrow array with a buffer of negative size")),
        }
    }

    fn filled(&self, buffer: usize) -> PyResult<*const u8> {
        let pointer = self.pointer(buffer);
        if pointer.is_null() {
            let text = format!("an Arrow array whose buffer {buffer} is missing");
            return Err(PyValueError::new_err(text));
        }
        Ok(pointer)
    }

    fn pointer(&self, buffer: usize) -> *const u8 {
        // SAFETY: `check` and `column` ensure that every caller's number is below `n_buffers`.
        unsafe { *self.array.buffers.add(buffer) }.cast()
    }
}

/// Content of a capsule after its array was moved away.
const RELEASED: CArray = CArray {
    length: 0,
    null_count: 0,
    offset: 0,
    n_buffers: 0,
    n_children: 0,
    buffers: null_mut(),
    children: null_mut(),
    dictionary: null_mut(),
    release: None,
    private_data: null_mut(),
};

/// The layout of a schema's type.
///
/// # Safety
/// `schema.format` is null or a C string, as the interface requires.
unsafe fn layout_of(schema: &CSchema, types: Types) -> PyResult<Layout> {
    if schema.release.is_none() || schema.format.is_null() {
        return Err(PyValueError::new_err("the Arrow schema was released already"));
    }
    // SAFETY: the caller guarantees this.
    let format = unsafe { CStr::from_ptr(schema.format) }.to_bytes();
    let layout = match format {
        _ if !schema.dictionary.is_null() || schema.n_children != 0 => None,
        b"u" | b"z" => Some(Layout::Offsets32),
        b"U" | b"Z" => Some(Layout::Offsets64),
        b"vu" | b"vz" => Some(Layout::Views),
        b"i" => Some(Layout::Number(4)),
        b"l" => Some(Layout::Number(8)),
        [b'w', b':', width @ ..] => width_of(width).map(Layout::Fixed),
        _ if types == Types::Ids => number_width(format).map(Layout::Number),
        _ => None,
    };
    layout.ok_or_else(|| {
        let more = if types == Types::Ids { ", an integer, a date or a timestamp" } else { "" };
        PyTypeError::new_err(format!(
            "a column of Arrow type {} cannot be hashed; cast it to string, binary, int32 or int64{more}",
            type_name(schema, format)
        ))
    })
}

fn width_of(digits: &[u8]) -> Option<usize> {
    let width: u16 = str::from_utf8(digits).ok()?.parse().ok()?;
    (width <= 4096).then_some(width.into())
}

fn number_width(format: &[u8]) -> Option<usize> {
    match format {
        b"c" | b"C" => Some(1),
        b"s" | b"S" => Some(2),
        b"I" | b"tdD" | b"tts" | b"ttm" => Some(4),
        b"L" | b"tdm" | b"ttu" | b"ttn" | [b't', b's', ..] => Some(8),
        _ => None,
    }
}

fn type_name(schema: &CSchema, format: &[u8]) -> String {
    let name = match format {
        _ if !schema.dictionary.is_null() => "dictionary",
        b"n" => "null",
        b"b" => "bool",
        b"c" => "int8",
        b"C" => "uint8",
        b"s" => "int16",
        b"S" => "uint16",
        b"I" => "uint32",
        b"L" => "uint64",
        b"f" => "float",
        b"g" => "double",
        b"+s" => "struct",
        b"+l" | b"+L" => "list",
        [b'd', b':', ..] => "decimal",
        [b't', b'd', ..] => "date",
        [b't', b's', ..] => "timestamp",
        _ => return format!("{:?}", String::from_utf8_lossy(format)),
    };
    name.to_owned()
}

fn last_of<const N: usize>(offsets: &[[u8; N]], read: fn([u8; N]) -> i64) -> i64 {
    offsets.last().map_or(0, |last| read(*last))
}

#[expect(clippy::host_endian_bytes, reason = "Arrow's numbers have the byte order of the machine")]
fn read_i32(bytes: [u8; 4]) -> i64 {
    i32::from_ne_bytes(bytes).into()
}

#[expect(clippy::host_endian_bytes, reason = "Arrow's numbers have the byte order of the machine")]
fn read_i64(bytes: [u8; 8]) -> i64 {
    i64::from_ne_bytes(bytes)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
pub(crate) fn value_error(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}
