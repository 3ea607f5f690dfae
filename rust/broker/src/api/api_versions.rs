//! `ApiVersions`: the supported APIs and their versions. `hot_apis.rs` lists those that Rust
//! handles.

use std::ops::RangeInclusive;
use std::sync::Arc;

#[cfg(test)]
use bytes::Bytes;
use pykafka_wire::api_versions::{
    ApiVersion, FinalizedFeatureKey, Request, Response, SupportedFeatureKey,
};
use pykafka_wire::{ApiKey, Chunks};

use crate::context::Context;
use crate::network::outcome::Outcome;

use crate::control_api::image::Image;
use crate::hot_apis::{HOT_APIS, hot_index};
use crate::request::{ConnectionInfo, ControllerApis, Header};

const UNSUPPORTED_VERSION: i16 = 35;
const INVALID_REQUEST: i16 = 42;
const REBOOTSTRAP_REQUIRED: i16 = 129;

const API_VERSIONS_RANGE: RangeInclusive<i16> = 0..=5;

/// Supported versions of an API on a connection.
pub(crate) fn served_versions(
    conn: &ConnectionInfo,
    image: &Image,
    key: ApiKey,
) -> Option<RangeInclusive<i16>> {
    match &conn.controller_apis {
        Some(_) if key == ApiKey::API_VERSIONS => Some(API_VERSIONS_RANGE),
        Some(apis) => apis.get(&key.0).map(|&(min, max)| min..=max),
        None => served_by_brokers(image, key),
    }
}

/// Supported versions of an API on a broker listener, in Rust or Python.
fn served_by_brokers(image: &Image, key: ApiKey) -> Option<RangeInclusive<i16>> {
    let given = image.api_versions.get(&key.0).copied();
    match hot_index(key).map(|index| HOT_APIS[index]) {
        Some(api) => Some(match given {
            Some((min, max)) => api.min.max(min)..=api.max.min(max),
            None => api.min..=api.max,
        }),
        None => given.map(|(min, max)| min..=max),
    }
}

/// Handles a request in a supported version.
pub fn handle(ctx: &Arc<Context>, conn: &ConnectionInfo, header: &Header, body: &[u8]) -> Outcome {
    let version = header.api_version;
    let request = match Request::decode(version, body) {
        Ok(request) => request,
        Err(error) => return Outcome::malformed(error),
    };
    if let Err(error_code) = check(ctx, conn, &request, version) {
        return reply(&Response { error_code, ..Response::default() }, version);
    }
    let image = ctx.image.load();
    reply(&response(conn, &image, version), version)
}

/// Rejects a malformed request, and a client that reached another node than it meant to
/// (KIP-1242). Controllers do not compare the node, as in Kafka 4.4.
fn check(
    ctx: &Context,
    conn: &ConnectionInfo,
    request: &Request<'_>,
    version: i16,
) -> Result<(), i16> {
    let software = [request.client_software_name, request.client_software_version];
    if version >= 3 && !software.iter().all(|text| is_software_token(text)) {
        return Err(INVALID_REQUEST);
    }
    match (request.cluster_id, request.node_id) {
        (None, -1) => Ok(()),
        (None, _) | (_, -1) => Err(INVALID_REQUEST),
        _ if conn.controller_apis.is_some() => Ok(()),
        (Some(cluster_id), node_id) if (cluster_id, node_id) == (&*ctx.cluster_id, ctx.node_id) => {
            Ok(())
        }
        _ => Err(REBOOTSTRAP_REQUIRED),
    }
}

/// Responds to an unsupported version in version 0, so that the client can choose another version
/// (contract/kafka.md#1).
pub(crate) fn unsupported() -> Outcome {
    let own = ApiVersion {
        api_key: ApiKey::API_VERSIONS.0,
        min_version: *API_VERSIONS_RANGE.start(),
        max_version: *API_VERSIONS_RANGE.end(),
    };
    reply(
        &Response { error_code: UNSUPPORTED_VERSION, api_keys: vec![own], ..Response::default() },
        0,
    )
}

pub(crate) fn is_supported(version: i16) -> bool {
    API_VERSIONS_RANGE.contains(&version)
}

fn reply(response: &Response<'_>, version: i16) -> Outcome {
    encoded(|out| response.encode(version, out))
}

