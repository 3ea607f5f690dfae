//! Replication throttles (KIP-73): followers that catch up leave bandwidth for clients and for
//! in-sync replicas.
//!
//! # Theory of operation
//! There are two rates, as leader and as follower. Each counts the bytes of all throttled
//! partitions together (Kafka's `ReplicationQuotaManager`). Topic settings list the throttled
//! partitions (`control_api/image/throttled.rs`); the limits are broker settings. While a rate is
//! above its limit, throttled partitions are omitted:
//!
//! - by the leader, in responses to followers outside the ISR (`api/fetch/target.rs`): the
//!   partition gets no records, which does not complete the Fetch, so it waits at the leader;
//! - by the follower, in its next Fetch, unless it is in the ISR or has all committed records
//!   (`partition/fetcher`). Kafka throttles lagging ISR members there; then acks=all would wait for
//!   the throttle.
//!
//! The bytes of in-sync followers count too. A rate is measured over `replication.quota.window.num`
//! windows, and over at least one window (Kafka's `SimpleRate`), so a limit is effective from the
//! first second on. Excess is detected after the bytes were sent, so one response passes whatever
//! the limit is; with a limit of 0, one passes each time all windows are over. A fetch that is held
//! back is checked again after at most [`HELD_MAX`], so that a throttle that is raised or removed
//! takes effect that soon.
//!
//! Without a limit, a Fetch costs only comparisons: one flag per request and one per partition; no
//! lock, no clock and no allocation. With a limit, partitions are searched in the lists of their
//! topics, and the lock of a rate is taken if any of them is throttled.

pub(crate) mod rates;

use std::time::Duration;

use pykafka_forks::Mutex;

use crate::api::quota::rate::{Rate, Windows};
use crate::context::Context;
use crate::control_api::settings::{Settings, Side};

/// Maximum time that a follower holds back a partition before it checks the rate again.
pub(crate) const HELD_MAX: Duration = Duration::from_millis(500);

/// A rate, its limit, and the time and windows of a measurement.
struct Throttle<'a> {
    rate: &'a Mutex<Rate>,
    bytes_per_second: i64,
    now_ms: u64,
    windows: Windows,
}

impl<'a> Throttle<'a> {
    /// `None` without a limit: then nothing is measured.
    fn of(ctx: &'a Context, settings: &Settings, side: Side) -> Option<Throttle<'a>> {
        let throttle = settings.replication_throttle;
        let bytes_per_second = throttle.limit(side)?;
        let rate = match side {
            Side::Leader => &ctx.replication_throttles.as_leader,
            Side::Follower => &ctx.replication_throttles.as_follower,
        };
        let windows = Windows { count: throttle.windows, ms: throttle.window_ms };
        let now_ms = ctx.clock.now_ns() / 1_000_000;
        Some(Throttle { rate, bytes_per_second, now_ms, windows })
    }
}

/// Counts the bytes of throttled partitions.
pub(crate) fn record(ctx: &Context, settings: &Settings, side: Side, bytes: usize) {
    if bytes > 0
        && let Some(throttle) = Throttle::of(ctx, settings, side)
    {
        throttle.rate.lock().record(bytes as i64, throttle.now_ms, throttle.windows);
    }
}

/// How long throttled partitions are held back, at most [`HELD_MAX`]; `None` if the rate is not
/// above its limit.
pub(crate) fn held_back(ctx: &Context, settings: &Settings, side: Side) -> Option<Duration> {
    let throttle = Throttle::of(ctx, settings, side)?;
    let limit = throttle.bytes_per_second as f64;
    let excess_ms = throttle.rate.lock().excess_ms(limit, throttle.now_ms, throttle.windows);
    (excess_ms > 0).then(|| Duration::from_millis(excess_ms).min(HELD_MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::testing::Broker;

    fn broker(leader: &str, follower: &str) -> Broker {
        let mut broker = Broker::in_memory().in_cluster();
        broker.set(&[
            ("leader.replication.throttled.rate", leader),
            ("follower.replication.throttled.rate", follower),
        ]);
        broker
    }

    fn held(broker: &Broker, side: Side) -> Option<Duration> {
        held_back(&broker.ctx, &broker.ctx.image.load().settings, side)
    }

    fn count(broker: &Broker, side: Side, bytes: usize) {
        record(&broker.ctx, &broker.ctx.image.load().settings, side, bytes);
    }

    #[test]
    fn bytes_beyond_one_second_throttle_until_the_rate_is_at_the_limit() {
        let broker = broker("1000", "2000");
        count(&broker, Side::Leader, 1_000);
        assert_eq!(held(&broker, Side::Leader), None);
        count(&broker, Side::Leader, 200);
        assert_eq!(held(&broker, Side::Leader), Some(Duration::from_millis(200)));
        broker.clock.advance_ms(1_199);
        assert_eq!(held(&broker, Side::Leader), Some(Duration::from_millis(1)));
        broker.clock.advance_ms(1);
        assert_eq!(held(&broker, Side::Leader), None);
    }

    #[test]
    fn each_side_has_its_own_rate() {
        let broker = broker("1000", "2000");
        count(&broker, Side::Leader, 5_000);
        assert_eq!(held(&broker, Side::Leader), Some(HELD_MAX));
        assert_eq!(held(&broker, Side::Follower), None);
        count(&broker, Side::Follower, 2_001);
        assert!(held(&broker, Side::Follower).is_some());
    }

    #[test]
    fn a_limit_of_zero_allows_one_reply_in_all_windows() {
        let broker = broker("0", "0");
        assert_eq!(held(&broker, Side::Leader), None);
        count(&broker, Side::Leader, 1);
        assert_eq!(held(&broker, Side::Leader), Some(HELD_MAX));
        broker.clock.advance_ms(10_999);
        assert_eq!(held(&broker, Side::Leader), Some(HELD_MAX));
        broker.clock.advance_ms(1);
        assert_eq!(held(&broker, Side::Leader), None);
    }

    #[test]
    fn without_a_limit_no_lock_is_taken() {
        let broker = broker("9223372036854775807", "9223372036854775807");
        let rates = &broker.ctx.replication_throttles;
        let _locked = (rates.as_leader.lock(), rates.as_follower.lock());
        let (ctx, (tell, told)) = (broker.ctx.clone(), mpsc::channel());
        thread::spawn(move || {
            for side in [Side::Leader, Side::Follower] {
                record(&ctx, &ctx.image.load().settings, side, 1);
                tell.send(held_back(&ctx, &ctx.image.load().settings, side)).unwrap();
            }
        });
        for _ in 0..2 {
            assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(None));
        }
    }

    #[test]
    fn without_a_limit_nothing_is_measured_and_a_new_limit_keeps_the_old_measurements() {
        let mut broker = broker("9223372036854775807", "9223372036854775806");
        count(&broker, Side::Leader, usize::MAX >> 2);
        count(&broker, Side::Follower, usize::MAX >> 2);
        assert_eq!(held(&broker, Side::Leader), None);
        assert_eq!(held(&broker, Side::Follower), None);
        broker.set(&[
            ("leader.replication.throttled.rate", "1"),
            ("follower.replication.throttled.rate", "1"),
        ]);
        assert_eq!(held(&broker, Side::Leader), None);
        assert_eq!(held(&broker, Side::Follower), Some(HELD_MAX));
    }
}
