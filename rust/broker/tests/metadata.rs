//! `Metadata` and `DescribeTopicPartitions` over real sockets (contract/kafka.md#34, #35, #67).

mod common;

use common::{Broker, Client, NODE, encoded};
use pykafka_broker::{Event, ImageDelta, PartitionEntry, TopicImage};
use pykafka_record::LeaderEpoch;
use pykafka_wire::metadata::{Request, Topic};
use pykafka_wire::{ApiKey, describe_topic_partitions as describe, metadata};

fn by_name(name: &str) -> Topic<'_> {
    Topic { name: Some(name), ..Topic::default() }
}

fn by_id(topic_id: [u8; 16]) -> Topic<'static> {
    Topic { topic_id, name: None }
}

fn ask(client: &mut Client, version: i16, request: &Request<'_>) -> Vec<u8> {
    client.ask(ApiKey::METADATA, version, &encoded(|out| request.encode(version, out)))
}

fn asked<'a>(topics: impl IntoIterator<Item = Topic<'a>>) -> Request<'a> {
    Request { topics: Some(topics.into_iter().collect()), ..Request::default() }
}

fn decoded(version: i16, body: &[u8]) -> metadata::Response<'_> {
    metadata::Response::decode(version, body).expect("a response")
}

#[test]
fn all_none_and_named_topics_in_every_version() {
    let broker = Broker::start(&[]);
    broker.create_topic("a", [1; 16], 2);
    broker.create_topic("b", [2; 16], 1);
    let mut client = broker.connect();
    for version in 0..=13 {
        let all = Request { topics: None, ..Request::default() };
        let all = if version == 0 { asked([]) } else { all };
        let body = ask(&mut client, version, &all);
        let response = decoded(version, &body);
        assert_eq!(response.topics.len(), 2, "{version}");
        let broker_of = &response.brokers[0];
        assert_eq!((broker_of.node_id, broker_of.port), (NODE, i32::from(broker.port)));
        if version >= 1 {
            assert_eq!(response.controller_id, NODE);
            let body = ask(&mut client, version, &asked([]));
            assert_eq!(decoded(version, &body).topics, []);
        }
        if version >= 2 {
            assert_eq!(response.cluster_id, Some("cluster-of-a-test"));
        }
        let body = ask(&mut client, version, &asked([by_name("a"), by_name("a")]));
        let topics = decoded(version, &body).topics;
        assert_eq!((topics.len(), topics[0].name, topics[0].error_code), (1, Some("a"), 0));
        let id = if version >= 10 { [1; 16] } else { [0; 16] };
        assert_eq!(topics[0].topic_id, id);
        let partitions: Vec<_> =
            topics[0].partitions.iter().map(|p| (p.partition_index, p.leader_id)).collect();
        assert_eq!(partitions, [(0, NODE), (1, NODE)]);
    }
}

#[test]
fn topics_are_found_by_id_from_version_12_on() {
    let broker = Broker::start(&[]);
    broker.create_topic("a", [1; 16], 1);
    let mut client = broker.connect();
    let body = ask(&mut client, 12, &asked([by_id([1; 16]), by_id([9; 16])]));
    let topics = decoded(12, &body).topics;
    assert_eq!((topics[0].name, topics[0].error_code), (Some("a"), 0));
    assert_eq!((topics[1].name, topics[1].error_code), (None, 100));
}

#[test]
fn empty_requests_and_early_ids_are_rejected_without_brokers() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    for (version, topic, error_code) in [(12, by_id([0; 16]), -1), (10, by_id([1; 16]), 42)] {
        let body = ask(&mut client, version, &asked([topic]));
        let response = decoded(version, &body);
        assert_eq!(response.brokers, []);
        assert_eq!(
            (response.topics[0].error_code, response.topics[0].name),
            (error_code, Some(""))
        );
    }
}

#[test]
fn missing_topics_are_reported_to_python_only_if_request_and_setting_allow() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    let named = asked([by_name("new"), by_name("a/b"), by_name("..")]);
    let forbidden = Request { allow_auto_topic_creation: false, ..named.clone() };
    for request in [&forbidden, &named, &named] {
        let body = ask(&mut client, 9, request);
        let codes: Vec<_> = decoded(9, &body).topics.iter().map(|topic| topic.error_code).collect();
        assert_eq!(codes, [3, 17, 17]);
    }
    let Event::TopicsMissing { names, principal } = broker.event() else { panic!() };
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["new"]);
    assert_eq!(&*principal, "User:ANONYMOUS");
    assert!(broker.core.wait(0, 1).is_empty());

    let broker = Broker::start(&[("auto.create.topics.enable", "false")]);
    ask(&mut broker.connect(), 9, &named);
    assert!(broker.core.wait(0, 1).is_empty());
}

