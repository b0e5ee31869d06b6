//! One frame of any link type.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swell_fuzz::dissector(data));
