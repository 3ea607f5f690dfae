use proptest::prelude::*;

use super::*;

#[test]
fn offsets_are_written_as_kafka_writes_them() {
    let text = b"0\n3\n__consumer_offsets 1 32\nempty 0 0\nodd.name_with-7 0 12\n";
    let offsets = read_offsets(text).unwrap();
    assert_eq!(offsets[&("odd.name_with-7".to_owned(), 0)], 12);
    assert_eq!(write_offsets(&offsets), text);
    assert_eq!(write_offsets(&PartitionOffsets::new()), b"0\n0\n");
}

#[test]
fn epochs_are_written_as_kafka_writes_them() {
    let text = b"0\n3\n0 0\n2 20\n4 40\n";
    let entries = read_epochs(text).unwrap();
    assert_eq!(entries[1], EpochEntry { epoch: LeaderEpoch::new(2), start_offset: 20 });
    assert_eq!(write_epochs(&entries), text);
}

#[test]
fn doubtful_checkpoints_are_errors() {
    for text in [
        "0",
        "0\n",
        "1\n0\n",
        "0\n1\n",
        "0\n-1\n",
        "0\n2\na 0 1\n",
        "0\n0\na 0 1\n",
        "0\n1\na 0\n",
        "0\n1\na 0 1 x\n",
        "0\n1\na x 1\n",
        "0\n1\na -1 1\n",
        "0\n1\na 0 -1\n",
        "0\n1\na 0 9223372036854775808\n",
        "0\n1\n\n",
        "0\n99999999999999999999\na 0 1\n",
    ] {
        assert!(read_offsets(text.as_bytes()).is_err(), "{text:?}");
    }
    for text in ["0\n1\n-1 0\n", "0\n1\n1 -5\n", "0\n1\n1\n", "0\n1\n1 2 3\n"] {
        assert!(read_epochs(text.as_bytes()).is_err(), "{text:?}");
    }
    assert_eq!(read_offsets(b"0\n\xff"), Err(CheckpointError::Encoding));
}

#[test]
fn an_empty_checkpoint_has_no_entries_as_apache_kafka_makes_them() {
    assert_eq!(read_offsets(b"").map(|entries| entries.len()), Ok(0));
}

#[test]
fn partition_metadata_equals_that_of_kafka() {
    let text = b"version: 0\ntopic_id: 06k7p64KQ_aEDZnLFuIBJQ";
    let found = read_partition_metadata(text).unwrap();
    assert_eq!((&found.topic_id[..3], found.partition), (&[0xd3, 0xa9, 0x3b][..], None));
    assert_eq!(write_partition_metadata(found), text);
    let ours = [&text[..], b"\npartition: 12"].concat();
    let found = PartitionIdentity { partition: Some(12), ..found };
    assert_eq!(read_partition_metadata(&ours), Ok(found));
    assert_eq!(write_partition_metadata(found), ours);
    for bad in [
        "",
        "version: 1\ntopic_id: 06k7p64KQ_aEDZnLFuIBJQ",
        "version: 0\n",
        "version: 0\ntopic_id: x",
        "version: 0\ntopic_id: 06k7p64KQ_aEDZnLFuIBJQ\npartition: x",
    ] {
        assert!(read_partition_metadata(bad.as_bytes()).is_err(), "{bad:?}");
    }
}

#[test]
fn meta_properties_are_read_in_any_order_and_with_comments() {
    let text =
        b"#\n#Sat Nov 21 01:31:30 UTC 2026\nnode.id=1\ndirectory.id=PiNoeOXmQxe1tAMLO2R12w\n\
                 version=1\ncluster.id=2EmZYW-FRB2ZlZqcy_R5Fw\n";
    let properties = MetaProperties::read(text).unwrap();
    let expected = MetaProperties {
        cluster_id: "2EmZYW-FRB2ZlZqcy_R5Fw".into(),
        node_id: 1,
        directory_id: Some("PiNoeOXmQxe1tAMLO2R12w".into()),
    };
    assert_eq!(properties, expected);
    assert_eq!(MetaProperties::read(&expected.write()), Ok(expected));
    let old = MetaProperties::read(b"version=0\nbroker.id=7\ncluster.id=x\n").unwrap();
    assert_eq!((old.node_id, old.directory_id), (7, None));
    for bad in [
        "",
        "version=1\ncluster.id=x",
        "version=2\nnode.id=1\ncluster.id=x",
        "version=1\nnode.id=one\ncluster.id=x",
    ] {
        assert!(MetaProperties::read(bad.as_bytes()).is_err(), "{bad:?}");
    }
}

#[test]
fn clean_shutdown_marker_equals_that_of_kafka() {
    let text = b"{\"version\":0,\"brokerEpoch\":248}";
    assert_eq!(CleanShutdown::read(text), Ok(CleanShutdown { broker_epoch: 248 }));
    assert_eq!(CleanShutdown { broker_epoch: 248 }.write(), text);
    assert_eq!(CleanShutdown::read(b""), Ok(CleanShutdown { broker_epoch: -1 }));
    assert!(CleanShutdown::read(b"{\"version\":1,\"brokerEpoch\":248}").is_err());
    assert!(CleanShutdown::read(b"{\"version\":0").is_err());
}

proptest! {
    #[test]
    fn topic_ids_round_trip(id in any::<[u8; 16]>()) {
        prop_assert_eq!(parse_topic_id(&write_topic_id(id)), Some(id));
    }

    #[test]
    fn offsets_round_trip(
        offsets in prop::collection::btree_map(("[a-zA-Z0-9._-]{1,20}", 0..i32::MAX), any::<i64>(), 0..20)
    ) {
        let written = write_offsets(&offsets);
        prop_assert_eq!(read_offsets(&written).is_ok(), offsets.values().all(|offset| *offset >= 0));
        prop_assert_eq!(read_topic_ids(&written), Ok(offsets));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in ".*") {
        for input in [bytes.as_slice(), text.as_bytes()] {
            let _ = (read_offsets(input), read_epochs(input), read_partition_metadata(input));
            let _ = (MetaProperties::read(input), CleanShutdown::read(input), parse_topic_id(&text));
        }
    }
}
