//! Compaction in the background: every `log.cleaner.backoff.ms`, one log at a time, the one with
//! the largest share of dirty bytes first. A log that is not open is opened only if its directory
//! shows that it may be due.

use std::sync::Arc;

use pykafka_log::CompactionOptions;
use pykafka_record::Cancellation;

use crate::context::Context;
use crate::partition::Partition;
use crate::partition::threads::background::Urgency;
use crate::partition::threads::may_wait::MayWait;

/// Queues a round on the background queue; `under_way` is dropped at its end.
pub(crate) fn begin(ctx: &Arc<Context>, under_way: Arc<()>) {
    let host = ctx.partitions.host().clone();
    let ctx = ctx.clone();
    host.background.push(Urgency::Background, move |may_wait| {
        compact_due(&ctx, may_wait);
        drop(under_way);
    });
}

/// Compacts each log that is due, once.
pub(crate) fn compact_due(ctx: &Arc<Context>, may_wait: &MayWait) {
    if !ctx.image.load().settings.cleaner_enable {
        return;
    }
    let host = ctx.partitions.host();
    for partition in dirtiest_first(ctx, may_wait) {
        if ctx.is_stopping() {
            return;
        }
        let Some(log) = partition.log_if_due(host, may_wait) else { continue };
        let stopping = Arc::downgrade(ctx);
        let is_over = move || stopping.upgrade().is_none_or(|ctx| ctx.is_stopping());
        let image = ctx.image.load();
        let settings = &image.settings;
        let options = CompactionOptions {
            high_watermark: partition.high_watermark(),
            key_bytes_max: settings.cleaner_used_key_bytes_max(),
            write_bytes: settings.cleaner_write_bytes,
            bytes_per_second_max: settings.cleaner_bytes_per_second_max,
            cancellation: Cancellation::when(is_over),
            ..CompactionOptions::default()
        };
        let compacted = host.directory.compact(&log, &options, host.clock.now_ms());
        partition.report_compaction(host, &log, compacted);
    }
}

