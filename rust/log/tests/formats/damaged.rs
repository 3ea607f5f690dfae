//! Damage to old formats, and unknown formats: bytes that may be data are never cut.

use proptest::prelude::*;
use pykafka_log::{Damage, Log, LogOptions, OnDamage};
use pykafka_record::{Compression, batches};

use crate::common::Bench;
use crate::message_sets::{Row, Style};
use crate::{
    Layout, Written, bench_with, layouts, log_bytes, put_segment, read_rows, rows_of, written,
    written_v2,
};

fn messages(magic: i8, count: i64) -> Vec<Written> {
    let style = Style { magic, codec: Compression::None, log_append_time: None };
    let rows = (0..count).map(|offset| Row::new(offset, 5, Some(b"key"), Some(b"value")));
    rows.map(|row| written(style, &[row])).collect()
}

#[test]
fn a_damaged_message_before_valid_ones_is_not_cut() {
    for magic in [0, 1] {
        let mut segment = messages(magic, 20);
        *segment[10].bytes.last_mut().unwrap() ^= 1;
        let bench = bench_with(&vec![segment]);
        let bytes = log_bytes(&bench);
        for _ in 0..2 {
            let (log, recovery) = bench.open(false);
            assert_eq!(recovery.damage, Some(Damage::Batch { offset: 10 }));
            assert_eq!(read_rows(&log, 0, i64::MAX, 100).len(), 10);
            log.close().unwrap();
            assert_eq!(log_bytes(&bench), bytes);
        }
    }
}

#[test]
fn a_torn_message_at_the_end_is_cut() {
    for magic in [0, 1] {
        let mut segment = messages(magic, 20);
        segment[19].bytes.pop();
        let bench = bench_with(&vec![segment]);
        let (log, recovery) = bench.open(false);
        assert_eq!((recovery.damage, recovery.truncated_at), (None, Some(19)));
        assert_eq!(read_rows(&log, 0, i64::MAX, 100).len(), 19);
    }
}

/// A batch of an undefined format.
fn unknown(magic: u8, offset: i64) -> Vec<u8> {
    let mut bytes = offset.to_be_bytes().to_vec();
    bytes.extend(80_i32.to_be_bytes());
    bytes.extend([9; 4]);
    bytes.push(magic);
    bytes.resize(92, 0x5a);
    bytes
}

fn open_each_way(bench: &Bench, check: impl Fn(&Log, Option<Damage>)) {
    for on_damage in [OnDamage::Keep, OnDamage::CutUnsynced, OnDamage::Cut] {
        for clean in [false, true] {
            let options = LogOptions { on_damage, ..bench.options(clean) };
            let (log, recovery) = Log::open(options).unwrap();
            check(&log, recovery.damage);
            log.close().unwrap();
        }
    }
}

#[test]
fn unknown_format_is_reported_and_never_cut() {
    let before: Vec<u8> = messages(1, 10).into_iter().flat_map(|written| written.bytes).collect();
    let one = [before.clone(), unknown(3, 10)].concat();
    let two = [before.clone(), unknown(3, 10), unknown(3, 11)].concat();
    let reserved = [before.clone(), unknown(3, 10), vec![0; 500]].concat();
    let torn = [before.clone(), unknown(3, 10), unknown(3, 11)[..9].to_vec()].concat();
    let garbage = [before.clone(), unknown(3, 10), vec![0x5a; 77]].concat();
    let mut damaged = messages(1, 11).pop().unwrap().bytes;
    *damaged.last_mut().unwrap() ^= 1;
    let after_damage = [before.clone(), damaged, unknown(3, 11)].concat();
    for (bytes, next) in [
        (one, 12),
        (two, 12),
        (reserved, 12),
        (torn, 12),
        (garbage, 12),
        (after_damage, 12),
        (before, 15),
    ] {
        let bench = Bench::default();
        bench.disk.create_dir_all(&bench.dir).unwrap();
        put_segment(&bench, 0, &bytes);
        put_segment(&bench, next, &unknown(3, next));
        let files = log_bytes(&bench);
        open_each_way(&bench, |log, damage| {
            let unknown = Damage::UnknownFormat { offset: 10, magic: 3 };
            assert!(unknown.to_string().contains("message format 3"));
            assert_eq!(damage, Some(unknown));
            assert_eq!(read_rows(log, 0, i64::MAX, 100).len(), 10);
            assert_eq!(log_bytes(&bench), files);
        });
    }
}