#[test]
fn hidden_topics_are_omitted_and_stopped_leaders_are_unavailable() {
    let broker = Broker::start(&[]);
    let partition = PartitionEntry {
        leader: 9,
        leader_epoch: LeaderEpoch::new(4),
        replicas: vec![9, NODE],
        isr: vec![9],
        ..PartitionEntry::default()
    };
    let hidden = TopicImage {
        name: "__cluster_metadata".into(),
        topic_id: [7; 16],
        hidden: true,
        ..TopicImage::default()
    };
    let topic = TopicImage {
        name: "a".into(),
        topic_id: [1; 16],
        partitions: vec![partition],
        ..TopicImage::default()
    };
    broker.apply(ImageDelta { topics: vec![hidden, topic], ..ImageDelta::default() });
    let mut client = broker.connect();
    let body = ask(&mut client, 9, &Request { topics: None, ..Request::default() });
    let topics = decoded(9, &body).topics;
    assert_eq!(topics.len(), 1);
    let partition = &topics[0].partitions[0];
    assert_eq!((partition.error_code, partition.leader_id, partition.leader_epoch), (5, -1, 4));
    assert_eq!(partition.offline_replicas, [9]);
    let body = ask(&mut client, 12, &asked([by_id([7; 16])]));
    assert_eq!(decoded(12, &body).topics[0].error_code, 100);
}

#[test]
fn authorized_operations_are_all_those_of_kafka() {
    let broker = Broker::start(&[]);
    broker.create_topic("a", [1; 16], 1);
    let request = Request {
        include_topic_authorized_operations: true,
        include_cluster_authorized_operations: true,
        ..asked([by_name("a")])
    };
    let body = ask(&mut broker.connect(), 8, &request);
    let response = decoded(8, &body);
    assert_eq!(response.cluster_authorized_operations, 8096);
    assert_eq!(response.topics[0].topic_authorized_operations, 3576);
}

#[test]
fn null_topic_list_of_librdkafka_in_four_bytes_is_decoded() {
    let broker = Broker::start(&[]);
    broker.create_topic("a", [1; 16], 1);
    let mut client = broker.connect();
    // contract/kafka.md#55: a null array of version 13 is one byte; three zero bytes are left.
    let body = client.ask(ApiKey::METADATA, 13, &[0, 0, 0, 0, 0]);
    assert_eq!(decoded(13, &body).topics.len(), 1);
}

/// Name, error code and partitions of each topic; and the next cursor.
type Page = (Vec<(String, i16, Vec<i32>)>, Option<(String, i32)>);

fn pages(client: &mut Client, request: &describe::Request<'_>) -> Page {
    let key = ApiKey::DESCRIBE_TOPIC_PARTITIONS;
    let body = client.ask(key, 0, &encoded(|out| request.encode(0, out)));
    let response = describe::Response::decode(0, &body).expect("a response");
    let topics = response.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
        (topic.name.unwrap_or_default().to_string(), topic.error_code, partitions.collect())
    });
    let next = response.next_cursor.as_ref();
    (topics.collect(), next.map(|next| (next.topic_name.to_string(), next.partition_index)))
}

#[test]
fn partitions_are_described_page_by_page_in_the_order_of_names() {
    let broker = Broker::start(&[]);
    broker.create_topic("b", [2; 16], 3);
    broker.create_topic("a", [1; 16], 2);
    let mut client = broker.connect();
    let mut request =
        describe::Request { response_partition_limit: 2, ..describe::Request::default() };
    let row = |name: &str, partitions: &[i32]| (name.to_string(), 0, partitions.to_vec());
    let (topics, next) = pages(&mut client, &request);
    assert_eq!((topics, next), (vec![row("a", &[0, 1])], Some(("b".into(), 0))));
    request.cursor = Some(describe::Cursor { topic_name: "b", partition_index: 0 });
    let (topics, next) = pages(&mut client, &request);
    assert_eq!((topics, next), (vec![row("b", &[0, 1])], Some(("b".into(), 2))));
    request.cursor = Some(describe::Cursor { topic_name: "b", partition_index: 2 });
    let (topics, next) = pages(&mut client, &request);
    assert_eq!((topics, next), (vec![row("b", &[2])], None));
}

#[test]
fn a_cursor_outside_the_request_is_an_invalid_request() {
    let broker = Broker::start(&[]);
    broker.create_topic("a", [1; 16], 2);
    let mut client = broker.connect();
    let topics = vec![describe::Topic { name: "a" }, describe::Topic { name: "x" }];
    let request = describe::Request { topics, ..describe::Request::default() };
    let (answered, _) = pages(&mut client, &request);
    assert_eq!(answered, [("a".into(), 0, vec![0, 1]), ("x".into(), 3, vec![])]);
    for (topic_name, partition_index) in [("b", 0), ("a", -1)] {
        let cursor = Some(describe::Cursor { topic_name, partition_index });
        let (answered, _) = pages(&mut client, &describe::Request { cursor, ..request.clone() });
        assert_eq!(answered, [("a".into(), 42, vec![]), ("x".into(), 42, vec![])]);
    }
}
