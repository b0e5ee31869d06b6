//! Comparison with ns-2.35 itself: one greedy sender over 3 Mbit/s and 51.307 ms each way with an unlimited queue.
//! Packets are lost by their number in sending order, alone and in bursts. `data/ns2.tsv` has every hundredth of the
//! first 2 400 packets. The runs with the defaults of 2000 use a seed whose clock (`boot_time_`) starts near zero, as
//! ours does for a connection that begins at zero.

use swell_base::{Rate, Time};
use swell_tcp::{Algorithm, Config};

use crate::net::{CLIENT, Net, deliver, lose};

fn sends(cfg: Config) -> Vec<(Time, u64)> {
    let size = u64::from(cfg.mss);
    let syn = u64::from(cfg.handshake);
    let mut sent = 0u64;
    let mut net = Net::new(cfg, swell_base::Dur::from_micros(51_307))
        .rate(Rate::from_bps(3_000_000))
        .judge(move |s| {
            let data = s.from == CLIENT && (s.seg.len > 0 || s.seg.seq == 0);
            let i = sent;
            sent += u64::from(data);
            if data
                && i > 0
                && (((i * 2_654_435_761) % (1 << 32)) >> 24 < 6
                    || [100, 102, 103].contains(&(i % 997)))
            {
                lose()
            } else {
                deliver()
            }
        });
    net.ends[CLIENT].send(1_000_000_000);
    net.run_until(Time::from_secs_f64(100.0));
    net.data(CLIENT)
        .into_iter()
        .map(|d| (d.0, (d.1.seq - 1) / size + syn))
        .collect()
}

/// Compares every hundredth packet with the run in `column` of the table.
fn agree(algorithm: Algorithm, base: Config, column: usize) {
    // The SYN is not in our list of packets.
    let skip = usize::from(base.handshake);
    let ours = sends(Config { algorithm, ..base });
    let rows = include_str!("data/ns2.tsv").lines();
    let mut compared = 0;
    for (k, row) in rows.filter(|r| !r.starts_with('#')).enumerate() {
        let fields: Vec<u64> = row
            .split('\t')
            .map(|f| f.parse().expect("a number in our own file"))
            .collect();
        let (at, number) = (fields[2 * column], fields[2 * column + 1]);
        let (t, n) = ours[100 * (k + 1) - skip];
        assert_eq!(n, number, "the {}th", 100 * (k + 1));
        let apart = (t.as_nanos() / 1000).abs_diff(at * 100);
        assert!(apart <= 100, "the {}th is {apart} us away", 100 * (k + 1));
        compared += 1;
    }
    assert_eq!(compared, 24);
}

#[test]
fn ns2_modern_reno() {
    agree(Algorithm::Reno, Config::ns2_modern(), 0);
}

#[test]
fn ns2_modern_newreno() {
    agree(Algorithm::NewReno, Config::ns2_modern(), 1);
}

#[test]
fn ns2_era_reno() {
    agree(Algorithm::Reno, Config::ns2_era(), 2);
}

#[test]
fn ns2_era_newreno() {
    agree(Algorithm::NewReno, Config::ns2_era(), 3);
}
