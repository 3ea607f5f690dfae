//! The rates of throttled replication.

use pykafka_forks::Mutex;

use crate::api::quota::rate::Rate;

/// The rates of a broker.
#[derive(Debug, Default)]
pub(crate) struct ReplicationThrottles {
    pub(super) as_leader: Mutex<Rate>,
    pub(super) as_follower: Mutex<Rate>,
}
