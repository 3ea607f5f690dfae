//! Columns of any content: partitions and digests as of each row by itself, or an error.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::host_endian_bytes, reason = "Arrow's numbers have the byte order of the machine")]
#![expect(clippy::little_endian_bytes, reason = "digests are little-endian")]

use std::num::NonZero;

use proptest::collection::vec;
use proptest::prelude::*;
use pykafka_record::kernels::{
    Column, FINGERPRINT_SIZE, KernelError, Partitioner, Validity, Values, fingerprints, partitions,
};
use pykafka_record::{crc32, fnv1a, murmur2, murmur3_128};

const PARTITIONERS: [Partitioner; 3] =
    [Partitioner::Murmur2, Partitioner::Crc32, Partitioner::Fnv1a];

fn hash(key: &[u8], partitioner: Partitioner) -> u32 {
    match partitioner {
        Partitioner::Murmur2 => murmur2(key) & 0x7fff_ffff,
        Partitioner::Crc32 => crc32(key),
        Partitioner::Fnv1a => (fnv1a(key) as i32).unsigned_abs(),
    }
}

/// The concatenated keys after `lead` other bytes, with their offsets in both widths.
fn laid(keys: &[Vec<u8>], lead: usize) -> (Vec<u8>, Vec<[u8; 4]>, Vec<[u8; 8]>) {
    let mut data = vec![0xee; lead];
    let mut ends = vec![lead];
    for key in keys {
        data.extend_from_slice(key);
        ends.push(data.len());
    }
    let narrow = ends.iter().map(|end| (*end as i32).to_ne_bytes()).collect();
    (data, narrow, ends.iter().map(|end| (*end as i64).to_ne_bytes()).collect())
}

fn number_of_partitions() -> impl Strategy<Value = NonZero<u32>> {
    prop_oneof![1..20_u32, 1..=0x7fff_ffff_u32].prop_map(|count| NonZero::new(count).unwrap())
}

proptest! {
    #[test]
    fn every_row_gets_the_partition_of_its_key(
        keys in vec(vec(any::<u8>(), 0..50), 0..100),
        repeats in 1..30_usize,
        lead in 0..6_usize,
        count in number_of_partitions(),
    ) {
        let keys = vec![keys; repeats].concat(); // past one block
        let (data, narrow, wide) = laid(&keys, lead);
        for partitioner in PARTITIONERS {
            let expected: Vec<_> =
                keys.iter().map(|key| (hash(key, partitioner) % count.get()) as i32).collect();
            for values in [Values::Offsets32(&narrow, &data), Values::Offsets64(&wide, &data)] {
                let column = Column::new(keys.len(), None, values).unwrap();
                prop_assert_eq!(&partitions(&column, count, partitioner).unwrap(), &expected);
            }
        }
    }

    #[test]
    fn any_offsets_give_all_rows_or_the_first_wrong_one(
        offsets in vec(prop_oneof![9 => 0..40_i32, 1 => any::<i32>()], 1..40),
        is_sorted in any::<bool>(),
        data in vec(any::<u8>(), 0..40),
    ) {
        let mut offsets = offsets;
        if is_sorted {
            offsets.sort_unstable();
        }
        let bytes: Vec<_> = offsets.iter().map(|offset| offset.to_ne_bytes()).collect();
        let rows = offsets.len() - 1;
        let wrong = offsets.windows(2).position(|pair| {
            pair[0] < 0 || pair[1] < pair[0] || pair[1] as usize > data.len()
        });
        let column = Column::new(rows, None, Values::Offsets32(&bytes, &data)).unwrap();
        for partitioner in PARTITIONERS {
            match partitions(&column, NonZero::<u32>::MIN, partitioner) {
                Ok(found) => prop_assert!(wrong.is_none() && found.len() == rows),
                Err(error) => prop_assert_eq!(Some(error), wrong.map(KernelError::Outside)),
            }
        }
    }

    #[test]
    fn any_view_points_into_its_buffer_or_is_an_error(
        view in any::<[u8; 16]>(), size in -2..40_i32, buffer in -1..3_i32, start in -2..40_i32,
    ) {
        let mut view = view;
        view[..4].copy_from_slice(&size.to_ne_bytes());
        if size > 12 {
            view[8..12].copy_from_slice(&buffer.to_ne_bytes());
            view[12..].copy_from_slice(&start.to_ne_bytes());
        }
        let (first, second) = ([1; 30], [2; 5]);
        let views = [view];
        let column = Column::new(1, None, Values::Views(&views, vec![&first, &second])).unwrap();
        let found = fingerprints(&[column], 0);
        let buffers: [&[u8]; 2] = [&first, &second];
        let value = match size {
            0..=12 => view.get(4..4 + size as usize),
            13.. => buffers.get(buffer as usize).and_then(|data| {
                data.get(start as usize..(start as usize).checked_add(size as usize)?)
            }),
            _ => None,
        };
        let expected = value.map(|value| digest(value, 0)).ok_or(KernelError::Outside(0));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn rows_of_many_columns_are_framed_sequentially(
        rows in vec((proptest::option::of(vec(any::<u8>(), 0..20)), any::<i64>()), 0..40),
        seed in any::<u32>(),
    ) {
        let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone().unwrap_or_default()).collect();
        let bits = rows.chunks(8).map(|chunk| {
            chunk.iter().rev().fold(0_u8, |bits, (key, _)| (bits << 1) | u8::from(key.is_some()))
        });
        let bits: Vec<_> = bits.collect();
        let (data, narrow, _) = laid(&keys, 0);
        let numbers: Vec<_> = rows.iter().flat_map(|(_, number)| number.to_ne_bytes()).collect();
        let validity = Validity::new(&bits, 0, rows.len()).unwrap();
        let columns = [
            Column::new(rows.len(), Some(validity), Values::Offsets32(&narrow, &data)).unwrap(),
            Column::new(rows.len(), None, Values::Number(8, &numbers)).unwrap(),
        ];
        let expected: Vec<_> = rows.iter().flat_map(|(key, number)| {
            let mut framed = key.as_ref().map_or(-1, |key| key.len() as i32).to_be_bytes().to_vec();
            framed.extend(key.iter().flatten());
            framed.extend(8_i32.to_be_bytes());
            framed.extend(number.to_be_bytes());
            digest(&framed, seed)
        }).collect();
        prop_assert_eq!(fingerprints(&columns, seed).unwrap(), expected);
    }
}

