use std::time::Duration;

use super::rates::RATES_MAX;
use super::*;
use crate::control_api::image::client_quotas::{ClientQuota, Named};
use crate::control_api::image::delta::ImageDelta;
use crate::testing::{Broker, connection, header};
use pykafka_wire::ApiKey;

fn quota(client_id: Named, metered: Metered, bytes_per_second: f64) -> ClientQuota {
    ClientQuota { user: Named::Nobody, client_id, metered, bytes_per_second }
}

fn broker(quotas: Vec<ClientQuota>) -> Broker {
    let mut broker = Broker::in_memory();
    broker.apply(ImageDelta { client_quotas: Some(quotas), ..ImageDelta::default() });
    broker
}

fn client(id: &str) -> Client {
    let mut header = header(ApiKey::PRODUCE, 12);
    header.client_id = Arc::from(id);
    Client::new(&connection(), &header)
}

fn muted(broker: &Broker, client: &Client) -> Option<Duration> {
    client.conn.mute.remaining(|| broker.ctx.clock.now_ns())
}

#[test]
fn a_client_without_a_quota_is_not_metered() {
    let broker = broker(vec![quota(Named::One("a".into()), Metered::Produced, 1.0)]);
    let client = client("b");
    assert_eq!(client.produced(&broker.ctx, 1 << 30), 0);
    assert_eq!(client.fetched(&broker.ctx, 1 << 30), 0);
    assert_eq!(client.fetch_bytes_max(&broker.ctx), i32::MAX);
    assert_eq!(muted(&broker, &client), None);
    assert!(broker.ctx.rates.table.lock().rates.is_empty());
}

#[test]
fn a_client_over_its_produce_quota_is_muted_for_the_returned_throttle_time() {
    let broker = broker(vec![quota(Named::One("a".into()), Metered::Produced, 1_000.0)]);
    let client = client("a");
    assert_eq!(client.produced(&broker.ctx, 10_000), 0);
    assert_eq!(client.produced(&broker.ctx, 3_000), 3_000);
    assert_eq!(muted(&broker, &client), Some(Duration::from_secs(3)));
    broker.clock.advance_ms(3_000);
    assert_eq!(muted(&broker, &client), None);
    assert_eq!(broker.ctx.network.statistics.clients_throttled.value(), 1);
}

#[test]
fn clients_of_a_default_have_their_own_rates_and_those_of_a_user_share_one() {
    let of_user = ClientQuota {
        user: Named::One("ANONYMOUS".into()),
        ..quota(Named::Nobody, Metered::Fetched, 1_000.0)
    };
    let broker = broker(vec![quota(Named::Default, Metered::Produced, 1_000.0), of_user]);
    assert_eq!(client("a").produced(&broker.ctx, 10_000), 0);
    assert_eq!(client("b").produced(&broker.ctx, 10_000), 0);
    assert_eq!(client("a").fetched(&broker.ctx, 10_000), 0);
    assert!(client("b").fetched(&broker.ctx, 10_000) > 0);
}

#[test]
fn a_rejected_fetch_does_not_count() {
    let broker = broker(vec![quota(Named::Default, Metered::Fetched, 1_000.0)]);
    let client = client("a");
    assert_eq!(client.fetch_bytes_max(&broker.ctx), 10_000);
    assert_eq!(client.fetched(&broker.ctx, 10_000), 0);
    assert_eq!(client.fetched(&broker.ctx, 5_000), 5_000);
    assert_eq!(client.fetched(&broker.ctx, 5_000), 5_000);
    broker.clock.advance_ms(11_000);
    assert_eq!(client.fetched(&broker.ctx, 5_000), 0);
}

#[test]
fn more_clients_than_there_are_rates_share_one_and_idle_ones_are_forgotten() {
    let broker = broker(vec![quota(Named::Default, Metered::Produced, 1_000.0)]);
    let count = || broker.ctx.rates.table.lock().rates.len();
    let throttled = (0..2 * RATES_MAX)
        .filter(|number| client(&number.to_string()).produced(&broker.ctx, 1_000) > 0)
        .count();
    assert_eq!(count(), RATES_MAX + 1);
    assert!(throttled > RATES_MAX / 2);
    broker.clock.advance_ms(11_000);
    assert_eq!(client("another").produced(&broker.ctx, 1_000), 0);
    assert_eq!(count(), 1);
}
