//! The fuzz targets on their corpus, its mutations and random bytes, `FUZZ_SECONDS` each.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../fuzz/driver.rs"]
mod driver;

use std::path::{Path, PathBuf};

use driver::{corpus, run};
use pykafka_record::{Compression, compress, fuzz};

/// The batches of Kafka in `tests/data`, cut to 4 KiB.
fn batches_of_kafka() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_none_or(|extension| extension != "expected"));
    let cut = |path| {
        let mut log = std::fs::read(path).unwrap();
        log.truncate(4096);
        log
    };
    paths.into_iter().map(cut).collect()
}

#[test]
fn batches_never_panic() {
    let mut corpus = corpus("batch");
    corpus.extend(batches_of_kafka());
    run(&corpus, fuzz::fuzz_batch);
}

#[test]
fn decompressors_never_panic() {
    let mut corpus = corpus("decompress");
    for (id, codec) in Compression::ALL.into_iter().enumerate() {
        for input in [String::new(), "text that repeats, ".repeat(2), "0".repeat(70_000)] {
            let mut data = vec![id as u8];
            compress(codec, None, input.as_bytes(), &mut data).unwrap();
            corpus.push(data);
        }
    }
    run(&corpus, fuzz::fuzz_decompress);
}
