//! Tests of the produce handler with malicious batches: each gets an error code, nothing is
//! appended, and the next batch is appended.

use pykafka_record::{BatchOptions, Compression, HEADER_SIZE, compress, crc32c};
use pykafka_wire::produce::Response;

use crate::kafka_error::KafkaError;
use crate::testing::{Broker, batch, batch_with, replied};

const LENGTH_AT: usize = 8;
const LENGTH_COUNTS_FROM: usize = 12;
const CRC_AT: usize = 17;
const CRC_COVERS_FROM: usize = 21;
/// Larger than the decompressed size that any batch may have, at any compression ratio.
const ZEROS: usize = 129 << 20;

/// A batch with a valid length and CRC that claims one record; `body` replaces its records.
fn with_body(compression: Compression, body: &[u8]) -> Vec<u8> {
    let options = BatchOptions { compression, ..BatchOptions::default() };
    let mut bytes = batch_with(options, &["a"]);
    bytes.truncate(HEADER_SIZE);
    bytes.extend_from_slice(body);
    let length = (bytes.len() - LENGTH_COUNTS_FROM) as i32;
    bytes[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
    let crc = crc32c(&bytes[CRC_COVERS_FROM..]);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Produces `records`, checks that nothing is appended, and returns the error code.
fn refused(records: &[u8]) -> i16 {
    let broker = Broker::in_memory().with_topic(1, &[]);
    let bytes = replied(broker.produce(9, -1, records));
    let response = Response::decode(9, &bytes).unwrap();
    let code = response.responses[0].partitions[0].error_code;
    assert_eq!(broker.append(&batch(&["next"])), 0, "nothing was appended");
    code
}

/// contract/replication.md#attack-13.
#[test]
fn bombs_of_every_codec_are_messages_too_large() {
    for codec in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
        let mut bomb = Vec::new();
        compress(codec, None, &vec![0; ZEROS], &mut bomb).unwrap();
        assert!(bomb.len() < 1 << 20, "{codec:?}: {} bytes are refused unopened", bomb.len());
        let code = refused(&with_body(codec, &bomb));
        assert_eq!(code, KafkaError::MessageTooLarge.code(), "{codec:?}");
    }
}

/// Snappy cannot expand a batch beyond the bound, but it declares the decompressed size.
/// contract/replication.md#attack-13.
#[test]
fn declared_sizes_are_not_trusted() {
    let snappy_of_4_gib = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x61];
    let code = refused(&with_body(Compression::Snappy, &snappy_of_4_gib));
    assert_eq!(code, KafkaError::MessageTooLarge.code());
    let zstd_window_of_2_gib = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00];
    assert_ne!(refused(&with_body(Compression::Zstd, &zstd_window_of_2_gib)), 0);
}

/// contract/replication.md#attack-14.
#[test]
fn lengths_below_minus_one_and_counts_beyond_the_record_are_invalid_records() {
    // The fields after the size: attributes, timestamp delta, offset delta, key, value, header
    // count, headers.
    let records: [&[u8]; 6] = [
        &[0, 0, 0, 3, 1, 0],                            // key length -2
        &[0, 0, 0, 1, 3, 0],                            // value length -2
        &[0, 0, 0, 1, 1, 1],                            // -1 headers
        &[0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f], // 2^31-1 headers
        &[0, 0, 0, 1, 1, 2, 1, 1],                      // header key length -1
        &[0, 0, 0, 1, 1, 2, 2, 0x68, 3],                // header value length -2
    ];
    for record in records {
        let body = [&[record.len() as u8 * 2], record].concat();
        let code = refused(&with_body(Compression::None, &body));
        assert_eq!(code, KafkaError::InvalidRecord.code(), "{record:?}");
    }
}
