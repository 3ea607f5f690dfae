use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use pykafka_record::{ProducerEpoch, Record};

use super::*;

const NOW: i64 = 1_700_000_000_000;
const HOUR: i64 = 3_600_000;
const HEADER: usize = pykafka_record::HEADER_SIZE;

fn rules() -> ValidateRules {
    ValidateRules {
        topic_compacted: false,
        compression: CompressionType::Producer,
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: HOUR,
        batch_bytes_max: 1_048_588,
        limits: Limits::default(),
        origin: AppendOrigin::Client,
        rebuilds: true,
    }
}

fn check(bytes: &mut [u8], rules: &ValidateRules) -> Result<Validated, ValidateError> {
    validate(bytes, rules, NOW, &mut Scratch::default(), &Cancellation::default())
}

/// A batch with these records (timestamp, key); each value is unique.
fn batch_of(options: BatchOptions, records: &[(i64, Option<&[u8]>)]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options);
    for (index, (timestamp, key)) in records.iter().enumerate() {
        let value = format!("value {index} {}", "x".repeat(50));
        builder.append(*timestamp, *key, Some(value.as_bytes()), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

fn three(compression: Compression) -> Vec<u8> {
    let options = BatchOptions { compression, ..BatchOptions::default() };
    batch_of(options, &[(NOW, Some(b"a")), (NOW + 5, None), (NOW + 2, Some(b"c"))])
}

/// Overwrites a field and corrects the checksum.
fn patched(mut bytes: Vec<u8>, at: usize, field: &[u8]) -> Vec<u8> {
    bytes[at..at + field.len()].copy_from_slice(field);
    let crc = pykafka_record::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// A batch of `count` records with this payload.
fn raw(attributes: i16, count: i32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = three(Compression::None);
    bytes.truncate(HEADER);
    bytes.extend_from_slice(payload);
    let length = (bytes.len() - 12) as i32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    bytes[57..61].copy_from_slice(&count.to_be_bytes());
    patched(bytes, 21, &attributes.to_be_bytes())
}

/// The offset, timestamp, key and value of a record.
type Row = (i64, i64, Option<Vec<u8>>, Vec<u8>);

fn read(bytes: &[u8]) -> Vec<Row> {
    let (batch, _) = Batch::split(bytes).unwrap();
    assert!(batch.is_crc_valid());
    let mut scratch = Vec::new();
    let records = batch.records(&mut scratch, Limits::default()).unwrap();
    let row = |r: Record<'_>| {
        (r.offset, r.timestamp, r.key.map(<[u8]>::to_vec), r.value.unwrap().to_vec())
    };
    records.map(|record| row(record.unwrap())).collect()
}

#[test]
fn good_batches_of_every_codec_stay_byte_for_byte() {
    for codec in Compression::ALL {
        let original = three(codec);
        let mut bytes = original.clone();
        let validated = check(&mut bytes, &rules()).unwrap();
        let expected = Validated {
            rewritten: None,
            size: original.len(),
            uncompressed_size: three(Compression::None).len(),
            records_count: 3,
            max_timestamp: NOW + 5,
            log_append_time_ms: -1,
        };
        assert_eq!((validated, bytes), (expected, original), "{codec:?}");
    }
}

#[test]
fn bytes_after_the_first_batch_are_ignored() {
    let mut bytes = three(Compression::None);
    let size = bytes.len();
    bytes.extend_from_slice(&[0xff; 30]);
    assert_eq!(check(&mut bytes, &rules()).unwrap().size, size);
}

#[test]
fn invalid_headers_are_rejected_each_with_its_reason() {
    let good = three(Compression::None);
    let cut = good.len() - 1;
    let size = good.len();
    let with_id = |sequence: i32| {
        let bytes = patched(good.clone(), 43, &7i64.to_be_bytes());
        patched(bytes, 53, &sequence.to_be_bytes())
    };
    let mut corrupt = good.clone();
    corrupt[70] ^= 1;
    let stored = Batch::split(&corrupt).unwrap().0.crc();
    let computed = pykafka_record::crc32c(&corrupt[21..]);
    for (bytes, expected) in [
        (patched(good.clone(), 0, &5i64.to_be_bytes()), ValidateError::BaseOffset(5)),
        (patched(good.clone(), 0, &(-1i64).to_be_bytes()), ValidateError::BaseOffset(-1)),
        (corrupt, ValidateError::Crc { stored, computed }),
        (patched(good.clone(), 23, &(-1i32).to_be_bytes()), ValidateError::OffsetRange(-1)),
        (patched(good.clone(), 57, &0i32.to_be_bytes()), ValidateError::Count(0)),
        (patched(good.clone(), 57, &(-1i32).to_be_bytes()), ValidateError::Count(-1)),
        (
            patched(good.clone(), 57, &i32::MAX.to_be_bytes()),
            ValidateError::CountMismatch { offsets: 3, records: i32::MAX },
        ),
        (
            patched(good.clone(), 23, &i32::MAX.to_be_bytes()),
            ValidateError::CountMismatch { offsets: 1 << 31, records: 3 },
        ),
        (patched(good.clone(), 21, &0x20i16.to_be_bytes()), ValidateError::Control),
        (with_id(-1), ValidateError::Sequence { producer_id: ProducerId::new(7), sequence: -1 }),
        (
            good[..cut].to_vec(),
            ValidateError::Malformed(BatchError::Incomplete { needed: size, have: cut }),
        ),
    ] {
        let mut changed = bytes.clone();
        assert_eq!(check(&mut changed, &rules()), Err(expected));
        assert_eq!(changed, bytes, "a refused batch is left alone");
    }
    assert!(check(&mut with_id(0), &rules()).is_ok());
}

#[test]
fn coordinators_may_write_control_batches_at_any_offset() {
    let options = BatchOptions { control: true, base_offset: 9, ..BatchOptions::default() };
    let mut bytes = batch_of(options, &[(NOW, Some(&[0, 0, 0, 1]))]);
    let coordinator = ValidateRules { origin: AppendOrigin::Coordinator, ..rules() };
    assert!(check(&mut bytes, &coordinator).is_ok());
}

#[test]
fn undecodable_and_broken_records_are_distinguished() {
    let good = three(Compression::None);
    let payload = &good[HEADER..];
    for attributes in [1, 2, 3, 4, 5, 7] {
        let error = check(&mut raw(attributes, 3, payload), &rules()).unwrap_err();
        assert!(matches!(error, ValidateError::Undecodable(_)), "{attributes}: {error:?}");
    }
    let garbage = check(&mut raw(0, 3, &[0xff; 40]), &rules()).unwrap_err();
    assert!(matches!(garbage, ValidateError::Undecodable(_)), "{garbage:?}");
    let cut = check(&mut raw(0, 3, &payload[..payload.len() - 3]), &rules()).unwrap_err();
    assert!(matches!(cut, ValidateError::Records(_)), "{cut:?}");
    for count in [2, 4] {
        let error = check(&mut raw(0, count, payload), &rules()).unwrap_err();
        assert!(matches!(error, ValidateError::Records(_)), "{count}: {error:?}");
    }
}

#[test]
fn odd_attribute_bits_are_kept() {
    for attributes in [0x40i16, 0x100, i16::MIN] {
        let original = patched(three(Compression::None), 21, &attributes.to_be_bytes());
        let mut bytes = original.clone();
        check(&mut bytes, &rules()).unwrap();
        assert_eq!(bytes[21..23], original[21..23], "{attributes:#x}");
    }
}

#[test]
fn batches_above_the_maximum_are_rejected_also_after_a_rewrite() {
    let mut bytes = three(Compression::None);
    let size = bytes.len();
    let small = ValidateRules { batch_bytes_max: size - 1, ..rules() };
    let expected = Err(ValidateError::TooLarge { size, bytes_max: size - 1 });
    assert_eq!(check(&mut bytes, &small), expected);
    let mut compressed = three(Compression::Zstd);
    let fixed = CompressionType::Fixed(Compression::None, None);
    let uncompressed = ValidateRules { compression: fixed, ..small };
    assert!(compressed.len() < size && check(&mut compressed, &uncompressed) == expected);
}

#[test]
fn decompression_stops_at_the_limit() {
    let mut builder = BatchBuilder::new(BatchOptions {
        compression: Compression::Gzip,
        ..BatchOptions::default()
    });
    builder.append(NOW, None, Some(&vec![0; 1 << 20]), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    let limits = Limits { bytes_max: 1 << 16, ..Limits::default() };
    let error = check(&mut bytes, &ValidateRules { limits, ..rules() }).unwrap_err();
    assert!(matches!(error, ValidateError::DecompressedTooLarge(_)), "{error:?}");
}

#[test]
fn records_of_compressed_batches_must_not_exceed_the_maximum() {
    for codec in Compression::ALL {
        let options = BatchOptions { compression: codec, ..BatchOptions::default() };
        let mut bytes = batch_of(options, &[(NOW, Some(b"k"))]);
        // Attributes, two deltas, key and value with their lengths, and a count of headers.
        let size = 3 + 2 + 59 + 1;
        let limits = |record_bytes_max| Limits { record_bytes_max, ..Limits::default() };
        let at_most = |size| ValidateRules { limits: limits(size), ..rules() };
        check(&mut bytes, &at_most(size)).unwrap();
        let verdict = check(&mut bytes, &at_most(size - 1));
        let too_large = RecordError::TooLarge { index: 0, size, bytes_max: size - 1 };
        if codec == Compression::None {
            verdict.unwrap();
        } else {
            assert_eq!(verdict, Err(ValidateError::Records(too_large)), "{codec:?}");
        }
    }
}

#[test]
fn compacted_topics_refuse_records_without_key_by_their_index() {
    for codec in Compression::ALL {
        let compacted = ValidateRules { topic_compacted: true, ..rules() };
        let error = check(&mut three(codec), &compacted).unwrap_err();
        let fault = RecordFault { batch_index: 1, kind: RecordFaultKind::NullKey };
        assert_eq!(error.record_faults(), [fault], "{codec:?}");
        assert!(!error.is_invalid_timestamp());
    }
}

#[test]
fn timestamps_out_of_range_are_rejected_and_a_missing_one_is_accepted() {
    let bounds = ValidateRules { before_max_ms: 1000, ..rules() };
    let times = [NOW - 1001, NOW - 1000, -1, NOW + HOUR, NOW + HOUR + 1];
    let records = times.map(|time| (time, None));
    let error = check(&mut batch_of(BatchOptions::default(), &records), &bounds).unwrap_err();
    let faulty: Vec<i32> = error.record_faults().iter().map(|fault| fault.batch_index).collect();
    assert_eq!(faulty, [0, 4]);
    assert!(error.is_invalid_timestamp());
}

#[test]
fn a_wrong_max_timestamp_is_corrected_in_place() {
    for codec in Compression::ALL {
        for wrong in [0i64, NOW + 100, i64::MAX] {
            let mut bytes = patched(three(codec), 35, &wrong.to_be_bytes());
            let validated = check(&mut bytes, &rules()).unwrap();
            assert_eq!((validated.max_timestamp, &validated.rewritten), (NOW + 5, &None));
            assert_eq!(bytes, three(codec), "{codec:?}");
        }
    }
}

#[test]
fn log_append_time_stamps_the_header_and_nothing_else() {
    let stamping = ValidateRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    for codec in Compression::ALL {
        let mut bytes = three(codec);
        let validated = validate(
            &mut bytes,
            &stamping,
            NOW + 77,
            &mut Scratch::default(),
            &Cancellation::default(),
        )
        .unwrap();
        assert_eq!((validated.log_append_time_ms, validated.max_timestamp), (NOW + 77, NOW + 77));
        let (batch, _) = Batch::split(&bytes).unwrap();
        assert!(batch.is_crc_valid());
        assert_eq!(batch.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (NOW, NOW + 77));
    }
}

#[test]
fn the_log_append_time_bit_of_a_producer_is_cleared_or_refused() {
    let attributes = 8i16.to_be_bytes();
    let mut cleared = patched(three(Compression::None), 21, &attributes);
    check(&mut cleared, &rules()).unwrap();
    assert_eq!(cleared, three(Compression::None));
    let stamping = ValidateRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    let error =
        check(&mut patched(three(Compression::None), 21, &attributes), &stamping).unwrap_err();
    assert_eq!(error.record_faults().len(), 3);
    assert!(error.is_invalid_timestamp());
}

#[test]
fn compression_type_rewrites_only_batches_in_another_codec() {
    for source in Compression::ALL {
        for target in Compression::ALL {
            let options = BatchOptions {
                compression: source,
                producer_id: ProducerId::new(7),
                producer_epoch: ProducerEpoch::new(2),
                base_sequence: 5,
                transactional: true,
                ..BatchOptions::default()
            };
            let mut bytes = batch_of(options, &[(NOW, Some(b"a")), (NOW - 5, None)]);
            let fixed = CompressionType::Fixed(target, target.level_default());
            let validated =
                check(&mut bytes, &ValidateRules { compression: fixed, ..rules() }).unwrap();
            assert_eq!(validated.rewritten.is_some(), source != target);
            let stored = validated.rewritten.unwrap_or_else(|| bytes.clone());
            let (batch, _) = Batch::split(&stored).unwrap();
            assert_eq!(batch.compression(), Ok(target));
            assert_eq!(
                (batch.producer_id(), batch.producer_epoch(), batch.base_sequence()),
                (ProducerId::new(7), ProducerEpoch::new(2), 5)
            );
            assert!(batch.is_transactional());
            assert_eq!(batch.max_timestamp(), NOW);
            assert_eq!(read(&stored), read(&bytes), "{source:?} to {target:?}");
        }
    }
}

#[test]
fn repeated_deltas_pass_uncompressed_and_are_renumbered_compressed() {
    let good = batch_of(BatchOptions::default(), &[(NOW, None)]);
    let payload = [&good[HEADER..], &good[HEADER..]].concat();
    let mut plain = raw(0, 2, &payload);
    let original = plain.clone();
    assert_eq!(check(&mut plain, &rules()).unwrap().rewritten, None);
    assert_eq!(plain[HEADER..], original[HEADER..]);
    let mut compressed = Vec::new();
    pykafka_record::compress(Compression::Lz4, None, &payload, &mut compressed).unwrap();
    let validated = check(&mut raw(3, 2, &compressed), &rules()).unwrap();
    let rewritten = validated.rewritten.expect("deltas 0, 0 are not stored compressed");
    let offsets: Vec<i64> = read(&rewritten).iter().map(|record| record.0).collect();
    assert_eq!(offsets, [0, 1]);
    let mut unchanged = raw(3, 2, &compressed);
    let verdict = check(&mut unchanged, &ValidateRules { rebuilds: false, ..rules() });
    assert_eq!((verdict, unchanged), (Err(ValidateError::Rebuild), raw(3, 2, &compressed)));
}

proptest! {
    #[test]
    fn mutated_batches_never_panic_and_rejected_ones_are_unchanged(
        codec in 0..5i16,
        target in 0..6i16,
        changes in prop::collection::vec((0..400usize, any::<u8>()), 0..4),
        fix_crc in any::<bool>(),
    ) {
        let mut bytes = three(Compression::try_from(codec).unwrap());
        for (at, byte) in changes {
            let size = bytes.len();
            bytes[at % size] = byte;
        }
        if fix_crc {
            bytes = patched(bytes, 0, &[]);
        }
        let before = bytes.clone();
        let compression = Compression::try_from(target)
            .map_or(CompressionType::Producer, |codec| CompressionType::Fixed(codec, None));
        match check(&mut bytes, &ValidateRules { compression, ..rules() }) {
            Err(_) => prop_assert_eq!(bytes, before),
            Ok(validated) => {
                let stored = validated.rewritten.as_deref().unwrap_or(&bytes[..validated.size]);
                prop_assert_eq!(read(stored).len() as i32, validated.records_count);
            }
        }
    }
}

/// Validates 8 MiB of records through a window of 3 MiB, which is large enough for zstd's default
/// level.
fn check_through_window(
    bytes: &mut [u8],
    rules: &ValidateRules,
) -> Result<Validated, ValidateError> {
    validate(bytes, rules, NOW, &mut Scratch::new(3 << 20), &Cancellation::default())
}

fn eight_mib(codec: Compression, timestamp: i64) -> Vec<u8> {
    let options = BatchOptions { compression: codec, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for index in 0..1024 {
        let key = (index % 2 == 0).then_some(&b"key"[..]);
        builder.append(timestamp + index, key, Some(&[index as u8; 8 << 10]), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

#[test]
fn validation_through_a_window_equals_validation_as_a_whole() {
    let compacted = ValidateRules { topic_compacted: true, ..rules() };
    let stamping = ValidateRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    for codec in Compression::ALL {
        let bounds = ValidateRules { batch_bytes_max: 16 << 20, ..rules() };
        for rules in [bounds, compacted, stamping] {
            let rules = ValidateRules { batch_bytes_max: 16 << 20, ..rules };
            for timestamp in [NOW, NOW + 2 * HOUR] {
                let (mut whole, mut streamed) =
                    (eight_mib(codec, timestamp), eight_mib(codec, timestamp));
                let expected = check(&mut whole, &rules);
                assert_eq!(check_through_window(&mut streamed, &rules), expected, "{codec:?}");
                assert!(whole == streamed);
            }
        }
    }
}

#[test]
fn records_that_cross_a_window_must_not_exceed_the_maximum() {
    let value = vec![b'v'; 8 << 20];
    let options = BatchOptions { compression: Compression::Lz4, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    builder.append(NOW, None, Some(&value), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    let limits = Limits { record_bytes_max: value.len(), ..Limits::default() };
    let rules = ValidateRules { limits, ..rules() };
    let verdict = check_through_window(&mut bytes, &rules);
    assert_eq!(verdict, check(&mut bytes, &rules));
    assert!(matches!(verdict, Err(ValidateError::Records(RecordError::TooLarge { .. }))));
}

#[test]
fn large_batches_are_rewritten_only_as_a_whole() {
    let to_zstd = CompressionType::Fixed(Compression::Zstd, None);
    let rules = ValidateRules { compression: to_zstd, ..rules() };
    let mut bytes = eight_mib(Compression::Lz4, NOW);
    match check_through_window(&mut bytes, &rules) {
        Err(ValidateError::DecompressedTooLarge(error)) => assert!(error.needs_larger_window()),
        other => panic!("{other:?}"),
    }
    assert!(check(&mut bytes, &rules).unwrap().rewritten.is_some());
}

#[test]
fn a_validation_that_is_cancelled_ends_between_records_and_between_pieces_of_one() {
    let to_zstd = CompressionType::Fixed(Compression::Zstd, None);
    let value = vec![b'v'; 8 << 20];
    let lz4 = BatchOptions { compression: Compression::Lz4, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(lz4);
    builder.append(NOW, None, Some(&value), &[]).unwrap();
    let mut one = Vec::new();
    builder.build(&mut one).unwrap();
    for _ in 0..20_000 {
        builder.append(NOW, None, None, &[]).unwrap();
    }
    let mut many = Vec::new();
    builder.build(&mut many).unwrap();
    for (mut bytes, questions_min) in [(one, 8 << 2), (many, 20_000 / 4096)] {
        let before = bytes.clone();
        let rules = ValidateRules { compression: to_zstd, ..rules() };
        let mut validate_until = |question: usize| {
            let asked = Arc::new(AtomicUsize::new(0));
            let counter = asked.clone();
            let cancellation =
                Cancellation::when(move || counter.fetch_add(1, Ordering::Relaxed) == question);
            let mut scratch = Scratch::default();
            let result = validate(&mut bytes, &rules, NOW, &mut scratch, &cancellation);
            let is_cancelled = matches!(result, Err(ValidateError::Cancelled(_)));
            assert!(is_cancelled || result.unwrap().rewritten.is_some());
            assert_eq!(bytes, before);
            (is_cancelled, asked.load(Ordering::Relaxed))
        };
        let (_, questions) = validate_until(usize::MAX);
        assert!(questions >= questions_min, "{questions}");
        for question in [0, questions / 2, questions - 1] {
            assert_eq!(validate_until(question), (true, question + 1));
        }
    }
}

#[test]
fn of_many_rejected_records_the_first_are_listed_and_all_are_counted() {
    let error = check(&mut eight_mib(Compression::Gzip, NOW + 2 * HOUR), &rules()).unwrap_err();
    assert_eq!(error.record_faults().len(), Rejected::LISTED_MAX);
    assert!(error.is_invalid_timestamp());
    assert!(error.to_string().contains("rejected: 1024 in total, the first: record 0:"), "{error}");
}