#[test]
fn garbage_with_an_unknown_format_number_is_a_torn_tail() {
    let before: Vec<u8> = messages(1, 10).into_iter().flat_map(|written| written.bytes).collect();
    for garbage in [vec![0x5a; 300], unknown(3, 9), unknown(3, 10)[..91].to_vec()] {
        let bench = Bench::default();
        bench.disk.create_dir_all(&bench.dir).unwrap();
        put_segment(&bench, 0, &[before.clone(), garbage].concat());
        let (_, recovery) = bench.open(false);
        assert_eq!((recovery.damage, recovery.truncated_at), (None, Some(10)));
    }
}

/// No checksum covers offsets, so a batch with a valid checksum is damage, whatever its offset.
#[test]
fn a_whole_batch_with_wrong_offsets_at_the_end_is_damage() {
    for magic in [0, 1, 2] {
        let batch = |offset| {
            let row = Row::new(offset, 5, Some(b"key"), Some(b"value"));
            match magic {
                2 => written_v2(Compression::None, &[row]),
                _ => written(
                    Style { magic, codec: Compression::None, log_append_time: None },
                    &[row],
                ),
            }
        };
        for offset in [0, 9, 1 << 40, -7] {
            let mut segment: Vec<_> = (0..10).map(batch).collect();
            segment.push(Written { rows: Vec::new(), ..batch(0) });
            segment[10].bytes[..8].copy_from_slice(&i64::to_be_bytes(offset));
            let bench = bench_with(&vec![segment]);
            let bytes = log_bytes(&bench);
            for _ in 0..2 {
                let (log, recovery) = bench.open(false);
                let damage = recovery.damage.map(|damage| damage.offset());
                assert_eq!((damage, recovery.truncated_at), (Some(10), None), "{magic} {offset}");
                assert_eq!(read_rows(&log, 0, i64::MAX, 100).len(), 10);
                log.close().unwrap();
                assert_eq!(log_bytes(&bench), bytes);
            }
        }
    }
}

/// Changes one byte of a batch after its offset, which no checksum covers. Returns the layout, true
/// for the last batch of the log, and the batch's first offset.
fn damaged(layout: &Layout, batch: usize, at: usize, bit: u8) -> (Layout, bool, i64) {
    let mut layout = layout.clone();
    let sizes = |written: &Written| {
        batches(&written.bytes).map(|batch| batch.unwrap().size()).collect::<Vec<_>>()
    };
    let places: Vec<_> = (layout.iter().enumerate())
        .flat_map(|(segment, appends)| {
            appends.iter().enumerate().flat_map(move |(append, written)| {
                let starts = sizes(written).into_iter().scan(0, |end, size| {
                    *end += size;
                    Some((*end - size, size))
                });
                starts.map(move |place| (segment, append, place))
            })
        })
        .collect();
    let index = batch % places.len();
    let (segment, append, (start, size)) = places[index];
    let written = &mut layout[segment][append];
    let before: Vec<_> = batches(&written.bytes[..start]).flatten().collect();
    let first = before.last().map_or(written.offsets().start, |last| last.next_offset());
    // In format 2 the checksum does not cover the leader epoch before the magic either.
    let covered = if written.bytes[start + 16] == 2 { 16 } else { 8 };
    written.bytes[start + covered + at % (size - covered)] ^= 1 << bit;
    (layout, index + 1 == places.len(), first)
}

proptest! {
    #[test]
    fn changed_byte_loses_no_record_silently(
        layout in layouts(), batch in any::<usize>(), at in any::<usize>(), bit in 0..8_u8,
    ) {
        let rows = rows_of(&layout);
        let (damaged, is_last, first) = damaged(&layout, batch, at, bit);
        let bench = bench_with(&damaged);
        let bytes = log_bytes(&bench);
        for _ in 0..2 {
            let (log, recovery) = bench.open(false);
            prop_assert_eq!(read_rows(&log, 0, i64::MAX, 500), &rows[..first as usize]);
            if is_last {
                prop_assert!(recovery.damage.is_none() || log_bytes(&bench) == bytes);
            } else {
                prop_assert_eq!(recovery.damage.map(|damage| damage.offset()), Some(first));
                prop_assert_eq!(log_bytes(&bench), bytes.clone());
            }
            log.close().unwrap();
        }
    }
}
