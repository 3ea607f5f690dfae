//! Incremental decoding, so that a message of a million fields need not be read at once.
//!
//! The codec's recursion is an explicit stack, with one entry for each incomplete structure. A part
//! is a number of fields and elements. The tagged fields of a struct are read at once; each counts,
//! including unknown ones.

use super::decode::{Builder, finish_struct, is_struct_null, read_element, read_field, read_null};
use crate::Reader;
use crate::plan::{Operation, Plan, Step};
use crate::schema::Type;

/// Type of a list's elements.
#[derive(Debug, Clone, Copy)]
enum Elements {
    Primitives(Type),
    Structs(&'static Plan),
}

/// A partially read message; `O` and `L` are a [`Builder`]'s objects and lists.
#[derive(Debug)]
pub struct Decoding<O, L> {
    open: Vec<Reading<O, L>>,
}

#[derive(Debug)]
enum Reading<O, L> {
    Struct { plan: &'static Plan, next: usize, object: O },
    List { elements: Elements, left: usize, list: L },
}

enum Begun<V, O, L> {
    Whole(V),
    Open(Reading<O, L>),
}

impl<O, L> Decoding<O, L> {
    /// Starts a message of `plan`.
    pub fn new<'a, B>(plan: &'static Plan, builder: &mut B) -> Result<Decoding<O, L>, B::Error>
    where
        B: Builder<'a, Object = O, List = L>,
    {
        Ok(Decoding { open: vec![begin_struct(plan, builder)?] })
    }

    /// Reads up to `count` fields and elements; tagged fields of the last struct may exceed it.
    /// Returns the message once it is complete. It must not be called after that or after an error.
    pub fn advance<'a, B>(
        &mut self,
        reader: &mut Reader<'a>,
        builder: &mut B,
        count: usize,
    ) -> Result<Option<B::Value>, B::Error>
    where
        B: Builder<'a, Object = O, List = L>,
    {
        let tagged_before = reader.tagged_fields_read();
        let mut steps = 0;
        while steps + (reader.tagged_fields_read() - tagged_before) < count {
            steps += 1;
            let Some(value) = self.read_one(reader, builder)? else { continue };
            match self.open.last_mut() {
                None => return Ok(Some(value)),
                Some(Reading::Struct { plan, next, object }) => {
                    builder.set(object, plan.plain[*next].slot, value);
                    *next += 1;
                }
                Some(Reading::List { list, .. }) => builder.push(list, value)?,
            }
        }
        Ok(None)
    }

    /// Reads a complete value of the open structure; `None` if a structure was opened.
    fn read_one<'a, B>(
        &mut self,
        reader: &mut Reader<'a>,
        builder: &mut B,
    ) -> Result<Option<B::Value>, B::Error>
    where
        B: Builder<'a, Object = O, List = L>,
    {
        let begun = match self.open.pop().expect("a message is open until it is complete") {
            Reading::Struct { plan, next, object } => {
                let Some(step) = plan.plain.get(next) else {
                    return finish_struct(plan, object, reader, builder).map(Some);
                };
                self.open.push(Reading::Struct { plan, next, object });
                begin(step, reader, builder)?
            }
            Reading::List { left: 0, list, .. } => return builder.finish_list(list).map(Some),
            Reading::List { elements, left, list } => {
                self.open.push(Reading::List { elements, left: left - 1, list });
                match elements {
                    Elements::Primitives(kind) => {
                        Begun::Whole(read_element(kind, reader, builder)?)
                    }
                    Elements::Structs(plan) => Begun::Open(begin_struct(plan, builder)?),
                }
            }
        };
        match begun {
            Begun::Whole(value) => Ok(Some(value)),
            Begun::Open(reading) => {
                self.open.push(reading);
                Ok(None)
            }
        }
    }
}

fn begin_struct<'a, B: Builder<'a>>(
    plan: &'static Plan,
    builder: &mut B,
) -> Result<Reading<B::Object, B::List>, B::Error> {
    Ok(Reading::Struct { plan, next: 0, object: builder.object(plan.schema)? })
}

type BegunBy<'a, B> =
    Begun<<B as Builder<'a>>::Value, <B as Builder<'a>>::Object, <B as Builder<'a>>::List>;

/// Reads a plain field, or the start of a structure.
fn begin<'a, B: Builder<'a>>(
    step: &'static Step,
    reader: &mut Reader<'a>,
    builder: &mut B,
) -> Result<BegunBy<'a, B>, B::Error> {
    let elements = match &step.operation {
        Operation::One(_) => return read_field(step, false, reader, builder).map(Begun::Whole),
        Operation::Struct(_) if step.nullable && is_struct_null(false, reader)? => {
            return Ok(Begun::Whole(builder.null()));
        }
        Operation::Struct(plan) => return begin_struct(plan, builder).map(Begun::Open),
        Operation::List(kind) => Elements::Primitives(*kind),
        Operation::Structs(plan) => Elements::Structs(plan),
    };
    let Some(count) = reader.list_length()? else {
        return read_null(step, reader, builder).map(Begun::Whole);
    };
    reader.count_objects(count)?;
    Ok(Begun::Open(Reading::List { elements, left: count, list: builder.list(count)? }))
}