fn digest(bytes: &[u8], seed: u32) -> Vec<u8> {
    let hash = murmur3_128(bytes, seed);
    [((hash >> 64) as u64).to_le_bytes(), (hash as u64).to_le_bytes()].concat()
}

#[test]
fn a_column_needs_buffers_for_all_its_rows() {
    for (len, values) in [
        (1, Values::Offsets32(&[[0; 4]], &[])),
        (1, Values::Offsets64(&[[0; 8]], &[])),
        (2, Values::Views(&[[0; 16]], Vec::new())),
        (2, Values::Fixed(3, &[0; 5])),
        (2, Values::Number(4, &[0; 7])),
        (usize::MAX, Values::Number(8, &[0; 8])),
        (1, Values::Number(17, &[0; 17])),
    ] {
        let expected = KernelError::Short(len);
        assert_eq!(Column::new(len, None, values).unwrap_err(), expected);
    }
    assert_eq!(Validity::new(&[0xff], 3, 6).unwrap_err(), KernelError::Short(6));
    assert_eq!(Validity::new(&[0xff], 3, usize::MAX).unwrap_err(), KernelError::Short(usize::MAX));
}

#[test]
fn numbers_are_hashed_big_endian() {
    for (width, bytes) in [
        (1, 7_i8.to_ne_bytes().to_vec()),
        (2, 7_i16.to_ne_bytes().to_vec()),
        (4, 7_i32.to_ne_bytes().to_vec()),
        (8, 7_i64.to_ne_bytes().to_vec()),
    ] {
        let column = Column::new(1, None, Values::Number(width, &bytes)).unwrap();
        let mut expected = vec![0; width];
        expected[width - 1] = 7;
        assert_eq!(fingerprints(&[column], 9).unwrap(), digest(&expected, 9));
    }
}

#[test]
fn columns_of_different_lengths_are_rejected_and_no_columns_give_no_rows() {
    let one = Column::new(1, None, Values::Fixed(0, &[])).unwrap();
    let two = Column::new(2, None, Values::Fixed(0, &[])).unwrap();
    assert_eq!(fingerprints(&[one.clone(), two], 0), Err(KernelError::Lengths(1, 2)));
    assert_eq!(fingerprints(&[], 0).unwrap(), Vec::<u8>::new());
    assert_eq!(fingerprints(&[one], 0).unwrap().len(), FINGERPRINT_SIZE);
}
