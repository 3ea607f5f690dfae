//! The fuzz targets on valid files, on mutations of them and on random bytes, for `FUZZ_SECONDS`
//! each.

use driver::run;
use pykafka_log::{AppendedMarker, ProducerStateManager, fuzz};
use pykafka_record::{EndTransactionMarker, ProducerEpoch, ProducerId};

mod common;
#[path = "../../fuzz/driver.rs"]
mod driver;

/// Each content after each first byte.
fn with_choices(contents: &[Vec<u8>], choices: &[u8]) -> Vec<Vec<u8>> {
    let behind = |choice: &u8, content: &Vec<u8>| [&[*choice], content.as_slice()].concat();
    let all = contents.iter().flat_map(|c| choices.iter().map(move |choice| behind(choice, c)));
    all.collect()
}

#[test]
fn small_files_never_panic() {
    let corpus: Vec<Vec<u8>> = [
        "0\n2\ntopic 0 12\nother.name-7 3 4\n",
        "0\n3\n0 0\n2 20\n4 40\n",
        "version: 0\ntopic_id: 06k7p64KQ_aEDZnLFuIBJQ",
        "#\n#Sat\nnode.id=1\ndirectory.id=PiNoeOXmQxe1tAMLO2R12w\nversion=1\ncluster.id=x\n",
        "{\"version\":0,\"brokerEpoch\":248}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    run(&corpus, fuzz::fuzz_checkpoints);
}

#[test]
fn producer_snapshots_never_panic() {
    let mut state = ProducerStateManager::new(i64::MAX);
    let empty = state.snapshot_bytes();
    state.update_marker(&AppendedMarker {
        producer_id: ProducerId::new(7),
        producer_epoch: ProducerEpoch::new(3),
        marker: EndTransactionMarker { committed: true, coordinator_epoch: 1 },
        offset: 5,
        timestamp: common::NOW_MS,
    });
    run(&[empty, state.snapshot_bytes()], fuzz::fuzz_producer_snapshot);
}

#[test]
fn validation_never_panics() {
    let batches = [common::batch(1, 10, common::NOW_MS), common::batch(5, 100, common::NOW_MS)];
    run(&with_choices(&batches, &(0..16).collect::<Vec<u8>>()), fuzz::fuzz_validate);
}

#[test]
fn damaged_directories_never_panic() {
    let mut bench = common::Bench::default();
    bench.config.segment_bytes = 600;
    let (log, _) = bench.open(false);
    for _ in 0..5 {
        common::append(&log, 2, common::NOW_MS);
    }
    assert!(log.close().is_ok());
    let contents: Vec<Vec<u8>> = bench.files().into_iter().map(|(_, content)| content).collect();
    let choices: Vec<u8> = (0..8).chain(128..136).collect();
    run(&with_choices(&contents, &choices), fuzz::fuzz_directory);
}
