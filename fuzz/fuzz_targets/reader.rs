//! A whole capture file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swell_fuzz::reader(data));
