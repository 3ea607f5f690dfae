//! Batches become columns and columns batches, nothing lost.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, LargeStringArray, RecordBatch, StringViewArray, TimestampNanosecondArray,
};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pykafka_record::columns::{ColumnViews, Columns, ColumnsError, Rows, schema, schema_of_views};
use pykafka_record::{
    Batch, BatchBuilder, BatchOptions, Compression, Limits, TimestampType, batches,
};

type Text = String;
type OwnedRecord = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Text, Option<Vec<u8>>)>);

fn record() -> impl Strategy<Value = OwnedRecord> {
    let bytes = || option::of(vec(any::<u8>(), 0..30));
    (-1..i64::MAX / 2, bytes(), bytes(), vec((".{0,5}", bytes()), 0..3))
}

fn build(compression: Compression, base_offset: i64, records: &[OwnedRecord]) -> Vec<u8> {
    let options = BatchOptions { compression, base_offset, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for (timestamp, key, value, headers) in records {
        let headers: Vec<_> = headers.iter().map(|(k, v)| (k.as_bytes(), v.as_deref())).collect();
        builder.append(*timestamp, key.as_deref(), value.as_deref(), &headers).unwrap();
    }
    let mut out = Vec::new();
    builder.build(&mut out).unwrap();
    out
}

fn to_columns(bytes: &[u8]) -> RecordBatch {
    let mut columns = Columns::new(Limits::default());
    for batch in batches(bytes) {
        columns.append_batch(batch.unwrap(), &(0..i64::MAX)).unwrap();
    }
    columns.finish().unwrap()
}

fn to_views(bytes: &[u8]) -> RecordBatch {
    let mut columns = ColumnViews::new(Limits::default());
    let buffer = Buffer::from_vec(bytes.to_vec());
    columns.append_buffer(&buffer, &(0..i64::MAX), |_| true).unwrap();
    columns.finish().unwrap()
}

fn back(table: &RecordBatch, options: BatchOptions) -> Vec<u8> {
    let rows = Rows::new(table).unwrap();
    let mut builder = BatchBuilder::new(options);
    for row in 0..rows.len() {
        rows.append_to(row, -1, &mut builder).unwrap();
    }
    let mut out = Vec::new();
    builder.build(&mut out).unwrap();
    out
}

proptest! {
    #[test]
    fn columns_and_views_round_trip_to_the_same_batch(
        records in vec(record(), 1..20),
        compression in proptest::sample::select(&Compression::ALL[..]),
        base_offset in 0..i64::MAX - 100,
    ) {
        let bytes = build(compression, base_offset, &records);
        let options = BatchOptions { compression, base_offset, ..BatchOptions::default() };
        let (copied, views) = (to_columns(&bytes), to_views(&bytes));
        prop_assert_eq!(copied.schema(), schema());
        prop_assert_eq!(views.schema(), schema_of_views());
        prop_assert_eq!(&back(&copied, options), &bytes);
        prop_assert_eq!(&back(&views, options), &bytes);
        let offsets = copied.column(0).as_primitive::<Int64Type>();
        let expected: Vec<_> = (base_offset..).take(records.len()).collect();
        prop_assert_eq!(offsets.values().as_ref(), &expected[..]);
    }
}

#[test]
fn only_requested_offsets_and_batches_are_returned() {
    let some = |count| vec![(5, None, Some(vec![1]), vec![]); count];
    let mut bytes = build(Compression::None, 10, &some(5));
    bytes.extend(build(Compression::Lz4, 15, &some(5)));
    bytes.extend(build(Compression::None, 20, &some(5)));
    let offsets =
        |table: RecordBatch| table.column(0).as_primitive::<Int64Type>().values().to_vec();
    let mut columns = Columns::new(Limits::default());
    for batch in batches(&bytes) {
        columns.append_batch(batch.unwrap(), &(13..17)).unwrap();
    }
    assert_eq!(columns.len(), 4);
    assert_eq!(offsets(columns.finish().unwrap()), [13, 14, 15, 16]);
    assert!(columns.is_empty());
    let mut views = ColumnViews::new(Limits::default());
    let buffer = Buffer::from_vec(bytes);
    let accept = |batch: Batch<'_>| batch.base_offset() != 15;
    views.append_buffer(&buffer, &(13..22), accept).unwrap();
    assert_eq!(offsets(views.finish().unwrap()), [13, 14, 20, 21]);
}

#[test]
fn views_share_the_buffer_and_keep_it_alive() {
    let value = vec![7; 1000];
    let bytes = build(Compression::None, 0, &[(0, None, Some(value.clone()), vec![])]);
    let buffer = Buffer::from_vec(bytes);
    let start = buffer.as_ptr().addr();
    let mut views = ColumnViews::new(Limits::default());
    views.append_buffer(&buffer, &(0..1), |_| true).unwrap();
    let table = views.finish().unwrap();
    drop((buffer, views));
    let column = table.column_by_name("value").unwrap().as_binary_view();
    let found = column.value(0);
    assert_eq!(found, value);
    assert!((start..start + 2000).contains(&found.as_ptr().addr()));
}

#[test]
fn logs_of_kafka_round_trip_to_the_same_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for batch in batches(&std::fs::read(folder.join("codec-none-0.log")).unwrap()) {
        let batch = batch.unwrap();
        let options = BatchOptions {
            base_offset: batch.base_offset(),
            partition_leader_epoch: batch.partition_leader_epoch(),
            timestamp_type: TimestampType::CreateTime,
            ..BatchOptions::default()
        };
        assert_eq!(back(&to_columns(batch.bytes()), options), batch.bytes());
        assert_eq!(back(&to_views(batch.bytes()), options), batch.bytes());
    }
}

