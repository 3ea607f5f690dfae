//! Compares streamed reading with reading of the whole payload.

use proptest::prelude::*;

use super::*;
use crate::compression::{compress, decompress};
use crate::{BatchBuilder, BatchOptions};

const LIMITS: Limits = Limits { bytes_max: 8 << 20, ratio_max: 1000, ..Limits::NONE };

/// Timestamp, key, value and number of headers.
type Fields = (i64, Option<Vec<u8>>, Vec<u8>, u8);

type Heads = Vec<Result<RecordHead, RecordError>>;

fn whole(bytes: &[u8]) -> Heads {
    let mut scratch = Vec::new();
    match Batch::split(bytes).unwrap().0.records(&mut scratch, LIMITS) {
        Ok(records) => records.map(|record| record.map(|record| record.head())).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// The heads, and the maximum size of the window's content.
fn streamed(bytes: &[u8], window_bytes_max: usize) -> (Heads, usize) {
    let (batch, _) = Batch::split(bytes).unwrap();
    let mut window = Window::new(window_bytes_max);
    // Uncompressed batches are read in pieces here, too.
    let codec = match batch.readable_compression() {
        Ok(codec) => codec,
        Err(error) => return (vec![Err(error)], 0),
    };
    let heads = match Pieces::inflated(codec, batch.payload(), &mut window, LIMITS) {
        Ok(pieces) => RecordReader::new(&batch, pieces, LIMITS).collect(),
        Err(error) => vec![Err(error.into())],
    };
    (heads, window.bytes.capacity())
}

/// A payload that does not decompress is reported after the records before the fault.
fn assert_agree(bytes: &[u8], window_bytes_max: usize) -> Result<(), TestCaseError> {
    let (expected, (found, held)) = (whole(bytes), streamed(bytes, window_bytes_max));
    prop_assert!(held <= window_bytes_max, "{} of {} bytes", held, window_bytes_max);
    if let [Err(error @ RecordError::Compression(_))] = &expected[..] {
        prop_assert_eq!(found.last(), Some(&Err(error.clone())));
    } else {
        prop_assert_eq!(found, expected);
    }
    Ok(())
}

/// Compresses so that no part needs more than a few hundred bytes at once.
fn compress_in_parts(codec: Compression, payload: &[u8]) -> Vec<u8> {
    let parts = payload.chunks(40).map(|part| {
        let mut packed = Vec::new();
        compress(codec, None, part, &mut packed).unwrap();
        packed
    });
    match codec {
        // One frame with the header and end mark around the blocks of all pieces.
        Compression::Lz4 => {
            let blocks = parts.flat_map(|packed| packed[7..packed.len() - 4].to_vec());
            let mut frame = Vec::new();
            compress(codec, None, b"", &mut frame).unwrap();
            [&frame[..7], &blocks.collect::<Vec<_>>(), &[0; 4]].concat()
        }
        _ => parts.flatten().collect(),
    }
}

/// A batch with `payload`, and a header according to `options` and `count`.
fn batch_around(template: &[u8], codec: Compression, payload: &[u8]) -> Vec<u8> {
    let mut bytes = template[..crate::HEADER_SIZE].to_vec();
    bytes[22] = codec.id() as u8;
    bytes.extend_from_slice(payload);
    let length = (bytes.len() - 12) as i32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes
}

fn uncompressed(records: &[Fields]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for (timestamp, key, value, headers) in records {
        let headers: Vec<_> = (0..*headers).map(|_| (&b"header"[..], Some(&b"x"[..]))).collect();
        builder.append(*timestamp, key.as_deref(), Some(value), &headers).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

fn records() -> impl Strategy<Value = Vec<Fields>> {
    let bytes = |size| proptest::collection::vec(0..4_u8, 0..size);
    let record = (-1..i64::from(i32::MAX), proptest::option::of(bytes(100)), bytes(400), 0..4_u8);
    proptest::collection::vec(record, 1..12)
}

fn codec() -> impl Strategy<Value = Compression> {
    proptest::sample::select(Compression::ALL.to_vec())
}

/// Bytes to overwrite, by distance from the end, and a number of bytes to truncate.
fn damage() -> impl Strategy<Value = (Vec<(usize, u8)>, usize)> {
    let cut = prop_oneof![3 => Just(0), 1 => 1..60_usize];
    (proptest::collection::vec((0..3000_usize, any::<u8>()), 0..3), cut)
}

fn damaged(bytes: &mut Vec<u8>, (patches, cut): &(Vec<(usize, u8)>, usize)) {
    for (at, byte) in patches {
        if let Some(at) = bytes.len().checked_sub(1 + at) {
            bytes[at] = *byte;
        }
    }
    bytes.truncate(bytes.len().saturating_sub(*cut));
}

proptest! {
    #[test]
    fn damaged_records_read_the_same_in_pieces_and_as_a_whole(
        records in records(),
        codec in codec(),
        damage in damage(),
        count in proptest::option::of(0..15_i32),
        window in 11_000..12_000_usize,
        tiny in 1..300_usize,
    ) {
        let mut template = uncompressed(&records);
        if let Some(count) = count {
            template[57..61].copy_from_slice(&count.to_be_bytes());
        }
        let mut payload = template.split_off(crate::HEADER_SIZE);
        damaged(&mut payload, &damage);
        let stored = batch_around(&template, Compression::None, &payload);
        assert_agree(&stored, tiny)?;
        let packed = compress_in_parts(codec, &payload);
        assert_agree(&batch_around(&template, codec, &packed), window)?;
    }

    #[test]
    fn damaged_compression_reads_the_same_in_pieces_and_as_a_whole(
        records in records(),
        codec in codec(),
        damage in damage(),
    ) {
        let mut template = uncompressed(&records);
        let payload = template.split_off(crate::HEADER_SIZE);
        let mut packed = compress_in_parts(codec, &payload);
        damaged(&mut packed, &damage);
        let bytes = batch_around(&template, codec, &packed);
        // The codec may claim to need more than the window; reading the whole has no such limit.
        let needs_more = |error: &RecordError| {
            matches!(error, RecordError::Compression(CompressionError::Window { .. }))
        };
        if !matches!(streamed(&bytes, 11_000).0.last(), Some(Err(error)) if needs_more(error)) {
            assert_agree(&bytes, 11_000)?;
        }
    }
}

#[test]
fn zstd_streams_frames_larger_than_the_window() {
    use std::io::Write;
    let records: Vec<_> = (0..40).map(|at| (at, None, vec![at as u8; 60_000], 0)).collect();
    let mut template = uncompressed(&records);
    let payload = template.split_off(crate::HEADER_SIZE);
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(17).unwrap();
    encoder.write_all(&payload).unwrap();
    let mut packed = encoder.finish().unwrap();
    let bytes = batch_around(&template, Compression::Zstd, &packed);
    let (heads, held) = streamed(&bytes, 1 << 20);
    assert_eq!(heads, whole(&bytes));
    assert!(heads.len() == 40 && heads.iter().all(Result::is_ok));
    assert!(held <= 1 << 20);
    // Truncation and damage have the same errors as in a read of the whole payload.
    for at in (20..packed.len()).step_by(7) {
        packed[at] ^= 0x55;
        let bytes = batch_around(&template, Compression::Zstd, &packed);
        let (expected, found) = (whole(&bytes), streamed(&bytes, 1 << 20).0);
        let found = found.last().unwrap();
        if !matches!(found, Err(RecordError::Compression(CompressionError::Window { .. }))) {
            assert_eq!(found, expected.last().unwrap(), "{at}");
        }
        packed[at] ^= 0x55;
    }
}

#[test]
fn codecs_that_need_more_than_the_window_return_an_error() {
    let payload = vec![7; 3 << 20];
    let bare = snap::raw::Encoder::new().compress_vec(&payload).unwrap();
    let mut wide = Vec::new();
    compress(Compression::Zstd, Some(19), &payload, &mut wide).unwrap();
    for (codec, packed) in [(Compression::Snappy, bare), (Compression::Zstd, wide)] {
        let template = uncompressed(&[(0, None, Vec::new(), 0)]);
        let bytes = batch_around(&template, codec, &packed);
        let window_bytes_max = 1 << 20;
        let error = CompressionError::Window { codec, window_bytes_max };
        assert_eq!(streamed(&bytes, window_bytes_max).0, [Err(error.into())]);
        let mut out = Vec::new();
        decompress(codec, &packed, &mut out, LIMITS).unwrap();
        assert!(out == payload);
    }
}

#[test]
fn output_above_the_limits_is_too_large_when_read_in_pieces() {
    let template = uncompressed(&[(0, None, Vec::new(), 0)]);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        let mut packed = Vec::new();
        compress(codec, None, &vec![0; LIMITS.bytes_max + 1], &mut packed).unwrap();
        let bytes = batch_around(&template, codec, &packed);
        assert_eq!(streamed(&bytes, 100_000).0.last(), whole(&bytes).last(), "{codec:?}");
    }
}
