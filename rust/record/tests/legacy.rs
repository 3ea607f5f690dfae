//! Messages of format 0 and 1: the records that they hold, and malformed ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod message_sets;

use message_sets::{Row, Style, message_set, put_message};
use proptest::prelude::*;
use pykafka_record::{
    Batch, Compression, Limits, MessageFormat, RecordError, Window, batches, upgrade,
};

const CODECS: [Compression; 4] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4];

fn rows_of(batch: &Batch<'_>) -> Result<Vec<Row>, RecordError> {
    let mut scratch = Vec::new();
    let records = batch.records(&mut scratch, Limits::default())?;
    records
        .map(|record| {
            record.map(|found| Row::new(found.offset, found.timestamp, found.key, found.value))
        })
        .collect()
}

/// The records that a consumer gets of rows in this style.
fn expected(style: Style, rows: &[Row]) -> Vec<Row> {
    let timestamp = |row: &Row| match (style.magic, style.log_append_time) {
        (0, _) => -1,
        (_, Some(timestamp)) => timestamp,
        (_, None) => row.timestamp,
    };
    rows.iter().map(|row| Row { timestamp: timestamp(row), ..row.clone() }).collect()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let bytes = || prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
    let row = (1_i64..4, -1_i64..2_000_000_000_000, bytes(), bytes());
    (0_i64..1 << 40, prop::collection::vec(row, 1..20)).prop_map(|(first, rows)| {
        let mut offset = first;
        rows.into_iter()
            .map(|(gap, timestamp, key, value)| {
                offset += gap;
                Row { offset, timestamp, key, value }
            })
            .collect()
    })
}

fn styles() -> impl Strategy<Value = Style> {
    let stamp = prop::option::of(0_i64..2_000_000_000_000);
    (0_i8..2, prop::sample::select(CODECS.to_vec()), stamp).prop_map(|(magic, codec, stamp)| {
        Style { magic, codec, log_append_time: stamp.filter(|_| magic == 1) }
    })
}

proptest! {
    #[test]
    fn every_record_is_read_as_written(style in styles(), rows in rows()) {
        let bytes = message_set(style, &rows);
        let mut found = Vec::new();
        let mut walk = batches(&bytes);
        for batch in &mut walk {
            let batch = batch.unwrap();
            prop_assert!(batch.is_crc_valid() && batch.has_valid_offsets());
            prop_assert_eq!(batch.magic(), style.magic);
            found.extend(rows_of(&batch).unwrap());
            prop_assert_eq!(batch.last_offset(), found.last().unwrap().offset);
        }
        prop_assert!(walk.rest().is_empty());
        prop_assert_eq!(found, expected(style, &rows));
    }

    #[test]
    fn a_reader_with_a_window_finds_the_same_records(style in styles(), rows in rows()) {
        let bytes = message_set(style, &rows);
        let (mut window, mut found) = (Window::new(1 << 20), Vec::new());
        for batch in batches(&bytes).flatten() {
            for head in batch.read(&mut window, Limits::default()).unwrap() {
                let head = head.unwrap();
                found.push((head.offset, head.timestamp, head.has_key));
            }
        }
        let expected = expected(style, &rows);
        let expected: Vec<_> =
            expected.iter().map(|row| (row.offset, row.timestamp, row.key.is_some())).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn an_upgraded_batch_has_the_same_records(style in styles(), rows in rows()) {
        let bytes = message_set(style, &rows);
        let mut found = Vec::new();
        for batch in batches(&bytes).flatten() {
            for codec in [Compression::None, style.codec] {
                let mut out = Vec::new();
                upgrade(&batch, codec, Limits::default(), &mut out).unwrap();
                let (upgraded, rest) = Batch::split(&out).unwrap();
                prop_assert!(rest.is_empty() && upgraded.is_crc_valid());
                prop_assert_eq!(upgraded.format(), MessageFormat::V2);
                prop_assert_eq!(upgraded.compression(), Ok(codec));
                prop_assert_eq!(upgraded.timestamp_type(), batch.timestamp_type());
                prop_assert_eq!(upgraded.last_offset(), batch.last_offset());
                prop_assert_eq!(rows_of(&upgraded).unwrap(), rows_of(&batch).unwrap());
            }
            found.extend(rows_of(&batch).unwrap());
        }
        prop_assert_eq!(found, expected(style, &rows));
    }

    #[test]
    fn every_changed_byte_is_detected(
        style in styles(), rows in rows(), at in any::<prop::sample::Index>(), bit in 0..8_u8,
    ) {
        let mut bytes = message_set(style, &rows);
        // Offsets and lengths are not covered by the checksum, as in format 2.
        let (first, _) = Batch::split(&bytes).unwrap();
        let covered = 12..first.size();
        let at = covered.start + at.index(covered.len());
        bytes[at] ^= 1 << bit;
        let is_valid = Batch::split(&bytes).is_ok_and(|(batch, _)| batch.is_crc_valid());
        prop_assert!(!is_valid);
    }

    #[test]
    fn damaged_sets_end_in_an_error(
        style in styles(), rows in rows(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = message_set(style, &rows);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let mut window = Window::new(1 << 16);
        for batch in batches(&bytes).flatten() {
            let _ = rows_of(&batch);
            if let Ok(reader) = batch.read(&mut window, Limits::default()) {
                let _ = reader.count();
            }
        }
    }
}

/// A compressed message with these bytes as its set.
fn wrapper(magic: i8, last_offset: i64, set: &[u8]) -> Vec<u8> {
    let (mut compressed, mut out) = (Vec::new(), Vec::new());
    pykafka_record::compress(Compression::Gzip, None, set, &mut compressed).unwrap();
    put_message(&mut out, magic, last_offset, 1, 5, (None, Some(&compressed)));
    out
}

fn message(magic: i8, offset: i64, attributes: u8) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, magic, offset, attributes, 5, (None, Some(b"value")));
    out
}

