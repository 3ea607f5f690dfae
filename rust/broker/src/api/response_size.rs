//! Upper bound of the memory for the response to a request, estimated before the response is built.
//!
//! Estimates include intermediate values and err on the high side. An estimate that is too high
//! makes a request wait longer than needed; one that is too low is corrected once the response
//! exists.

use pykafka_wire::ApiKey;

use crate::api::metadata;
use crate::control_api::image::Image;

/// Bytes of the response per byte of the request, for a partition that the request names in 12
/// bytes. This and the next constants count encoded bytes and intermediate values.
const PER_BYTE_NAMED: usize = 8;
/// For topic names that do not exist; a name takes 2 bytes or more.
const PER_BYTE_DESCRIBED: usize = 80;
/// For all settings of a resource with their documentation; a resource takes 20 bytes.
const PER_BYTE_CONFIGURED: usize = 2_000;
/// For all settings of a topic without documentation; a topic takes 20 bytes.
const PER_BYTE_CREATED: usize = 150;
/// A partition in a list of all partitions of this broker.
const LISTED_BYTES: usize = 64;
/// A partition of a fetch response, with the intermediate values of the read.
const FETCHED_BYTES: usize = 384;

/// Returns the bound in bytes. 0 for APIs whose response is always small, or that reserve memory
/// themselves.
pub(crate) fn bytes_max(image: &Image, key: ApiKey, version: i16, body: &[u8]) -> usize {
    let of_body = |per_byte: usize| body.len().saturating_mul(per_byte);
    match key {
        // Requests of members and of transactional producers wait for others, up to minutes. Their
        // responses are small, or consist of a group's state, which has its own limit.
        ApiKey::PRODUCE
        | ApiKey::API_VERSIONS
        | ApiKey::JOIN_GROUP
        | ApiKey::SYNC_GROUP
        | ApiKey::HEARTBEAT
        | ApiKey::LEAVE_GROUP
        | ApiKey::CONSUMER_GROUP_HEARTBEAT
        | ApiKey::OFFSET_COMMIT
        | ApiKey::TXN_OFFSET_COMMIT
        | ApiKey::INIT_PRODUCER_ID
        | ApiKey::ADD_PARTITIONS_TO_TXN
        | ApiKey::ADD_OFFSETS_TO_TXN
        | ApiKey::END_TXN => 0,
        ApiKey::METADATA => metadata::bytes_max(image, version, body),
        ApiKey::DESCRIBE_TOPIC_PARTITIONS => {
            of_body(PER_BYTE_DESCRIBED)
                + image.settings.request_partitions_max as usize * FETCHED_BYTES
        }
        // A partition takes at least 16 bytes of the request. Only the fetch session has the number
        // of its other partitions.
        ApiKey::FETCH => of_fetch(body.len() / 16),
        ApiKey::DESCRIBE_CONFIGS => of_body(PER_BYTE_CONFIGURED),
        ApiKey::CREATE_TOPICS => of_body(PER_BYTE_CREATED),
        ApiKey::DESCRIBE_LOG_DIRS => of_body(PER_BYTE_NAMED) + listed(image),
        _ => of_body(PER_BYTE_NAMED),
    }
}

/// Bound of the response to a fetch of `partitions` partitions, without records.
pub(crate) fn of_fetch(partitions: usize) -> usize {
    partitions * FETCHED_BYTES
}

fn listed(image: &Image) -> usize {
    let of_topic = |topic: &str, partitions: usize| topic.len() + partitions * LISTED_BYTES;
    image.topics().map(|topic| of_topic(&topic.name, topic.partitions.len())).sum()
}

#[cfg(test)]
mod tests {
    use std::iter;

    use bytes::BytesMut;
    use pykafka_wire::metadata;

    use super::*;
    use crate::api::dispatch::dispatch;
    use crate::network::memory::Parts;
    use crate::network::memory::budget::Share;
    use crate::network::outcome::Outcome;
    use crate::network::reply::Reply;
    use crate::testing::{Broker, connection, header, pending, poll, settled};

    const PARTITIONS: i32 = 9_000;

    /// A request for everything, as it comes from a socket.
    fn asked(broker: &Broker) -> Outcome {
        let request = metadata::Request { topics: None, ..metadata::Request::default() };
        let mut body = BytesMut::new();
        request.encode(8, &mut body).unwrap();
        dispatch(&broker.ctx, &connection(), &header(ApiKey::METADATA, 8), body)
    }

    fn reply(outcome: Outcome) -> Reply {
        match settled(outcome) {
            Outcome::Reply(reply) => reply,
            other => panic!("no response: {other:?}"),
        }
    }

    #[test]
    fn large_replies_reserve_memory_before_encoding_and_keep_their_size_after() {
        let broker = Broker::in_memory().with_topic(PARTITIONS, &[]);
        let (responses, image) = (&broker.ctx.network.memory.responses, broker.ctx.image.load());
        let estimate = bytes_max(&image, ApiKey::METADATA, 8, &[255, 255, 255, 255, 1, 0, 0]);
        let others: Vec<Share> = iter::from_fn(|| responses.try_room(estimate)).collect();
        let held = estimate * others.len();
        assert_eq!(responses.bytes(), held);
        assert!(held <= Parts::of(1 << 28).responses + estimate);

        let mut waiting = pending(asked(&broker));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _timers = runtime.enter();
        assert!(poll(&mut waiting).is_none(), "others hold all of the room");
        drop(others);
        let reply = reply(Outcome::Pending(waiting));
        assert_eq!(responses.bytes(), reply.size());
        assert!(reply.size() < estimate && estimate < 20 * reply.size(), "{estimate}");
        drop(reply);
        assert_eq!(responses.bytes(), 0);
    }
}
