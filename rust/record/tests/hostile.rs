//! Batches that no honest client sends: a typed error for each, and no memory by their claims.
#![expect(clippy::unwrap_used, reason = "tests")]

use pykafka_record::{
    Batch, BatchBuilder, BatchOptions, Compression, CompressionError, HEADER_SIZE, Limits,
    RecordError, compress, decompress,
};

const COUNT_AT: usize = 57;
const LAST_OFFSET_DELTA_AT: usize = 23;
const BASE_TIMESTAMP_AT: usize = 27;
const ATTRIBUTES_AT: usize = 21;

/// A batch of three records; record 1 has key, value and a header.
fn batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(0, None, None, &[]).unwrap();
    builder.append(1, Some(b"k"), Some(b"v"), &[(b"h", Some(b"x"))]).unwrap();
    builder.append(2, None, None, &[]).unwrap();
    let mut out = Vec::new();
    builder.build(&mut out).unwrap();
    out
}

fn patched(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut batch = batch();
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    batch
}

/// A batch whose only record has the given bytes, its size before them.
fn with_record(body: &[u8]) -> Vec<u8> {
    let mut bytes = batch();
    bytes.truncate(HEADER_SIZE);
    bytes[COUNT_AT..].copy_from_slice(&1_i32.to_be_bytes());
    bytes.push((body.len() * 2) as u8);
    bytes.extend_from_slice(body);
    let length = (bytes.len() - 12) as i32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// The first error of a batch's records, and the number of records before it.
fn fault(bytes: &[u8]) -> (usize, RecordError) {
    let mut scratch = Vec::new();
    let batch = Batch::split(bytes).unwrap().0;
    let records = match batch.records(&mut scratch, Limits::default()) {
        Ok(records) => records,
        Err(error) => return (0, error),
    };
    let found: Vec<_> = records.collect();
    let good = found.iter().take_while(|record| record.is_ok()).count();
    assert_eq!(found.len(), good + 1, "iteration ends with its first error");
    (good, found.into_iter().next_back().unwrap().unwrap_err())
}

#[test]
fn wrong_record_count_is_rejected() {
    let count = |count: i32| fault(&patched(COUNT_AT, &count.to_be_bytes()));
    assert_eq!(count(-1), (0, RecordError::NegativeCount(-1)));
    assert_eq!(count(4), (3, RecordError::TooFew { expected: 4, found: 3 }));
    assert_eq!(count(i32::MAX), (3, RecordError::TooFew { expected: i32::MAX, found: 3 }));
    assert_eq!(count(2), (2, RecordError::LeftOver(7)));
    assert!(matches!(count(0), (0, RecordError::LeftOver(_))));
}

#[test]
fn offsets_outside_the_batch_are_rejected() {
    let bytes = patched(LAST_OFFSET_DELTA_AT, &1_i32.to_be_bytes());
    assert_eq!(fault(&bytes), (2, RecordError::OffsetDelta(2)));
    let bytes = patched(0, &i64::MAX.to_be_bytes());
    assert_eq!(fault(&bytes), (1, RecordError::OffsetDelta(1)));
    let batch = Batch::split(&bytes).unwrap().0;
    assert!(!batch.has_valid_offsets());
    assert_eq!(batch.next_offset(), i64::MAX);
}

#[test]
fn timestamps_that_overflow_are_rejected() {
    let bytes = patched(BASE_TIMESTAMP_AT, &i64::MAX.to_be_bytes());
    assert_eq!(fault(&bytes), (1, RecordError::Timestamp(1)));
}

#[test]
fn unknown_codecs_are_rejected() {
    for id in 5..8_u8 {
        let bytes = patched(ATTRIBUTES_AT + 1, &[id]);
        assert!(matches!(fault(&bytes), (0, RecordError::UnknownCompression(_))));
    }
}

#[test]
fn lengths_of_fields_that_do_not_fit_are_rejected() {
    // Attributes, timestamp and offset delta, then key, value, header count.
    let good = [0, 0, 0, 1, 1, 0];
    assert!(Batch::split(&with_record(&good)).unwrap().0.records_count() == 1);
    let huge = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    for (body, error) in [
        (vec![0, 0, 0, 3, 1, 0], RecordError::FieldLength(0)),
        (vec![0, 0, 0, 1, 3, 0], RecordError::FieldLength(0)),
        (vec![0, 0, 0, 2, 1, 0], RecordError::Varint(0)),
        ([&[0, 0, 0][..], &huge].concat(), RecordError::FieldLength(0)),
        (vec![0, 0, 0, 1, 1, 1], RecordError::HeaderCount(0)),
        ([&[0, 0, 0, 1, 1][..], &huge].concat(), RecordError::HeaderCount(0)),
        (vec![0, 0, 0, 1, 1, 2, 1, 1], RecordError::FieldLength(0)),
        (vec![0, 0, 0, 1, 1, 2, 0, 3], RecordError::FieldLength(0)),
        (vec![0, 0, 0, 1, 1, 0, 0], RecordError::Size(0)),
        (vec![0, 0, 0, 1, 1], RecordError::Varint(0)),
        (vec![], RecordError::Size(0)),
        (
            vec![0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
            RecordError::Varint(0),
        ),
        (vec![0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1, 1, 0], RecordError::Varint(0)),
        (vec![0, 0, 1, 1, 1, 0], RecordError::OffsetDelta(0)),
    ] {
        assert_eq!(fault(&with_record(&body)), (0, error), "{body:?}");
    }
}

#[test]
fn sizes_of_records_that_do_not_fit_are_rejected() {
    for size in [1, 0x7f, 0x3e] {
        let bytes = patched(HEADER_SIZE, &[size]);
        assert_eq!(fault(&bytes), (0, RecordError::Size(0)), "{size}");
    }
}

fn bomb(codec: Compression, zeros: usize) -> Vec<u8> {
    let mut packed = Vec::new();
    compress(codec, None, &vec![0; zeros], &mut packed).unwrap();
    packed
}

#[test]
fn bombs_stop_at_the_absolute_bound() {
    let limits = Limits { bytes_max: 1 << 20, ..Limits::NONE };
    for codec in Compression::ALL {
        let packed = bomb(codec, (1 << 20) + 1);
        let mut out = Vec::new();
        let error = decompress(codec, &packed, &mut out, limits).unwrap_err();
        assert_eq!(error, CompressionError::TooLarge { codec, bytes_max: 1 << 20 });
        assert!(out.capacity() <= 3 << 20, "{codec:?} took {}", out.capacity());
        decompress(codec, &bomb(codec, 1 << 20), &mut out, limits).unwrap();
        assert_eq!(out.len(), 1 << 20, "the bound itself is allowed");
    }
}

#[test]
fn bombs_stop_at_the_ratio() {
    let limits = Limits { ratio_max: 20, ..Limits::NONE };
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let packed = bomb(codec, 64 << 20);
        let bytes_max = limits.output_bytes_max(packed.len());
        let mut out = Vec::new();
        let result = decompress(codec, &packed, &mut out, limits);
        let too_large = Err(CompressionError::TooLarge { codec, bytes_max });
        assert_eq!(result, too_large, "{codec:?}, {} bytes", packed.len());
        assert!(out.capacity() <= 2 * bytes_max);
    }
}

#[test]
fn bomb_in_a_batch_is_an_error_of_its_records() {
    let mut builder = BatchBuilder::new(BatchOptions {
        compression: Compression::Zstd,
        ..BatchOptions::default()
    });
    builder.append(0, None, Some(&vec![0; 2 << 20]), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    let limits = Limits { bytes_max: 1 << 20, ratio_max: 1000, ..Limits::NONE };
    let batch = Batch::split(&bytes).unwrap().0;
    let error = batch.records(&mut Vec::new(), limits).unwrap_err();
    assert!(matches!(error, RecordError::Compression(CompressionError::TooLarge { .. })));
}

fn refused(codec: Compression, input: &[u8]) -> CompressionError {
    let mut out = Vec::new();
    let error = decompress(codec, input, &mut out, Limits::default()).unwrap_err();
    assert!(out.capacity() <= 1 << 20, "{codec:?} took {} bytes", out.capacity());
    error
}

#[test]
fn sizes_declared_by_snappy_are_not_trusted() {
    // A length of 2^32-1 in a block of 8 bytes, bare and framed.
    let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0];
    let codec = Compression::Snappy;
    assert!(matches!(refused(codec, &claim), CompressionError::TooLarge { .. }));
    let mut framed = Vec::new();
    compress(codec, None, b"", &mut framed).unwrap();
    framed.extend_from_slice(&8_u32.to_be_bytes());
    framed.extend_from_slice(&claim);
    assert!(matches!(refused(codec, &framed), CompressionError::TooLarge { .. }));
    // 15 MiB are within the bounds, but not to be had from 8 bytes.
    let claim = [0x80, 0x80, 0x80 | 0x40, 0x07, 0, 0, 0, 0];
    assert!(matches!(refused(codec, &claim), CompressionError::Corrupt { .. }));
    // A block size of 2^32-1, and a framing header cut off.
    framed.truncate(16);
    framed.extend_from_slice(&[0xff; 4]);
    assert!(matches!(refused(codec, &framed), CompressionError::Corrupt { .. }));
    assert!(matches!(refused(codec, &framed[..12]), CompressionError::Corrupt { .. }));
}

#[test]
fn windows_and_dictionaries_of_zstd_are_rejected() {
    let codec = Compression::Zstd;
    let frame = |header: &[u8]| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd];
        frame.extend_from_slice(header);
        frame.extend_from_slice(&[3, 0, 0, 0]);
        frame
    };
    // Windows of 2^31 and 128 MiB + 1/8; one segment of 2^31; a dictionary.
    for header in [&[0, 21 << 3][..], &[0, (17 << 3) | 1], &[0xa0, 0, 0, 0, 0x80], &[1, 0, 9]] {
        assert!(matches!(refused(codec, &frame(header)), CompressionError::Corrupt { .. }));
    }
}

