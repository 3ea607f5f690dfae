//! The fuzz targets on their corpus, its mutations and random bytes, `FUZZ_SECONDS` each.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::time::Duration;

use pykafka_record::{Compression, compress, fuzz};

/// A small generator (xorshift) with a fixed seed: a failing run can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn bytes(&mut self, size_max: usize) -> Vec<u8> {
        (0..self.below(size_max)).map(|_| self.next() as u8).collect()
    }

    /// One of the usual mutations, at a random place.
    fn mutate(&mut self, data: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(data.len());
        match self.below(6) {
            0 if at < data.len() => data[at] ^= 1 << self.below(8),
            1 if at < data.len() => data[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            2 => data.truncate(at),
            3 => drop(data.splice(at..at, self.bytes(9))),
            4 => drop(data.drain(at..(at + self.below(9)).min(data.len()))),
            _ => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len());
                data.extend_from_slice(&other[from..]);
            }
        }
    }
}

fn run(corpus: &[Vec<u8>], target: fn(&[u8])) {
    for data in corpus {
        target(data);
    }
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let duration = Duration::from_secs(seconds.unwrap_or(2));
    #[expect(clippy::disallowed_methods, reason = "a time limit of the run, not of what is tested")]
    let start = std::time::Instant::now();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while start.elapsed() < duration {
        for _ in 0..100 {
            let mut data = match random.below(8) {
                0 => random.bytes(300),
                _ => corpus[random.below(corpus.len())].clone(),
            };
            for _ in 0..=random.below(4) {
                random.mutate(&mut data, corpus);
            }
            target(&data);
        }
    }
}

/// The files of `tests/corpus/NAME`, and the batches of Kafka in `tests/data` cut to 4 KiB.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_none_or(|extension| extension != "expected"));
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn batches_never_panic() {
    let mut corpus = files("corpus/batch");
    corpus.extend(files("data").into_iter().map(|mut log| {
        log.truncate(4096);
        log
    }));
    run(&corpus, fuzz::fuzz_batch);
}

#[test]
fn decompressors_never_panic() {
    let mut corpus = files("corpus/decompress");
    for (id, codec) in Compression::ALL.into_iter().enumerate() {
        for input in [String::new(), "text that repeats, ".repeat(2), "0".repeat(70_000)] {
            let mut data = vec![id as u8];
            compress(codec, None, input.as_bytes(), &mut data).unwrap();
            corpus.push(data);
        }
    }
    run(&corpus, fuzz::fuzz_decompress);
}
