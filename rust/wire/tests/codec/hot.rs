//! The hot messages behind one door.

use bytes::Bytes;
use pykafka_wire::{
    ApiKey, Chunks, DecodeError, api_versions, describe_topic_partitions, fetch, list_offsets,
    metadata, offset_for_leader_epoch, produce,
};

/// APIs with a hot module.
pub const APIS: [ApiKey; 7] = [
    ApiKey::PRODUCE,
    ApiKey::FETCH,
    ApiKey::LIST_OFFSETS,
    ApiKey::METADATA,
    ApiKey::API_VERSIONS,
    ApiKey::OFFSET_FOR_LEADER_EPOCH,
    ApiKey::DESCRIBE_TOPIC_PARTITIONS,
];

/// Decodes and encodes a body by the hot module of its API; `None` if there is none.
pub fn recode(
    api_key: ApiKey,
    is_request: bool,
    version: i16,
    body: &Bytes,
) -> Option<Result<Bytes, DecodeError>> {
    let mut out = Chunks::new();
    macro_rules! recode {
        ($module:ident) => {
            if is_request {
                $module::Request::decode_shared(version, body)
                    .map(|message| message.encode(version, &mut out).unwrap())
            } else {
                $module::Response::decode_shared(version, body)
                    .map(|message| message.encode(version, &mut out).unwrap())
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
