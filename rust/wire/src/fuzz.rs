//! Fuzz targets as functions: `cargo test` runs them on damaged frames and random bytes, and so
//! does cargo-fuzz.
//!
//! Every target must return, without a panic or a disproportionate allocation, and decoding and
//! encoding must give equal results in the hot modules and in the table codec.

use bytes::Bytes;

use crate::frame::{RequestHeader, decode_response_header};
use crate::schema::{Message, messages, request_of, response_of};
use crate::value::{Tree, Value, Values};
use crate::{
    ApiKey, Chunks, DecodeError, api_versions, codec, describe_topic_partitions, fetch,
    list_offsets, metadata, offset_for_leader_epoch, produce,
};

/// The APIs with hand-written messages.
pub const HOT: [ApiKey; 7] = [
    ApiKey::PRODUCE,
    ApiKey::FETCH,
    ApiKey::LIST_OFFSETS,
    ApiKey::METADATA,
    ApiKey::API_VERSIONS,
    ApiKey::OFFSET_FOR_LEADER_EPOCH,
    ApiKey::DESCRIBE_TOPIC_PARTITIONS,
];

/// Frames: any bytes result in a header or an error.
pub fn fuzz_frame(data: &[u8]) {
    if let Ok((header, body)) = RequestHeader::decode(data) {
        assert!(body.len() <= data.len());
        let _ = decode_response_header(header.api_key, header.api_version, body);
    }
}

/// Any message of the tables; the first three bytes select it and its version.
pub fn fuzz_table(data: &[u8]) {
    let [first, second, version, body @ ..] = data else { return };
    let all = messages();
    let message = all[(usize::from(*first) << 8 | usize::from(*second)) % all.len()];
    recode_table(message, version_of(message, *version), body);
}

/// Any hot message; the first three bytes select API, direction and version.
pub fn fuzz_hot(data: &[u8]) {
    let [api, is_request, version, body @ ..] = data else { return };
    let api_key = HOT[usize::from(*api) % HOT.len()];
    let request = request_of(api_key).expect("every hot API is in the tables");
    let body = Bytes::copy_from_slice(body);
    compare_hot(api_key, is_request & 1 == 1, version_of(request, *version), &body);
}

fn version_of(message: &Message, byte: u8) -> i16 {
    let count = message.versions.1 - message.versions.0 + 1;
    message.versions.0 + i16::from(byte) % count
}

/// The table codec: a decoded message can be encoded, and then decodes to the same value.
///
/// `version` must be one of the message's.
pub fn recode_table(message: &'static Message, version: i16, body: &[u8]) -> Option<Value> {
    let plan = message.plan(version).expect("a version of the message");
    let value = codec::decode(plan, body, &mut Values).ok()?;
    let mut out = Vec::new();
    // Replacement characters can make a string too long; no other error is possible.
    codec::encode(plan, &value, &Tree::new(), &mut out).ok()?;
    let again = codec::decode(plan, &out, &mut Values).expect("an encoded value decodes");
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
    Some(value)
}

/// A hot message: it decodes if and only if the table codec decodes it, to the same value.
pub fn compare_hot(api_key: ApiKey, is_request: bool, version: i16, body: &Bytes) {
    let message = if is_request { request_of(api_key) } else { response_of(api_key) };
    let message = message.expect("every hot API is in the tables");
    let plan = message.plan(version).expect("a version of the message");
    let table = codec::decode(plan, body, &mut Values);
    let hot = recode_hot(api_key, is_request, version, body).expect("a hot API");
    assert_eq!(table.is_ok(), hot.is_ok(), "{} {version} {table:?} {hot:?}", api_key.name());
    let (Ok(table), Ok(hot)) = (table, hot) else { return };
    let again = codec::decode(plan, &hot, &mut Values).expect("an encoded value decodes");
    if !format!("{table:?}").contains('\u{FFFD}') {
        assert_eq!(format!("{again:?}"), format!("{table:?}"));
    }
}

/// Decode and encode a body with the hot module of its API; `None` if there is none.
pub fn recode_hot(
    api_key: ApiKey,
    is_request: bool,
    version: i16,
    body: &Bytes,
) -> Option<Result<Bytes, DecodeError>> {
    let mut out = Chunks::new();
    macro_rules! recode {
        ($module:ident) => {
            if is_request {
                $module::Request::decode_shared(version, body).map(|message| {
                    message.encode(version, &mut out).expect("a decoded message encodes")
                })
            } else {
                $module::Response::decode_shared(version, body).map(|message| {
                    message.encode(version, &mut out).expect("a decoded message encodes")
                })
            }
        };
    }
    let done = match api_key {
        ApiKey::PRODUCE => recode!(produce),
        ApiKey::FETCH => recode!(fetch),
        ApiKey::LIST_OFFSETS => recode!(list_offsets),
        ApiKey::METADATA => recode!(metadata),
        ApiKey::API_VERSIONS => recode!(api_versions),
        ApiKey::OFFSET_FOR_LEADER_EPOCH => recode!(offset_for_leader_epoch),
        ApiKey::DESCRIBE_TOPIC_PARTITIONS => recode!(describe_topic_partitions),
        _ => return None,
    };
    Some(done.map(|()| out.to_bytes()))
}
