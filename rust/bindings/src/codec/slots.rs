//! Accesses the slots of Python objects by their memory offsets, without calls into Python.
//!
//! A class with `__slots__` has a member descriptor for each slot, which contains the slot's offset
//! in an object. A direct access takes a few nanoseconds, an attribute by name fifty, which is too
//! slow for the codec.
//!
//! Requirements of the unsafe blocks: an [`Offset`] is only created from a member descriptor of
//! type `T_OBJECT_EX` of the same class with which it is used ([`SlotClass::new`] checks it,
//! [`SlotClass`] keeps both together), slot classes have no subclasses that move slots (Python
//! never moves them), and objects are only accessed with the GIL held.

#![expect(unsafe_code, reason = "slots are read and written by their offset")]

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};

/// Offset of a slot in an object of its class, in bytes.
#[derive(Debug, Clone, Copy)]
struct Offset(usize);

/// A class with the offsets of its slots.
#[derive(Debug)]
pub struct SlotClass {
    class: Py<PyType>,
    offsets: Box<[Offset]>,
}

impl SlotClass {
    /// Finds the slots with these names; returns a `TypeError` if one is missing.
    pub fn new<'n>(
        class: &Bound<'_, PyType>,
        names: impl Iterator<Item = &'n str>,
    ) -> PyResult<SlotClass> {
        let offsets = names.map(|name| offset_of(class, name)).collect::<PyResult<_>>()?;
        Ok(SlotClass { class: class.clone().unbind(), offsets })
    }

    /// Whether `object` is an instance of exactly this class.
    #[inline]
    pub fn is_class_of(&self, object: Borrowed<'_, '_, PyAny>) -> bool {
        object.get_type_ptr() == self.class.as_ptr().cast()
    }

    /// The class whose slots these are.
    pub fn class(&self) -> &Py<PyType> {
        &self.class
    }

    /// Creates an object with empty slots: `__init__` does not run.
    #[inline]
    pub fn allocate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the class is a heap type created by `type`, whose objects come from the generic
        // allocator; it returns a new reference with zeroed slots, or null with an error set.
        unsafe {
            let object = ffi::PyType_GenericAlloc(self.class.as_ptr().cast(), 0);
            Bound::from_owned_ptr_or_err(py, object)
        }
    }

    /// Sets a slot of an object that [`SlotClass::allocate`] created.
    #[inline]
    pub fn set(&self, object: &Bound<'_, PyAny>, slot: usize, value: Bound<'_, PyAny>) {
        debug_assert!(self.is_class_of(object.as_borrowed()));
        let place = self.place(object.as_borrowed(), slot);
        // SAFETY: the place is a slot of this object (see the module); its previous content, null
        // or the value of a field that occurred twice, is released.
        unsafe {
            let before = place.replace(value.into_ptr());
            ffi::Py_XDECREF(before);
        }
    }

    /// The content of a slot; `None` if the slot is empty. The reference is valid until Python code
    /// runs, which could change the slot; the codec runs none while it encodes.
    #[inline]
    pub fn get<'a, 'py>(
        &self,
        object: Borrowed<'a, 'py, PyAny>,
        slot: usize,
    ) -> Option<Borrowed<'a, 'py, PyAny>> {
        debug_assert!(self.is_class_of(object));
        let place = self.place(object, slot);
        // SAFETY: see `set`; a slot that is not empty holds a live object.
        unsafe {
            let value = place.read();
            (!value.is_null()).then(|| Borrowed::from_ptr(object.py(), value))
        }
    }

    #[inline]
    fn place(&self, object: Borrowed<'_, '_, PyAny>, slot: usize) -> *mut *mut ffi::PyObject {
        let Offset(offset) = self.offsets[slot];
        // SAFETY: the offset is within objects of this class.
        unsafe { object.as_ptr().cast::<u8>().add(offset).cast() }
    }
}

fn offset_of(class: &Bound<'_, PyType>, name: &str) -> PyResult<Offset> {
    let descriptor = class.getattr(name)?;
    let wrong = || PyTypeError::new_err(format!("{class} has no slot {name}"));
    // SAFETY: the descriptor's type guarantees that it is a `PyMemberDescrObject`; its definition
    // lives as long as the class. It must be of this class and hold objects.
    unsafe {
        if ffi::Py_TYPE(descriptor.as_ptr()) != &raw mut ffi::PyMemberDescr_Type {
            return Err(wrong());
        }
        let descriptor = descriptor.as_ptr().cast::<ffi::PyMemberDescrObject>();
        let member = (*descriptor).d_member;
        if (*descriptor).d_common.d_type != class.as_type_ptr()
            || (*member).type_code != ffi::Py_T_OBJECT_EX
        {
            return Err(wrong());
        }
        usize::try_from((*member).offset).map(Offset).map_err(|_| wrong())
    }
}

/// The elements of a list or a tuple, borrowed. Valid until Python code runs.
#[derive(Debug)]
pub struct Items<'a, 'py> {
    sequence: Borrowed<'a, 'py, PyAny>,
    is_list: bool,
    index: usize,
    length: usize,
}

impl<'a, 'py> Items<'a, 'py> {
    /// Returns `None` if `sequence` is neither a list nor a tuple.
    pub fn of(sequence: Borrowed<'a, 'py, PyAny>) -> Option<Items<'a, 'py>> {
        if let Ok(list) = sequence.cast::<PyList>() {
            return Some(Items { sequence, is_list: true, index: 0, length: list.len() });
        }
        let tuple = sequence.cast::<PyTuple>().ok()?;
        Some(Items { sequence, is_list: false, index: 0, length: tuple.len() })
    }

    /// The elements from `index` on.
    pub fn from(self, index: usize) -> Items<'a, 'py> {
        Items { index: index.min(self.length), ..self }
    }
}

impl<'a, 'py> Iterator for Items<'a, 'py> {
    type Item = Borrowed<'a, 'py, PyAny>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index == self.length {
            return None;
        }
        let index = self.index as ffi::Py_ssize_t;
        self.index += 1;
        let sequence = self.sequence.as_ptr();
        // SAFETY: `of` checked that the sequence is a list or a tuple, and its length has not
        // changed since, because no Python code runs in between.
        unsafe {
            let item = if self.is_list {
                ffi::PyList_GET_ITEM(sequence, index)
            } else {
                ffi::PyTuple_GET_ITEM(sequence, index)
            };
            Some(Borrowed::from_ptr(self.sequence.py(), item))
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.length - self.index, Some(self.length - self.index))
    }
}

impl ExactSizeIterator for Items<'_, '_> {}
