//! Batches as Arrow columns, and rows back into batches.
//!
//! | column | type | |
//! |---|---|---|
//! | `offset` | `int64` | |
//! | `timestamp` | `timestamp[ms, UTC]` | −1 ms for records without one |
//! | `key`, `value` | `binary`, or `binary_view` | null and empty differ |
//! | `headers` | `list<struct<key: utf8, value: binary>>` | in order; keys may repeat |
//!
//! [`Columns`] copies each byte once. In [`ColumnViews`], keys and values point into the buffer of
//! the batches, so the arrays keep that buffer alive; compressed batches are copied. Neither checks
//! CRCs: the caller must do that first.

mod binary;
mod copied;
mod error;
mod headers;
mod rows;
mod schema;
mod shared;
mod views;

pub use copied::Columns;
pub use error::ColumnsError;
pub use rows::Rows;
pub use schema::{schema, schema_of_views};
pub use views::ColumnViews;
