//! Built batches are read unchanged, with every codec and any record.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../fuzz/random.rs"]
mod random;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pykafka_record::{
    Batch, BatchBuilder, BatchMut, BatchOptions, BuildError, Cancellation, Compression,
    CompressionError, LeaderEpoch, Limits, ProducerEpoch, ProducerId, TimestampType, compress,
    decompress,
};
use random::Random;

type Bytes = Vec<u8>;
type OwnedHeader = (Bytes, Option<Bytes>);
type OwnedRecord = (i64, Option<Bytes>, Option<Bytes>, Vec<OwnedHeader>);

fn record() -> impl Strategy<Value = OwnedRecord> {
    let bytes = || option::of(vec(any::<u8>(), 0..100));
    let header = (vec(any::<u8>(), 0..10), option::of(vec(any::<u8>(), 0..10)));
    (-1..i64::MAX / 2, bytes(), bytes(), vec(header, 0..4))
}

fn append(builder: &mut BatchBuilder, record: &OwnedRecord) -> Result<(), BuildError> {
    let (timestamp, key, value, headers) = record;
    let headers: Vec<_> = headers.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
    builder.append(*timestamp, key.as_deref(), value.as_deref(), &headers)
}

fn build(options: BatchOptions, records: &[OwnedRecord]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options);
    for record in records {
        append(&mut builder, record).unwrap();
    }
    let mut out = Vec::new();
    assert_eq!(builder.build(&mut out).unwrap(), out.len());
    assert_eq!(builder.records_count(), 0);
    out
}

fn read(batch: Batch<'_>) -> Vec<OwnedRecord> {
    let mut scratch = Vec::new();
    let records = batch.records(&mut scratch, Limits::default()).unwrap();
    records
        .map(|record| {
            let record = record.unwrap();
            let headers = record.headers.iter().map(|(k, v)| (k.to_vec(), v.map(<[u8]>::to_vec)));
            let (key, value) = (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec));
            (record.timestamp, key, value, headers.collect())
        })
        .collect()
}

fn codec() -> impl Strategy<Value = Compression> {
    proptest::sample::select(&Compression::ALL[..])
}

proptest! {
    #[test]
    fn built_records_are_read_unchanged(
        compression in codec(),
        records in vec(record(), 1..20),
        base_offset in 0..i64::MAX - 100,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence in -1..i32::MAX,
        transactional: bool,
    ) {
        let options = BatchOptions {
            compression,
            base_offset,
            producer_id: ProducerId::new(producer_id),
            producer_epoch: ProducerEpoch::new(producer_epoch),
            base_sequence,
            transactional,
            ..BatchOptions::default()
        };
        let bytes = build(options, &records);
        let (batch, rest) = Batch::split(&bytes).unwrap();
        prop_assert!(rest.is_empty() && batch.is_crc_valid() && batch.has_valid_offsets());
        prop_assert_eq!(batch.compression().unwrap(), compression);
        prop_assert_eq!(batch.base_offset(), base_offset);
        prop_assert_eq!(batch.records_count() as usize, records.len());
        prop_assert_eq!(batch.next_offset(), base_offset + records.len() as i64);
        prop_assert_eq!(batch.producer_id().get(), producer_id);
        prop_assert_eq!(batch.producer_epoch().get(), producer_epoch);
        prop_assert_eq!(batch.base_sequence(), base_sequence);
        prop_assert_eq!(batch.is_transactional(), transactional);
        prop_assert_eq!(batch.max_timestamp(), records.iter().map(|r| r.0).max().unwrap());
        prop_assert_eq!(read(batch), records);
    }

    #[test]
    fn records_appended_again_are_the_same(compression in codec(), records in vec(record(), 1..9)) {
        let bytes = build(BatchOptions::default(), &records);
        let (batch, _) = Batch::split(&bytes).unwrap();
        let mut builder = BatchBuilder::new(BatchOptions { compression, ..Default::default() });
        for record in batch.records(&mut Vec::new(), Limits::default()).unwrap() {
            builder.append_record(&record.unwrap()).unwrap();
        }
        let mut again = Vec::new();
        builder.build(&mut again).unwrap();
        prop_assert_eq!(read(Batch::split(&again).unwrap().0), records);
    }

    #[test]
    fn compressed_bytes_decompress_unchanged(
        codec in codec(),
        seed in vec(any::<u8>(), 0..1000),
        repeats in 1..300_usize,
    ) {
        let input = seed.repeat(repeats);
        let mut packed = vec![1, 2, 3];
        compress(codec, None, &input, &mut packed).unwrap();
        prop_assert_eq!(&packed[..3], &[1, 2, 3]);
        let mut output = vec![9; 10];
        decompress(codec, &packed[3..], &mut output, Limits::default()).unwrap();
        prop_assert!(output == input);
    }
}

#[test]
fn every_level_of_every_codec_is_read() {
    let input = b"level ".repeat(1000);
    for codec in Compression::ALL {
        for level in codec.levels().into_iter().flatten().filter(|level| *level > -8) {
            let (mut packed, mut output) = (Vec::new(), Vec::new());
            compress(codec, Some(level), &input, &mut packed).unwrap();
            decompress(codec, &packed, &mut output, Limits::default()).unwrap();
            assert_eq!(output, input, "{codec:?} level {level}");
        }
    }
    for (codec, level) in [(Compression::Gzip, 0), (Compression::Lz4, 18), (Compression::Zstd, 23)]
    {
        let error = compress(codec, Some(level), &input, &mut Vec::new()).unwrap_err();
        assert_eq!(error, CompressionError::Level { codec, level });
    }
}

