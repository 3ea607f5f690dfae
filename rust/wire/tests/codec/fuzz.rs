//! The fuzz targets of the crate, with a short run of random and damaged input.

use std::time::{Duration, Instant};

use pykafka_wire::fuzz::{HOT, compare_hot, fuzz_frame, fuzz_hot, fuzz_table, recode_table};
use pykafka_wire::schema::{Message, messages, request_of, response_of};

use crate::golden;

/// A small generator (`SplitMix64`) with a fixed seed: the same run every time, but for its length.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn bytes(&mut self, length_max: usize) -> Vec<u8> {
        let length = self.below(length_max);
        // Small numbers make more of the structure.
        (0..length)
            .map(|_| if self.below(3) == 0 { self.next() as u8 } else { self.below(4) as u8 })
            .collect()
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let place = self.below(bytes.len());
            match self.below(3) {
                0 => bytes.truncate(place),
                1 if !bytes.is_empty() => bytes[place] = self.next() as u8,
                _ => bytes.insert(place, [0, 0x7f, 0x80, 0xff][self.below(4)]),
            }
        }
    }
}

/// Calls `step` with growing seeds for `FUZZ_SECONDS` (2 if not set) in all targets together.
fn run(mut step: impl FnMut(&mut Random)) {
    let seconds = std::env::var("FUZZ_SECONDS").map_or(2.0, |text| text.parse().unwrap());
    #[expect(clippy::disallowed_methods, reason = "the length of the run is the only clock here")]
    let (now, limit) = (Instant::now, Duration::from_secs_f64(seconds / 4.0));
    let start = now();
    let mut random = Random(1);
    while start.elapsed() < limit {
        (0..100).for_each(|_| step(&mut random));
    }
}

fn version_of(message: &Message, random: &mut Random) -> i16 {
    let count = (message.versions.1 - message.versions.0 + 1) as usize;
    message.versions.0 + random.below(count) as i16
}

#[test]
fn frames_never_panic() {
    run(|random| fuzz_frame(&random.bytes(64)));
}

#[test]
fn random_bytes_never_panic_in_any_table() {
    run(|random| {
        let message = messages()[random.below(messages().len())];
        let version = version_of(message, random);
        recode_table(message, version, &random.bytes(96));
        fuzz_table(&random.bytes(96));
    });
}

#[test]
fn damaged_frames_never_panic_in_any_table() {
    let frames = golden::frames();
    run(|random| {
        let frame = &frames[random.below(frames.len())];
        let message =
            if frame.is_request { request_of(frame.api_key) } else { response_of(frame.api_key) };
        let mut body = frame.body().to_vec();
        random.damage(&mut body);
        if message.unwrap().versions.contains(frame.body_version()) {
            recode_table(message.unwrap(), frame.body_version(), &body);
        }
    });
}

#[test]
fn hot_messages_and_tables_agree_on_damaged_frames() {
    let mut frames = golden::frames();
    frames.retain(|frame| HOT.contains(&frame.api_key) && frame.version != 99);
    run(|random| {
        let frame = &frames[random.below(frames.len())];
        let mut body = frame.body().to_vec();
        random.damage(&mut body);
        compare_hot(frame.api_key, frame.is_request, frame.version, &body.into());
        fuzz_hot(&random.bytes(64));
    });
}
