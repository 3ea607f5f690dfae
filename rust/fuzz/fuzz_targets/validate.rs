//! See `pykafka_log::fuzz::fuzz_validate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pykafka_log::fuzz::fuzz_validate(data));