/// The partitions whose logs are due, as far as that is known before they are opened.
fn dirtiest_first(ctx: &Context, may_wait: &MayWait) -> Vec<Arc<Partition>> {
    let host = ctx.partitions.host();
    let mut due: Vec<_> = (ctx.partitions.all().into_iter())
        .take_while(|_| !ctx.is_stopping())
        .filter_map(|partition| Some((partition.dirty_ratio_if_due(host, may_wait)?, partition)))
        .collect();
    due.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    due.into_iter().map(|(_, partition)| partition).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use pykafka_log::{Durability, Log, OpenMode};
    use pykafka_record::{BatchBuilder, BatchOptions};

    use pykafka_wire::message::produce;

    use super::*;
    use crate::control_api::event::faults::LogFault;
    use crate::control_api::image::delta::ImageDelta;
    use crate::kafka_error::KafkaError;
    use crate::testing::{Broker, TOPIC, replied, topic};

    const COMPACTED: &[(&str, &str)] =
        &[("cleanup.policy", "compact"), ("file.delete.delay.ms", "0")];

    fn batch(key: &str) -> Vec<u8> {
        batch_with(Some(key.as_bytes()))
    }

    fn batch_with(key: Option<&[u8]>) -> Vec<u8> {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(1, key, Some(b"value"), &[]).unwrap();
        let mut bytes = Vec::new();
        builder.build(&mut bytes).unwrap();
        bytes
    }

    fn filled(overrides: &[(&str, &str)]) -> (Broker, Arc<Log>) {
        let overrides = [COMPACTED, overrides].concat();
        let broker = Broker::on_disk(Durability::Os).with_topic(1, &overrides);
        for _ in 0..3 {
            broker.append(&batch("key"));
        }
        let log = broker.ctx.partitions.get(&TOPIC, 0).unwrap().opened_log().unwrap();
        log.roll().unwrap();
        broker.append(&batch("active"));
        (broker, log)
    }

    fn compact(broker: &Broker) {
        compact_due(&broker.ctx, &MayWait::as_documented());
    }

    fn records_size(log: &Log) -> u64 {
        log.segments()[0].1
    }

    #[test]
    fn a_log_is_compacted_once_it_is_dirty_enough() {
        for (ratio, is_compacted) in [("0.5", true), ("1", false)] {
            let (broker, log) = filled(&[("min.cleanable.dirty.ratio", ratio)]);
            let before = records_size(&log);
            compact(&broker);
            assert_eq!(records_size(&log) < before, is_compacted, "{ratio}");
            let after = records_size(&log);
            compact(&broker);
            assert_eq!(records_size(&log), after);
        }
    }

    #[test]
    fn a_log_is_compacted_once_its_oldest_dirty_record_is_too_old() {
        let (broker, log) =
            filled(&[("min.cleanable.dirty.ratio", "1"), ("max.compaction.lag.ms", "1000")]);
        let before = records_size(&log);
        compact(&broker);
        assert!(records_size(&log) < before, "its records are of 1970");
    }

    #[test]
    fn a_log_without_clients_is_compacted_after_a_restart() {
        let late = [("min.cleanable.dirty.ratio", "1"), ("max.compaction.lag.ms", "1000")];
        for (overrides, is_clean_stop) in
            [(&[][..], true), (&[], false), (&late[..], true), (&late[..], false)]
        {
            let (broker, log) = filled(overrides);
            let before = records_size(&log);
            log.flush().unwrap();
            let mut broker = if is_clean_stop {
                broker.stopped_and_restarted(Durability::Os)
            } else {
                broker.killed_and_restarted(Durability::Os)
            };
            let overrides = [COMPACTED, overrides].concat();
            broker = broker.with_topic(1, &overrides);
            let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
            assert!(partition.opened_log().is_none());
            compact(&broker);
            let log = partition.opened_log().expect("opened for the compaction");
            assert!(records_size(&log) < before, "{overrides:?} {is_clean_stop}");
        }
    }

    #[test]
    fn a_clean_log_stays_closed_after_a_restart() {
        for (overrides, is_compacted_before) in [
            (&[("min.cleanable.dirty.ratio", "1")][..], false),
            (&[("cleanup.policy", "delete")], false),
            (&[("max.compaction.lag.ms", "1000")], true),
        ] {
            let (broker, log) = filled(overrides);
            if is_compacted_before {
                compact(&broker);
            }
            log.flush().unwrap();
            let overrides = [COMPACTED, overrides].concat();
            let broker = broker.stopped_and_restarted(Durability::Os).with_topic(1, &overrides);
            compact(&broker);
            let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
            assert!(partition.opened_log().is_none(), "{overrides:?}");
        }
    }

    #[test]
    fn altered_settings_of_a_closed_log_apply() {
        let overrides = [("min.cleanable.dirty.ratio", "1")];
        let (broker, log) = filled(&overrides);
        let before = records_size(&log);
        let overrides = [COMPACTED, &overrides].concat();
        let mut broker = broker.stopped_and_restarted(Durability::Os).with_topic(1, &overrides);
        compact(&broker);
        let overrides = [&*overrides, &[("max.compaction.lag.ms", "1000")]].concat();
        let topics = vec![topic("t", TOPIC, 1, &overrides)];
        broker.apply(ImageDelta { topics, ..ImageDelta::default() });
        compact(&broker);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        assert!(records_size(&partition.opened_log().unwrap()) < before);
    }

    #[test]
    fn nothing_is_compacted_without_the_cleaner_or_its_policy_or_while_the_broker_stops() {
        let (mut broker, log) = filled(&[]);
        let before = records_size(&log);
        let settings = [("log.cleaner.enable".to_owned(), "false".to_owned())];
        let broker_settings = Some(settings.into());
        broker.apply(ImageDelta { broker_settings, ..ImageDelta::default() });
        compact(&broker);
        assert_eq!(records_size(&log), before);
        let (broker, log) = filled(&[("cleanup.policy", "delete")]);
        compact(&broker);
        assert_eq!(records_size(&log), before);
        let (broker, log) = filled(&[]);
        broker.ctx.network.stopping.store(true, Ordering::Release);
        compact(&broker);
        assert_eq!(records_size(&log), before);
    }

    #[test]
    fn rounds_start_at_the_new_backoff_once_it_is_set() {
        let (mut broker, log) = filled(&[]);
        log.flush().unwrap();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        let pass = |ms| {
            let time = std::time::Duration::from_millis(ms);
            runtime.block_on(async move { tokio::time::sleep(time).await });
        };
        let upkeep = runtime.spawn(crate::maintenance::run(broker.ctx.clone()));
        pass(1);
        let settings = [("log.cleaner.backoff.ms".to_owned(), "100".to_owned())];
        let broker_settings = Some(settings.into());
        broker.apply(ImageDelta { broker_settings, ..ImageDelta::default() });
        pass(400);
        broker.ctx.partitions.host().background.wait_idle(&MayWait::as_documented());
        upkeep.abort();
        assert!(records_size(&log) < 3 * batch("key").len() as u64);
    }

    #[test]
    fn a_record_without_a_key_is_rejected_by_its_index() {
        let (broker, _) = filled(&[]);
        let bytes = replied(broker.produce(9, -1, &batch_with(None)));
        let response = produce::Response::decode(9, &bytes).unwrap();
        let partition = &response.responses[0].partitions[0];
        assert_eq!(partition.error_code, KafkaError::InvalidRecord.code());
        assert_eq!(partition.record_errors.len(), 1);
    }

    #[test]
    fn a_log_that_cannot_be_compacted_serves_and_is_not_retried() {
        let (mut broker, log) = filled(&[]);
        broker.events();
        let host = broker.ctx.partitions.host();
        let path = log.dir().join("00000000000000000000.log");
        let file = host.directory.disk().open(&path, OpenMode::Write).unwrap();
        file.write_at(b"?", 70).unwrap();
        compact(&broker);
        assert_eq!(broker.faults(), [vec![LogFault::Uncleanable]]);
        assert!(log.write_error().is_none());
        broker.append(&batch("key"));
        compact(&broker);
        assert_eq!(log.segments_count(), 2);
        let overrides = [COMPACTED, &[("cleanup.policy", "compact,delete"), ("retention.ms", "0")]];
        let topics = vec![topic("t", TOPIC, 1, &overrides.concat())];
        broker.apply(ImageDelta { topics, ..ImageDelta::default() });
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        assert!(partition.ask_for_retention());
        partition.send_to_work(Urgency::Asked);
        broker.wait_idle();
        assert_eq!(broker.faults(), [vec![]]);
    }
}
