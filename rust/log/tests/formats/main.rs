//! Logs with messages of format 0 and 1, alone and before batches of format 2: they are read,
//! recovered, copied, truncated, compacted, and damaged.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod damaged;
#[path = "../../../record/tests/message_sets/mod.rs"]
mod message_sets;
mod readers;
mod writers;

use std::ops::Range;
use std::path::Path;

use common::Bench;
use message_sets::{Row, Style, message_set};
use proptest::prelude::*;
use pykafka_log::{Log, LogConfig};
use pykafka_record::{
    BatchBuilder, BatchMut, BatchOptions, Compression, LeaderEpoch, Limits, batches,
};

const CODECS: [Compression; 4] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4];

/// The bytes of one append, and the records that a consumer receives.
#[derive(Debug, Clone)]
struct Written {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

impl Written {
    /// Range of the offsets from the first record to the last one.
    fn offsets(&self) -> Range<i64> {
        self.rows[0].offset..self.rows[self.rows.len() - 1].offset + 1
    }
}

/// Segments of a log, each with its appends.
type Layout = Vec<Vec<Written>>;

fn written(style: Style, rows: &[Row]) -> Written {
    let timestamp = |row: &Row| match style {
        Style { magic: 0, .. } => -1,
        Style { log_append_time: Some(timestamp), .. } => timestamp,
        _ => row.timestamp,
    };
    let expected = rows.iter().map(|row| Row { timestamp: timestamp(row), ..row.clone() });
    Written { bytes: message_set(style, rows), rows: expected.collect() }
}

/// Rows as a batch of format 2, numbered without gaps.
fn written_v2(codec: Compression, rows: &[Row]) -> Written {
    let mut builder =
        BatchBuilder::new(BatchOptions { compression: codec, ..BatchOptions::default() });
    let first = rows[0].offset;
    let mut expected = Vec::new();
    for (row, offset) in rows.iter().zip(first..) {
        builder.append(row.timestamp, row.key.as_deref(), row.value.as_deref(), &[]).unwrap();
        expected.push(Row { offset, ..row.clone() });
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    let mut batch = BatchMut::new(&mut bytes).unwrap();
    batch.set_base_offset(first);
    batch.set_partition_leader_epoch(LeaderEpoch::ZERO);
    Written { bytes, rows: expected }
}

prop_compose! {
    fn rows()(rows in prop::collection::vec(
        (0_i64..100_000, prop::option::weighted(0.9, 0_u8..5), prop::option::weighted(0.8, 0_usize..60)),
        1..8,
    )) -> Vec<Row> {
        let row = |(timestamp, key, value): (i64, Option<u8>, Option<usize>)| {
            let key = key.map(|key| vec![key]);
            Row { offset: 0, timestamp, key, value: value.map(|size| vec![7; size]) }
        };
        rows.into_iter().map(row).collect()
    }
}

/// Logs from offset 0 with batches of format 0, then 1, then 2, as in a cluster after upgrades.
fn layouts() -> impl Strategy<Value = Layout> {
    let stamp = prop::option::weighted(0.3, 0_i64..100_000);
    let codec = prop::sample::select(CODECS.to_vec());
    let append = (0_i8..3, codec, stamp, rows(), prop::bool::weighted(0.3));
    prop::collection::vec(append, 1..14).prop_map(|mut appends| {
        appends.sort_by_key(|append| append.0);
        let mut layout: Layout = vec![Vec::new()];
        let mut offset = 0;
        for (magic, codec, log_append_time, mut rows, rolls) in appends {
            for row in &mut rows {
                row.offset = offset;
                offset += 1;
            }
            let log_append_time = log_append_time.filter(|_| magic == 1);
            let written = match magic {
                2 => written_v2(codec, &rows),
                magic => written(Style { magic, codec, log_append_time }, &rows),
            };
            if rolls && layout.last().is_some_and(|segment| !segment.is_empty()) {
                layout.push(Vec::new());
            }
            layout.last_mut().unwrap().push(written);
        }
        layout
    })
}

fn rows_of(layout: &Layout) -> Vec<Row> {
    layout.iter().flatten().flat_map(|written| written.rows.clone()).collect()
}

fn bench_with(layout: &Layout) -> Bench {
    let config =
        LogConfig { segment_bytes: 3000, index_interval_bytes: 100, ..LogConfig::default() };
    let bench = Bench { config, ..Bench::default() };
    bench.disk.create_dir_all(&bench.dir).unwrap();
    for segment in layout {
        let bytes: Vec<u8> = segment.iter().flat_map(|written| written.bytes.clone()).collect();
        put_segment(&bench, segment[0].offsets().start, &bytes);
    }
    bench
}

fn put_segment(bench: &Bench, base_offset: i64, bytes: &[u8]) {
    let path = bench.dir.join(format!("{base_offset:020}.log"));
    let file = bench.disk.create_anew(&path).unwrap();
    file.write_at(bytes, 0).unwrap();
}

/// The bytes of all segments, in order.
fn log_bytes(bench: &Bench) -> Vec<u8> {
    let is_log = |name: &str| Path::new(name).extension().is_some_and(|suffix| suffix == "log");
    let files = bench.files().into_iter();
    let mut logs: Vec<_> = files.filter(|(name, _)| is_log(name)).collect();
    logs.sort();
    logs.into_iter().flat_map(|(_, bytes)| bytes).collect()
}

/// The records that a consumer receives from `offset` on, in reads of `bytes_max` bytes.
fn read_rows(log: &Log, offset: i64, upto: i64, bytes_max: usize) -> Vec<Row> {
    let (mut found, mut at, mut scratch) = (Vec::new(), offset, Vec::new());
    while at < upto {
        let data = log.read(at, bytes_max, upto, true).unwrap();
        if data.bytes.is_empty() {
            break;
        }
        for batch in batches(&data.bytes).map(Result::unwrap) {
            assert!(batch.is_crc_valid());
            for record in batch.records(&mut scratch, Limits::default()).unwrap() {
                let record = record.unwrap();
                if (at..upto).contains(&record.offset) {
                    let (key, value) = (record.key, record.value);
                    found.push(Row::new(record.offset, record.timestamp, key, value));
                }
            }
        }
        assert!(data.next_offset > at);
        at = data.next_offset;
    }
    found
}
