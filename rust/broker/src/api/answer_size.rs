//! How much memory the answer to a request may take, judged before it is made.
//!
//! Estimates are from above, for what the answer is made of too. One that is too large makes a request wait longer than
//! it had to; one that is too small is corrected when the answer is there.

use pykafka_wire::ApiKey;

use crate::api::metadata;
use crate::seam::image::Image;

/// What an answer says of a partition that the request names, encoded and before; the request needs 12 bytes for it.
const PER_BYTE_NAMED: usize = 8;
/// A name of a topic that is not there takes 2 bytes or more.
const PER_BYTE_DESCRIBED: usize = 80;
/// All settings of a resource with their documentation, for a resource of 20 bytes.
const PER_BYTE_CONFIGURED: usize = 2_000;
/// All settings of a topic without documentation, for a topic of 20 bytes.
const PER_BYTE_CREATED: usize = 150;
/// A partition of this broker in a list of all.
const LISTED_BYTES: usize = 64;
/// What a fetch says of a partition, with what was read of it before it is encoded.
const FETCHED_BYTES: usize = 384;

/// See the module. 0 for those whose answer is small whatever they ask, or that take room themselves.
pub(crate) fn bytes_max(image: &Image, key: ApiKey, version: i16, body: &[u8]) -> usize {
    let of_body = |per_byte: usize| body.len().saturating_mul(per_byte);
    match key {
        ApiKey::PRODUCE | ApiKey::API_VERSIONS => 0,
        ApiKey::METADATA => metadata::bytes_max(image, version, body),
        ApiKey::DESCRIBE_TOPIC_PARTITIONS => {
            of_body(PER_BYTE_DESCRIBED)
                + image.settings.request_partitions_max as usize * FETCHED_BYTES
        }
        // A partition takes 16 bytes of the request or more; those of a session are known to it alone.
        ApiKey::FETCH => of_fetch(body.len() / 16),
        ApiKey::DESCRIBE_CONFIGS => of_body(PER_BYTE_CONFIGURED),
        ApiKey::CREATE_TOPICS => of_body(PER_BYTE_CREATED),
        ApiKey::DESCRIBE_LOG_DIRS => of_body(PER_BYTE_NAMED) + listed(image),
        _ => of_body(PER_BYTE_NAMED),
    }
}

/// The answer to a fetch of so many partitions, without records.
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
    use crate::api::context::Outcome;
    use crate::api::dispatch::{LastClientId, dispatch};
    use crate::api::reply::Reply;
    use crate::network::memory::Parts;
    use crate::network::memory::budget::Share;
    use crate::testing::{Broker, connection, pending, poll, settled};

    const PARTITIONS: i32 = 9_000;

    /// A request for everything, as it comes from a socket.
    fn asked(broker: &Broker) -> Outcome {
        let request = metadata::Request { topics: None, ..metadata::Request::default() };
        let mut frame = BytesMut::from(&[0, 3, 0, 8, 0, 0, 0, 7, 255, 255][..]);
        request.encode(8, &mut frame).unwrap();
        dispatch(&broker.ctx, &connection(), &mut LastClientId::new(), frame, (0, 0)).1
    }

    fn reply(outcome: Outcome) -> Reply {
        match settled(outcome) {
            Outcome::Reply(reply) => reply,
            other => panic!("no answer: {other:?}"),
        }
    }

    #[test]
    fn large_answers_take_room_before_they_are_made_and_keep_what_they_are() {
        let broker = Broker::in_memory().with_topic(PARTITIONS, &[]);
        let (answers, image) = (&broker.ctx.memory.answers, broker.ctx.image.load());
        let estimate = bytes_max(&image, ApiKey::METADATA, 8, &[255, 255, 255, 255, 1, 0, 0]);
        let others: Vec<Share> = iter::from_fn(|| answers.try_room(estimate)).collect();
        let held = estimate * others.len();
        assert_eq!(answers.bytes(), held);
        assert!(held <= Parts::of(1 << 28).answers + estimate);

        let mut waiting = pending(asked(&broker));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _timers = runtime.enter();
        assert!(poll(&mut waiting).is_none(), "others hold all of the room");
        drop(others);
        let reply = reply(Outcome::Pending(waiting));
        assert_eq!(answers.bytes(), reply.size());
        assert!(reply.size() < estimate && estimate < 20 * reply.size(), "{estimate}");
        drop(reply);
        assert_eq!(answers.bytes(), 0);
    }
}
