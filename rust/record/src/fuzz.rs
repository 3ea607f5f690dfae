//! Fuzz targets as functions: `cargo test` runs them on a corpus and on random bytes, and so does
//! cargo-fuzz. They must return for all inputs.

use crate::compression::{Compression, Limits, compress, decompress};
use crate::{Batch, BatchBuilder, BatchOptions, EndTransactionMarker, batches};

/// Small limits, so that a run tests many inputs instead of a few large outputs.
const LIMITS: Limits = Limits { bytes_max: 1 << 20, ratio_max: 1000, ..Limits::NONE };

/// Read `data` as concatenated batches with all their records. Readable records are written to a
/// new batch and must be equal when read again.
pub fn fuzz_batch(data: &[u8]) {
    let mut scratch = Vec::new();
    for batch in batches(data).flatten() {
        let _ = (batch.is_crc_valid(), batch.last_sequence(), batch.delete_horizon_ms());
        let _ = (batch.next_offset(), batch.has_valid_offsets(), format!("{batch:?}"));
        read_batch(batch, &mut scratch);
    }
}

fn read_batch(batch: Batch<'_>, scratch: &mut Vec<u8>) {
    let Ok(records) = batch.records(scratch, LIMITS) else { return };
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for record in records.clone() {
        let Ok(record) = record else { return };
        assert_eq!(record.headers.iter().count(), record.headers.count());
        if let (true, Some(key), Some(value)) = (batch.is_control(), record.key, record.value) {
            let _ = EndTransactionMarker::from_record(key, value);
        }
        if builder.append_record(&record).is_err() {
            return;
        }
    }
    let mut out = Vec::new();
    if builder.build(&mut out).is_err() {
        return;
    }
    let (again, _) = Batch::split(&out).expect("a batch just built is whole");
    let mut unused = Vec::new();
    let again = again.records(&mut unused, LIMITS).expect("it is not compressed");
    for (record, again) in records.zip(again) {
        let (record, again) = (record.expect("read above"), again.expect("just built"));
        assert_eq!((record.timestamp, record.key), (again.timestamp, again.key));
        assert_eq!((record.value, record.headers), (again.value, again.headers));
    }
}

/// Decompress `data` with the codec of its first byte; the output must survive a round trip.
pub fn fuzz_decompress(data: &[u8]) {
    let Some((first, input)) = data.split_first() else { return };
    let codec = Compression::ALL[usize::from(*first) % Compression::ALL.len()];
    let mut out = Vec::new();
    if decompress(codec, input, &mut out, LIMITS).is_err() {
        return;
    }
    assert!(out.len() <= LIMITS.output_bytes_max(input.len()));
    let (mut packed, mut again) = (Vec::new(), Vec::new());
    compress(codec, None, &out, &mut packed).expect("any bytes compress");
    let large = Limits::NONE;
    decompress(codec, &packed, &mut again, large).expect("compressed data decompresses");
    assert_eq!(again, out);
}
