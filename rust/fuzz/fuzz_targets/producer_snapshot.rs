//! See `pykafka_log::fuzz::fuzz_producer_snapshot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pykafka_log::fuzz::fuzz_producer_snapshot(data));