#[test]
fn zstd_frames_may_be_concatenated_and_skipped() {
    let mut input = Vec::new();
    compress(Compression::Zstd, None, b"one", &mut input).unwrap();
    input.extend_from_slice(&[0x5a, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9]);
    compress(Compression::Zstd, None, b"two", &mut input).unwrap();
    let mut out = Vec::new();
    decompress(Compression::Zstd, &input, &mut out, Limits::default()).unwrap();
    assert_eq!(out, b"onetwo");
}

#[test]
fn gzip_members_may_be_concatenated_with_every_optional_field() {
    let mut member = Vec::new();
    compress(Compression::Gzip, None, b"one", &mut member).unwrap();
    let mut input = member.clone();
    input.extend_from_slice(&[0x1f, 0x8b, 8, 0b1_1110, 0, 0, 0, 0, 0, 3]);
    input.extend_from_slice(b"\x02\0ab\x6eame\0comment\0hc");
    input.extend_from_slice(&member[10..]);
    input.extend_from_slice(b"not a member");
    let mut out = Vec::new();
    decompress(Compression::Gzip, &input, &mut out, Limits::default()).unwrap();
    assert_eq!(out, b"oneone");
}

#[test]
fn snappy_is_read_raw_and_in_concatenated_framings() {
    let bare = snap::raw::Encoder::new().compress_vec(b"bare").unwrap();
    let mut out = Vec::new();
    decompress(Compression::Snappy, &bare, &mut out, Limits::default()).unwrap();
    assert_eq!(out, b"bare");
    let mut framed = Vec::new();
    compress(Compression::Snappy, None, b"one", &mut framed).unwrap();
    compress(Compression::Snappy, None, b"two", &mut framed).unwrap();
    decompress(Compression::Snappy, &framed, &mut out, Limits::default()).unwrap();
    assert_eq!(out, b"onetwo");
}

