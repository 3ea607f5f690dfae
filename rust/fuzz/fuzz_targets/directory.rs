//! See `pykafka_log::fuzz::fuzz_directory`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pykafka_log::fuzz::fuzz_directory(data));
