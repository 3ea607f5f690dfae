//! Bounds of a message, and of one part of its reading.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use pykafka_wire::codec::{Decoding, decode};
use pykafka_wire::fuzz::recode_hot;
use pykafka_wire::schema::{Struct, messages, request_of};
use pykafka_wire::value::Values;
use pykafka_wire::{ApiKey, DecodeError, LIST_LENGTH_MAX, OBJECTS_MAX, Reader, Writer, codec};

use crate::driver::{Random, repeat};

const VERSION: i16 = 9;

/// Metadata v9 of topics without a name, each with as many unknown tagged fields as listed.
fn metadata(tagged_fields: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, VERSION, true);
    writer.uvarint(tagged_fields.len() as u32 + 1);
    for &count in tagged_fields {
        writer.uvarint(1);
        writer.uvarint(count);
        for tag in 0..count {
            writer.uvarint(tag);
            writer.uvarint(0);
        }
    }
    bytes.extend([1, 0, 0, 0]);
    bytes
}

/// By the tables, and by the code of the hot messages.
fn read_both_ways(bytes: Vec<u8>) -> Result<(), DecodeError> {
    let plan = request_of(ApiKey::METADATA).unwrap().plan(VERSION).unwrap();
    let by_table = decode(plan, &bytes, &mut Values).map(|_| ());
    let by_hand = recode_hot(ApiKey::METADATA, true, VERSION, &Bytes::from(bytes)).unwrap();
    assert_eq!(by_table, by_hand.map(|_| ()));
    by_table
}

/// `MessageUtil.MAX_ARRAY_LENGTH` and `MAX_TAGGED_FIELD_COUNT` of Kafka 4.4.
#[test]
fn a_message_at_the_limits_of_kafka_is_read_and_one_beyond_them_is_not() {
    assert_eq!(read_both_ways(metadata(&vec![0; 1_000_000])), Ok(()));
    let longer = DecodeError::ListTooLong { length: 1_000_001, max: 1_000_000 };
    assert_eq!(read_both_ways(metadata(&vec![0; 1_000_001])), Err(longer));
    assert_eq!(read_both_ways(metadata(&[0, 10_000, 10_000])), Ok(()));
    let more = DecodeError::TooManyTags { count: 10_001, max: 10_000 };
    assert_eq!(read_both_ways(metadata(&[0, 10_001])), Err(more));
}

/// Counts elements, and makes none.
#[derive(Default)]
struct Counts {
    elements: usize,
    longest: usize,
}

impl codec::Builder<'_> for Counts {
    type Value = ();
    type Object = ();
    type List = usize;
    type Error = DecodeError;

    fn object(&mut self, _: &'static Struct) -> Result<(), DecodeError> {
        Ok(())
    }

    fn set(&mut self, (): &mut (), _: usize, (): ()) {}

    fn finish_object(&mut self, (): ()) {}

    fn default(&mut self, _: &'static Struct, _: usize) -> Result<(), DecodeError> {
        Ok(())
    }

    fn list(&mut self, count: usize) -> Result<usize, DecodeError> {
        self.longest = self.longest.max(count);
        Ok(count)
    }

    fn push(&mut self, _: &mut usize, (): ()) -> Result<(), DecodeError> {
        self.elements += 1;
        Ok(())
    }

    fn finish_list(&mut self, _: usize) -> Result<(), DecodeError> {
        Ok(())
    }

    fn null(&mut self) {}

    fn boolean(&mut self, _: bool) {}

    fn integer(&mut self, _: i64) -> Result<(), DecodeError> {
        Ok(())
    }

    fn float(&mut self, _: f64) -> Result<(), DecodeError> {
        Ok(())
    }

    fn string(&mut self, _: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }

    fn bytes(&mut self, _: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Bytes of which many read as a length: counts near the size, and far beyond it.
fn garbage(random: &mut Random) -> Vec<u8> {
    let mut bytes = random.bytes(4096);
    for _ in 0..bytes.len() / 16 {
        let at = random.below(bytes.len());
        let count = [1, 2, bytes.len() / 2, LIST_LENGTH_MAX, u32::MAX as usize][random.below(5)];
        let count = (count as u32).to_be_bytes();
        for (byte, of_count) in bytes[at..].iter_mut().zip(count) {
            *byte = of_count;
        }
    }
    bytes
}

#[test]
fn garbage_declares_and_creates_no_more_elements_than_it_has_bytes() {
    repeat(|random| {
        let message = messages()[random.below(messages().len())];
        let (first, last) = (message.versions.0, message.versions.1);
        let plan = message.plan(first + random.below((last - first + 1) as usize) as i16).unwrap();
        let bytes = garbage(random);
        let mut counts = Counts::default();
        let _ = decode(plan, &bytes, &mut counts);
        assert!(counts.longest <= bytes.len().min(LIST_LENGTH_MAX), "{}", message.name);
        // A null struct of a list is one byte, too.
        assert!(counts.elements <= bytes.len().min(OBJECTS_MAX), "{}", message.name);
    });
}

proptest! {
    /// Unknown tagged fields did not count: 100 MiB of them were read in one go.
    #[test]
    fn a_part_exceeds_its_count_by_the_tagged_fields_of_one_struct(
        tagged_fields in vec(0_u32..60, 0..80),
        count in 1_usize..50,
    ) {
        let bytes = metadata(&tagged_fields);
        let plan = request_of(ApiKey::METADATA).unwrap().plan(VERSION).unwrap();
        let mut reader = Reader::new(&bytes, VERSION, true);
        let mut decoding = Decoding::new(plan, &mut Values).unwrap();
        let message = loop {
            let before = reader.tagged_fields_read();
            let message = decoding.advance(&mut reader, &mut Values, count).unwrap();
            let read = reader.tagged_fields_read() - before;
            prop_assert!(read <= count + 60, "{} in a part of {}", read, count);
            if let Some(message) = message {
                break message;
            }
        };
        prop_assert_eq!(message, decode(plan, &bytes, &mut Values).unwrap());
        let all: u32 = tagged_fields.iter().sum();
        prop_assert_eq!(reader.tagged_fields_read(), all as usize);
    }
}
