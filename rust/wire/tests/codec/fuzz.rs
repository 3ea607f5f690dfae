//! The fuzz targets of the crate, with a short run of random and damaged input.

use pykafka_wire::fuzz::{HOT, compare_hot, fuzz_frame, fuzz_hot, fuzz_table, recode_table};
use pykafka_wire::schema::{Message, messages, request_of, response_of};

use crate::driver::{Random, repeat};
use crate::golden;

fn version_of(message: &Message, random: &mut Random) -> i16 {
    let count = (message.versions.1 - message.versions.0 + 1) as usize;
    message.versions.0 + random.below(count) as i16
}

#[test]
fn frames_never_panic() {
    repeat(|random| fuzz_frame(&random.bytes(64)));
}

#[test]
fn random_bytes_never_panic_in_any_table() {
    repeat(|random| {
        let message = messages()[random.below(messages().len())];
        let version = version_of(message, random);
        recode_table(message, version, &random.bytes(96));
        fuzz_table(&random.bytes(96));
    });
}

#[test]
fn damaged_frames_never_panic_in_any_table() {
    let frames = golden::frames();
    repeat(|random| {
        let frame = &frames[random.below(frames.len())];
        let message =
            if frame.is_request { request_of(frame.api_key) } else { response_of(frame.api_key) };
        let mut body = frame.body().to_vec();
        random.mutate(&mut body);
        if message.unwrap().versions.contains(frame.body_version()) {
            recode_table(message.unwrap(), frame.body_version(), &body);
        }
    });
}

#[test]
fn hot_messages_and_tables_agree_on_damaged_frames() {
    let mut frames = golden::frames();
    frames.retain(|frame| HOT.contains(&frame.api_key) && frame.version != 99);
    repeat(|random| {
        let frame = &frames[random.below(frames.len())];
        let mut body = frame.body().to_vec();
        random.mutate(&mut body);
        compare_hot(frame.api_key, frame.is_request, frame.version, &body.into());
        fuzz_hot(&random.bytes(64));
    });
}
