//! The hot messages against recorded frames.

mod golden;

use bytes::Bytes;
use pykafka_wire::{
    ApiKey, Chunks, api_versions, describe_topic_partitions, fetch, list_offsets, metadata,
    offset_for_leader_epoch, produce,
};

/// Decodes and encodes a body by the hot module of its API; `None` if there is none.
fn recode(api_key: ApiKey, is_request: bool, version: i16, body: &Bytes) -> Option<Bytes> {
    let mut out = Chunks::new();
    macro_rules! recode {
        ($module:ident) => {
            if is_request {
                let message = $module::Request::decode_shared(version, body).unwrap();
                message.encode(version, &mut out).unwrap();
            } else {
                let message = $module::Response::decode_shared(version, body).unwrap();
                message.encode(version, &mut out).unwrap();
            }
        };
    }
    match api_key {
        ApiKey::PRODUCE => recode!(produce),
        ApiKey::FETCH => recode!(fetch),
        ApiKey::LIST_OFFSETS => recode!(list_offsets),
        ApiKey::METADATA => recode!(metadata),
        ApiKey::API_VERSIONS => recode!(api_versions),
        ApiKey::OFFSET_FOR_LEADER_EPOCH => recode!(offset_for_leader_epoch),
        ApiKey::DESCRIBE_TOPIC_PARTITIONS => recode!(describe_topic_partitions),
        _ => return None,
    }
    Some(out.to_bytes())
}

#[test]
fn recorded_hot_frames_encode_to_the_bytes_they_were_decoded_from() {
    let mut compared = 0;
    for frame in golden::frames() {
        let version = frame.body_version();
        if frame.is_request && version != frame.version {
            continue; // ApiVersions 99: the body is of a version that nobody knows.
        }
        let body = Bytes::copy_from_slice(frame.body());
        let Some(encoded) = recode(frame.api_key, frame.is_request, version, &body) else {
            continue;
        };
        // The null list with four bytes is written with one.
        let end = body.len() - frame.left_over;
        assert_eq!(encoded, body[..end], "{} {version}", frame.api_key.name());
        compared += 1;
    }
    assert!(compared > 500, "{compared}");
}