#[test]
fn header_keys_that_are_not_utf8_are_replaced_as_in_java() {
    let mut builder = BatchBuilder::default();
    builder.append(0, None, None, &[(&[0xff, b'a'], None)]).unwrap();
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    let table = to_columns(&bytes);
    let items = table.column(4).as_list::<i32>().value(0);
    assert_eq!(items.as_struct().column(0).as_string::<i32>().value(0), "\u{fffd}a");
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn text_and_any_time_unit_are_accepted_and_missing_values_are_filled() {
    let rows = table(vec![
        ("key", Arc::new(LargeStringArray::from(vec![Some("k"), None]))),
        ("value", Arc::new(StringViewArray::from(vec!["v", "a text longer than a view"]))),
        ("timestamp", Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None]))),
    ]);
    let rows = Rows::new(&rows).unwrap();
    assert_eq!((rows.len(), rows.key(0), rows.key(1)), (2, Some(&b"k"[..]), None));
    let mut builder = BatchBuilder::default();
    for row in 0..2 {
        rows.append_to(row, 77, &mut builder).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    let batch = Batch::split(&bytes).unwrap().0;
    let mut scratch = Vec::new();
    let records = batch.records(&mut scratch, Limits::default()).unwrap();
    let found: Vec<_> = records.map(|record| record.unwrap()).collect();
    assert_eq!((found[0].timestamp, found[1].timestamp), (-1, 77));
    assert_eq!(found[1].value, Some(&b"a text longer than a view"[..]));
}

#[test]
fn columns_of_other_types_and_missing_values_are_rejected() {
    let numbers: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![1]));
    let text: ArrayRef = Arc::new(LargeStringArray::from(vec!["v"]));
    let missing = Rows::new(&table(vec![("key", text.clone())])).unwrap_err();
    assert!(matches!(missing, ColumnsError::Missing("value")));
    for name in ["key", "timestamp", "headers"] {
        let rows = table(vec![("value", text.clone()), (name, numbers.clone())]);
        let error = Rows::new(&rows).unwrap_err();
        let ColumnsError::Type { column, found } = error else { panic!("{error}") };
        assert_eq!((column, found), (name, DataType::Int32));
    }
}
