//! The Arrow schemas of batches.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use once_cell::race::OnceBox;

/// The schema of [`super::Columns`].
pub fn schema() -> SchemaRef {
    static SCHEMA: OnceBox<SchemaRef> = OnceBox::new();
    SCHEMA.get_or_init(|| Box::new(schema_of(&DataType::Binary))).clone()
}

/// The schema of [`super::ColumnViews`]: keys and values as `binary_view`.
pub fn schema_of_views() -> SchemaRef {
    static SCHEMA: OnceBox<SchemaRef> = OnceBox::new();
    SCHEMA.get_or_init(|| Box::new(schema_of(&DataType::BinaryView))).clone()
}

fn schema_of(bytes: &DataType) -> SchemaRef {
    let timestamp = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("offset", DataType::Int64, false),
        Field::new("timestamp", timestamp, false),
        Field::new("key", bytes.clone(), true),
        Field::new("value", bytes.clone(), true),
        Field::new("headers", DataType::List(header_item()), false),
    ]))
}

pub(super) fn header_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Binary, true),
    ])
}

pub(super) fn header_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(header_fields()), false))
}
