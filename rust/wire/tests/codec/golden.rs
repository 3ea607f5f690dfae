//! Frames that Kafka's clients and Apache Kafka 4.2.1 exchanged.

use std::fs;
use std::path::Path;

use pykafka_wire::ApiKey;
use pykafka_wire::frame::{RequestHeader, decode_response_header};

/// One frame, without its size.
pub struct Frame {
    pub is_request: bool,
    pub api_key: ApiKey,
    pub version: i16,
    pub bytes: Vec<u8>,
    /// Bytes after the message: librdkafka writes a null list of Metadata 13 as four bytes.
    pub left_over: usize,
}

impl Frame {
    /// The bytes after the header.
    pub fn body(&self) -> &[u8] {
        if self.is_request {
            RequestHeader::decode(&self.bytes).unwrap().1
        } else {
            decode_response_header(self.api_key, self.version, &self.bytes).unwrap().1
        }
    }

    /// The version of the body. An `ApiVersions` request too new gets a response of version 0.
    pub fn body_version(&self) -> i16 {
        if self.api_key == ApiKey::API_VERSIONS && self.version == 99 { 0 } else { self.version }
    }
}

pub fn frames() -> Vec<Frame> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/protocol/golden/conversations.jsonl");
    fs::read_to_string(path).unwrap().lines().map(parse).collect()
}

fn parse(line: &str) -> Frame {
    let value = |name: &str| {
        let start = line.find(&format!("\"{name}\": "))? + name.len() + 4;
        let rest = &line[start..];
        let end = rest.find([',', '}']).unwrap();
        Some(rest[..end].trim_matches('"').to_owned())
    };
    let hex = value("hex").unwrap();
    Frame {
        is_request: value("direction").unwrap() == "request",
        api_key: ApiKey(value("api_key").unwrap().parse().unwrap()),
        version: value("version").unwrap().parse().unwrap(),
        bytes: (0..hex.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
            .collect(),
        left_over: value("left_over").map_or(0, |text| text.parse().unwrap()),
    }
}
