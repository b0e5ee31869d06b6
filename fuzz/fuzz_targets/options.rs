//! The bytes of TCP options.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swell_fuzz::options(data));