/// The reply that `encode` writes. Our responses always fit their version, so an error is a bug; it
/// closes the connection.
pub(crate) fn encoded<E: std::fmt::Display>(
    encode: impl FnOnce(&mut Chunks) -> Result<(), E>,
) -> Outcome {
    let mut out = Chunks::new();
    match encode(&mut out) {
        Ok(()) => Outcome::Reply(out.into()),
        Err(error) => Outcome::Close(format!("the response cannot be encoded: {error}")),
    }
}

fn response<'a>(conn: &ConnectionInfo, image: &'a Image, version: i16) -> Response<'a> {
    let finalized = image.finalized_features.levels.iter();
    Response {
        api_keys: match &conn.controller_apis {
            Some(apis) => of_controllers(apis),
            None => of_brokers(image),
        },
        supported_features: image
            .supported_features
            .iter()
            // Clients of version 3 reject a minimum version of 0 (KAFKA-17492).
            .filter(|(_, range)| version >= 4 || range.0 > 0)
            .map(|(name, &(min_version, max_version))| SupportedFeatureKey {
                name,
                min_version,
                max_version,
            })
            .collect(),
        finalized_features_epoch: image.finalized_features.epoch,
        finalized_features: finalized
            .map(|(name, &level)| FinalizedFeatureKey {
                name,
                max_version_level: level,
                min_version_level: level,
            })
            .collect(),
        ..Response::default()
    }
}

fn of_controllers(apis: &ControllerApis) -> Vec<ApiVersion> {
    let own = (ApiKey::API_VERSIONS.0, (*API_VERSIONS_RANGE.start(), *API_VERSIONS_RANGE.end()));
    let given = apis.iter().map(|(&key, &range)| (key, range));
    let of =
        |(api_key, (min_version, max_version))| ApiVersion { api_key, min_version, max_version };
    let mut keys: Vec<ApiVersion> = given.chain([own]).map(of).collect();
    keys.sort_unstable_by_key(|api| api.api_key);
    keys
}

fn of_brokers(image: &Image) -> Vec<ApiVersion> {
    let hot = HOT_APIS.iter().filter_map(|api| {
        let served = served_by_brokers(image, api.key)?;
        let unchanged = *served.start() == api.min;
        let min_version = if unchanged { api.advertised_min } else { *served.start() };
        Some(ApiVersion { api_key: api.key.0, min_version, max_version: *served.end() })
    });
    let others =
        image.api_versions.iter().filter(|&(&key, _)| hot_index(ApiKey(key)).is_none()).map(
            |(&api_key, &(min_version, max_version))| ApiVersion {
                api_key,
                min_version,
                max_version,
            },
        );
    let mut keys: Vec<ApiVersion> = hot.chain(others).collect();
    keys.sort_unstable_by_key(|api| api.api_key);
    keys
}

/// True for letters and digits, with `-` and `.` allowed inside (contract/kafka.md#3).
fn is_software_token(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

/// The bytes of a reply.
#[cfg(test)]
pub(crate) fn bytes_of(outcome: Outcome) -> Bytes {
    match outcome {
        Outcome::Reply(chunks) => chunks.to_bytes(),
        other => panic!("not a reply: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_tokens_are_alphanumeric_at_both_ends() {
        for token in ["a", "9", "apache-kafka-java", "4.2.1", "a..b"] {
            assert!(is_software_token(token), "{token}");
        }
        for token in ["", "-", "a-", ".a", "a b", "é", "a_b"] {
            assert!(!is_software_token(token), "{token}");
        }
    }

    #[test]
    fn hot_apis_are_sorted_by_key_and_have_the_ranges_of_kafka() {
        assert!(HOT_APIS.is_sorted_by_key(|api| api.key));
        for api in HOT_APIS {
            let kafka = pykafka_wire::supported_versions(api.key).expect("Kafka knows it");
            assert_eq!((api.min, api.max), (*kafka.start(), *kafka.end()), "{}", api.name);
        }
    }

    #[test]
    fn an_unknown_version_is_answered_in_version_0_with_error_35() {
        let body = bytes_of(unsupported());
        let response = Response::decode(0, &body).expect("version 0");
        assert_eq!(response.error_code, 35);
        let ranges: Vec<_> = response
            .api_keys
            .iter()
            .map(|api| (api.api_key, api.min_version, api.max_version))
            .collect();
        assert_eq!(ranges, [(18, 0, 5)]);
    }
}
