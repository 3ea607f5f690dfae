//! See `pykafka_log::fuzz::fuzz_checkpoints`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pykafka_log::fuzz::fuzz_checkpoints(data));
