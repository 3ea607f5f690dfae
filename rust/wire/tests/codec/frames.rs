//! The table codec against recorded frames, and against the hot messages.

use bytes::Bytes;
use pykafka_wire::fuzz::recode_hot;
use pykafka_wire::schema::{request_of, response_of};
use pykafka_wire::value::{Tree, Values};
use pykafka_wire::{ApiKey, codec};

use crate::golden;

/// Decodes and encodes a body by its table.
fn recode(api_key: ApiKey, is_request: bool, version: i16, body: &[u8]) -> Vec<u8> {
    let message = if is_request { request_of(api_key) } else { response_of(api_key) }.unwrap();
    let plan = message.plan(version).unwrap();
    let value = codec::decode(plan, body, &mut Values).unwrap();
    let mut out = Vec::new();
    codec::encode(plan, &value, &Tree::new(), &mut out).unwrap();
    out
}

#[test]
fn every_recorded_frame_is_encoded_to_the_same_bytes() {
    let frames = golden::frames();
    assert_eq!(frames.len(), 1300);
    let mut compared = 0;
    for frame in frames {
        let version = frame.body_version();
        if frame.is_request && version != frame.version {
            continue; // ApiVersions 99: the body has an unknown version.
        }
        let body = frame.body();
        let end = body.len() - frame.left_over;
        let encoded = recode(frame.api_key, frame.is_request, version, body);
        assert_eq!(encoded, body[..end], "{} {version}", frame.api_key.name());
        compared += 1;
    }
    assert!(compared >= 1295, "{compared}");
}

#[test]
fn recorded_hot_frames_are_encoded_to_the_same_bytes() {
    let mut compared = 0;
    for frame in golden::frames() {
        let version = frame.body_version();
        if frame.is_request && version != frame.version {
            continue;
        }
        let body = Bytes::copy_from_slice(frame.body());
        let Some(encoded) = recode_hot(frame.api_key, frame.is_request, version, &body) else {
            continue;
        };
        // The null list with four bytes is written with one.
        let end = body.len() - frame.left_over;
        assert_eq!(encoded.unwrap(), body[..end], "{} {version}", frame.api_key.name());
        compared += 1;
    }
    assert!(compared > 500, "{compared}");
}
