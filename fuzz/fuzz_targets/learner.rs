//! Packets to the learner: never a panic, no byte lost, a model that holds together.
#![no_main]

#[path = "../../crates/learn/tests/learn/wild/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [preview, data @ ..] = data else { return };
    packets::learnt(&packets::packets(data), usize::from(*preview));
});
