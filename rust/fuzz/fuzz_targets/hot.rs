//! See `pykafka_wire::fuzz::fuzz_hot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pykafka_wire::fuzz::fuzz_hot(data));