#[test]
fn sets_that_no_broker_could_store_are_rejected() {
    let two = [message(1, 0, 0), message(1, 1, 0)].concat();
    let cases: [(&str, Vec<u8>); 8] = [
        ("holds no messages", wrapper(1, 3, &[])),
        ("ends inside of a message", wrapper(1, 3, &two[..two.len() - 1])),
        ("has another format", wrapper(1, 3, &message(0, 0, 0))),
        ("is compressed", wrapper(1, 3, &message(1, 0, 1))),
        ("ends before its last message", wrapper(1, 0, &two)),
        ("do not grow", wrapper(0, 9, &[message(0, 9, 0), message(0, 8, 0)].concat())),
        ("has no value", {
            let mut out = Vec::new();
            put_message(&mut out, 1, 3, 1, 5, (None, None));
            out
        }),
        ("does not fit", {
            let mut out = message(1, 3, 0);
            out[29] = 9;
            out
        }),
    ];
    for (reason, bytes) in cases {
        let (batch, _) = Batch::split(&bytes).unwrap();
        let error = rows_of(&batch).unwrap_err().to_string();
        assert!(error.starts_with("malformed message set") && error.contains(reason), "{error}");
    }
}

#[test]
fn a_producer_cannot_send_legacy_sets() {
    for magic in [0, 1] {
        let bytes = message(magic, 0, 0);
        let error = Batch::split_v2(&bytes).unwrap_err();
        assert_eq!(error.to_string(), format!("magic {magic} is not supported"));
    }
}

#[test]
fn a_set_larger_than_the_window_asks_for_a_larger_one() {
    let rows: Vec<_> = (0..100).map(|at| Row::new(at, 0, None, Some(&[7; 1000]))).collect();
    let style = Style { magic: 1, codec: Compression::Gzip, log_append_time: None };
    let bytes = message_set(style, &rows);
    let (batch, _) = Batch::split(&bytes).unwrap();
    let mut window = Window::new(64 << 10);
    let error = batch.read(&mut window, Limits::default()).err().unwrap();
    assert!(error.needs_larger_window(), "{error}");
    let mut window = Window::new(512 << 10);
    assert_eq!(batch.read(&mut window, Limits::default()).unwrap().count(), 100);
}