#[test]
fn lz4_frames_are_read_with_sizes_and_checksums_and_written_for_any_reader() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
    use std::io::{Read, Write};
    let input = b"0123456789".repeat(30_000);
    for (size, checksums) in [(BlockSize::Max64KB, false), (BlockSize::Max4MB, true)] {
        let info = FrameInfo::new().block_size(size).block_mode(BlockMode::Independent);
        let info = info.block_checksums(checksums).content_checksum(checksums);
        let info = info.content_size(checksums.then_some(input.len() as u64));
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&input).unwrap();
        let mut out = Vec::new();
        let packed = encoder.finish().unwrap();
        decompress(Compression::Lz4, &packed, &mut out, Limits::default()).unwrap();
        assert!(out == input);
    }
    let mut packed = Vec::new();
    compress(Compression::Lz4, None, &input, &mut packed).unwrap();
    let mut read = Vec::new();
    FrameDecoder::new(&packed[..]).read_to_end(&mut read).unwrap();
    assert!(read == input);
}

#[test]
fn a_declared_lz4_content_checksum_must_exist_but_may_be_wrong() {
    use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
    use std::io::Write;
    let info = FrameInfo::new().block_mode(BlockMode::Independent).content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(b"content").unwrap();
    let mut packed = encoder.finish().unwrap();
    for missing in 1..=4 {
        let cut = &packed[..packed.len() - missing];
        assert!(matches!(refused(Compression::Lz4, cut), CompressionError::Corrupt { .. }));
    }
    *packed.last_mut().unwrap() ^= 1;
    let mut out = Vec::new();
    decompress(Compression::Lz4, &packed, &mut out, Limits::default()).unwrap();
    assert_eq!(out, b"content");
}

#[test]
fn lz4_frames_that_java_cannot_read_are_rejected() {
    use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
    use std::io::Write;
    let info = FrameInfo::new().block_mode(BlockMode::Linked);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(b"linked").unwrap();
    let codec = Compression::Lz4;
    assert!(matches!(refused(codec, &encoder.finish().unwrap()), CompressionError::Corrupt { .. }));
    let mut packed = bomb(codec, 10);
    packed[6] ^= 1;
    assert!(matches!(refused(codec, &packed), CompressionError::Corrupt { .. }));
}

#[test]
fn truncation_anywhere_is_an_error_or_gives_a_prefix() {
    let input = b"some text that repeats, some text that repeats".repeat(9);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let mut packed = Vec::new();
        compress(codec, None, &input, &mut packed).unwrap();
        for end in 0..packed.len() {
            let mut out = Vec::new();
            if decompress(codec, &packed[..end], &mut out, Limits::default()).is_ok() {
                assert_eq!((codec, end, out.len()), (Compression::Snappy, 16, 0));
            }
        }
    }
}
