//! A whole file of flow records.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swell_fuzz::flows(data));
