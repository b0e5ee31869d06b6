//! Arbitrary sound models to the player: every connection comes to be and carries what it says.
#![no_main]

#[path = "../../crates/workload/tests/workload/common/mod.rs"]
mod common;
#[path = "../../crates/workload/tests/workload/wild/models.rs"]
mod models;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [seed, data @ ..] = data else { return };
    models::played(&models::model(data), u64::from(*seed));
});
