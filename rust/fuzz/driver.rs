//! Short runs of the fuzz targets by `cargo test`: on a corpus, its mutations and random bytes. The
//! tests of record, wire and log include this file.
#![allow(dead_code, reason = "each test program uses its own part")]

#[path = "random.rs"]
mod random;

use std::time::{Duration, Instant};

/// Random inputs with a fixed seed: every run has the same inputs, except for the number of them.
pub struct Random(random::Random);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Fewer than `size_max` bytes. Many are small numbers, because these are most of the structure
    /// of the formats.
    pub fn bytes(&mut self, size_max: usize) -> Vec<u8> {
        let size = self.below(size_max);
        (0..size)
            .map(|_| if self.below(3) == 0 { self.next() as u8 } else { self.below(4) as u8 })
            .collect()
    }

    /// One to four common mutations, each at a random position.
    pub fn mutate(&mut self, data: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(data.len());
            let until = (at + self.below(9)).min(data.len());
            match self.below(6) {
                0 if at < data.len() => data[at] ^= 1 << self.below(8),
                1 if at < data.len() => data[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                2 if at < data.len() => data[at] = self.next() as u8,
                3 => data.truncate(at),
                4 => drop(data.splice(at..at, self.bytes(9))),
                _ => drop(data.drain(at..until)),
            }
        }
    }
}

/// Calls `step` repeatedly for `FUZZ_SECONDS` (10).
pub fn repeat(mut step: impl FnMut(&mut Random)) {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    #[expect(clippy::disallowed_methods, reason = "a time limit of the run, not of what is tested")]
    let (now, limit) = (Instant::now, Duration::from_secs_f64(seconds.unwrap_or(10.0)));
    let start = now();
    let mut random = Random(random::Random::new(1));
    while start.elapsed() < limit {
        (0..20).for_each(|_| step(&mut random));
    }
}

/// Calls `target` with each input in `corpus`, then with mutations, the end of one input after
/// another, and random bytes.
pub fn run(corpus: &[Vec<u8>], target: fn(&[u8])) {
    for data in corpus {
        target(data);
    }
    repeat(|random| {
        let mut data = match random.below(8) {
            0 => random.bytes(300),
            _ => corpus[random.below(corpus.len())].clone(),
        };
        if random.below(4) == 0 {
            let other = &corpus[random.below(corpus.len())];
            data.extend_from_slice(&other[random.below(other.len())..]);
        }
        random.mutate(&mut data);
        target(&data);
    });
}

/// The files of `tests/corpus/TARGET` in the crate that includes this file: inputs that an earlier
/// fuzz run has found.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = std::fs::read_dir(tests.join("corpus").join(target)).expect("the corpus");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file")).collect()
}