#[test]
fn a_higher_level_compresses_better() {
    let input: Vec<u8> = (0..20_000_u32).flat_map(|at| (at * at % 977).to_be_bytes()).collect();
    let size = |codec, level| {
        let mut packed = Vec::new();
        compress(codec, Some(level), &input, &mut packed).unwrap();
        packed.len()
    };
    for (codec, low, high) in
        [(Compression::Gzip, 1, 9), (Compression::Lz4, 9, 12), (Compression::Zstd, 1, 19)]
    {
        assert!(size(codec, high) < size(codec, low), "{codec:?}");
    }
}

#[test]
fn failed_build_does_not_change_the_builder_or_its_output() {
    let mut builder = BatchBuilder::default();
    let mut out = vec![7];
    assert_eq!(builder.build(&mut out), Err(BuildError::Empty));
    builder.append(5, None, None, &[]).unwrap();
    builder.options_mut().compression = Compression::Gzip;
    builder.options_mut().level = Some(99);
    assert!(builder.build(&mut out).is_err());
    assert_eq!((out, builder.records_count()), (vec![7], 1));
}

/// Records of pieces and more, small ones and a large one, some of which compress.
fn large() -> Vec<OwnedRecord> {
    let mut random = Random::new(1);
    let mut noise = |size| random.noise(size);
    let mut records: Vec<OwnedRecord> =
        (0..3000).map(|at| (at, Some(noise(7)), Some(vec![b'v'; 200]), vec![])).collect();
    let header = vec![(noise(300_000), Some(vec![1; 300_000]))];
    records.push((-1, None, Some(noise((1 << 20) + 3)), header));
    records.push((9, None, None, vec![]));
    records
}

fn levels(codec: Compression) -> Vec<Option<i32>> {
    let ends = codec.levels().map(|levels| [Some(*levels.start()), Some(*levels.end())]);
    ends.into_iter().flatten().chain([None]).collect()
}

#[test]
fn a_batch_compressed_early_has_the_same_records() {
    let records = large();
    let mut builder = BatchBuilder::default();
    for compression in Compression::ALL {
        for (level, before) in levels(compression).into_iter().zip([vec![7], vec![], vec![]]) {
            *builder.options_mut() = BatchOptions { compression, level, ..Default::default() };
            builder.compress_early(usize::MAX, &Cancellation::default()).unwrap();
            for record in &records {
                append(&mut builder, record).unwrap();
            }
            let (mut out, estimate) = (before.clone(), builder.size_estimate());
            assert_eq!(builder.build(&mut out).unwrap(), out.len() - before.len());
            let (batch, rest) = Batch::split(&out[before.len()..]).unwrap();
            assert!(rest.is_empty() && batch.is_crc_valid());
            assert_eq!(read(batch), records, "{compression:?} {level:?}");
            let mut payload = Vec::new();
            decompress(compression, batch.payload(), &mut payload, Limits::default()).unwrap();
            assert_eq!(payload.len() + pykafka_record::HEADER_SIZE, estimate);
        }
    }
}

#[test]
fn a_batch_compressed_early_fails_above_its_bound() {
    for compression in Compression::ALL {
        let mut builder =
            BatchBuilder::new(BatchOptions { compression, ..BatchOptions::default() });
        builder.compress_early(400_000, &Cancellation::default()).unwrap();
        let mut appended = large().into_iter().map(|record| append(&mut builder, &record));
        let refused = appended.find_map(Result::err).unwrap();
        let is_soon = |size| size > 400_000 && size < 1_000_000;
        assert!(matches!(refused, BuildError::Stored { size, .. } if is_soon(size)), "{refused:?}");
        builder.clear();
        append(&mut builder, &(1, None, None, vec![])).unwrap();
        let mut out = Vec::new();
        builder.build(&mut out).unwrap();
        assert_eq!(read(Batch::split(&out).unwrap().0), [(1, None, None, vec![])]);
    }
}

#[test]
fn timestamps_too_far_apart_are_rejected() {
    let mut builder = BatchBuilder::default();
    builder.append(-2, None, None, &[]).unwrap();
    assert_eq!(builder.append(i64::MAX, None, None, &[]), Err(BuildError::Timestamp));
    assert_eq!(builder.records_count(), 1);
}

#[test]
fn stamping_keeps_the_crc_valid_because_offsets_are_outside_it() {
    let records = vec![(5, None, Some(vec![1]), vec![]), (3, Some(vec![2]), None, vec![])];
    let mut bytes = build(BatchOptions::default(), &records);
    let mut batch = BatchMut::new(&mut bytes).unwrap();
    let crc = batch.as_batch().crc();
    batch.set_base_offset(1000);
    batch.set_partition_leader_epoch(LeaderEpoch::new(7));
    assert_eq!(batch.as_batch().crc(), crc);
    batch.set_max_timestamp(99, TimestampType::LogAppendTime);
    let batch = Batch::split(&bytes).unwrap().0;
    assert!(batch.is_crc_valid() && batch.crc() != crc);
    assert_eq!((batch.base_offset(), batch.last_offset()), (1000, 1001));
    assert_eq!(
        (batch.partition_leader_epoch(), batch.base_timestamp()),
        (Some(LeaderEpoch::new(7)), 5)
    );
    assert!(read(batch).iter().all(|record| record.0 == 99));
    let mut batch = BatchMut::new(&mut bytes).unwrap();
    batch.set_max_timestamp(5, TimestampType::CreateTime);
    let batch = batch.as_batch();
    assert!(batch.is_crc_valid() && batch.crc() == crc);
    assert_eq!(read(batch), records);
}
