//! See `pykafka_record::fuzz::fuzz_decompress`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pykafka_record::fuzz::fuzz_decompress(data));
