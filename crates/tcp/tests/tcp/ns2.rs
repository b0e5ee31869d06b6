//! ns-2.35 itself, run on one greedy sender over 3 Mbit/s and 51.307 ms each way, queue without limit, which
//! loses packets by their number in order of sending, alone and in bursts: every hundredth packet, by when it was sent (0.1 ms) and its number. The runs under the defaults of 2000 are of a
//! seed whose clock (`boot_time_`) started near zero, as ours does for what begins at zero.

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

fn agree(cfg: Config, ns2: &[(u64, u64)]) {
    let ours = sends(cfg.clone());
    // The SYN is not in our list.
    let skip = usize::from(cfg.handshake);
    for (k, &(at, number)) in ns2.iter().enumerate() {
        let (t, n) = ours[100 * (k + 1) - skip];
        assert_eq!(n, number, "the {}th", 100 * (k + 1));
        let apart = (t.as_nanos() / 1000).abs_diff(at * 100);
        assert!(apart <= 100, "the {}th is {apart} us away", 100 * (k + 1));
    }
}

#[test]
fn ns2_modern_reno() {
    let cfg = Config {
        algorithm: Algorithm::Reno,
        ..Config::ns2_modern()
    };
    agree(cfg, &MODERN_RENO);
}

const MODERN_RENO: [(u64, u64); 24] = [
    (11940, 99),
    (33630, 190),
    (54107, 287),
    (70275, 385),
    (85176, 483),
    (101464, 580),
    (120914, 678),
    (136922, 764),
    (153210, 873),
    (169418, 971),
    (184119, 1069),
    (209863, 1162),
    (230260, 1259),
    (245561, 1357),
    (261489, 1454),
    (277817, 1552),
    (296360, 1649),
    (313355, 1747),
    (329403, 1845),
    (345251, 1943),
    (359645, 2041),
    (382362, 2135),
    (401771, 2233),
    (417940, 2330),
];

#[test]
fn ns2_modern_newreno() {
    let cfg = Config {
        algorithm: Algorithm::NewReno,
        ..Config::ns2_modern()
    };
    agree(cfg, &MODERN_NEWRENO);
}

const MODERN_NEWRENO: [(u64, u64); 24] = [
    (11940, 99),
    (32443, 189),
    (52920, 286),
    (69088, 384),
    (83989, 482),
    (100277, 579),
    (119727, 677),
    (135735, 763),
    (152023, 872),
    (168231, 970),
    (182932, 1068),
    (202527, 1161),
    (222924, 1258),
    (238225, 1356),
    (254153, 1453),
    (270481, 1551),
    (289024, 1648),
    (306019, 1746),
    (322067, 1844),
    (337915, 1942),
    (352309, 2040),
    (372666, 2131),
    (392075, 2229),
    (408244, 2326),
];

#[test]
fn ns2_era_reno() {
    let cfg = Config {
        algorithm: Algorithm::Reno,
        ..Config::ns2_era()
    };
    agree(cfg, &ERA_RENO);
}

const ERA_RENO: [(u64, u64); 24] = [
    (11979, 99),
    (35656, 190),
    (55813, 287),
    (72341, 385),
    (87442, 483),
    (104437, 580),
    (123687, 678),
    (140642, 775),
    (157011, 873),
    (174086, 971),
    (189027, 1069),
    (220825, 1163),
    (240515, 1260),
    (256643, 1358),
    (273478, 1455),
    (289967, 1553),
    (308816, 1650),
    (325932, 1748),
    (342260, 1846),
    (358428, 1944),
    (373916, 2042),
    (400527, 2136),
    (419070, 2234),
    (436185, 2331),
];

#[test]
fn ns2_era_newreno() {
    let cfg = Config {
        algorithm: Algorithm::NewReno,
        ..Config::ns2_era()
    };
    agree(cfg, &ERA_NEWRENO);
}

const ERA_NEWRENO: [(u64, u64); 24] = [
    (11979, 99),
    (35656, 190),
    (55813, 287),
    (72341, 385),
    (87442, 483),
    (104437, 580),
    (123687, 678),
    (140642, 775),
    (157011, 873),
    (174086, 971),
    (189027, 1069),
    (211798, 1164),
    (231488, 1261),
    (247616, 1359),
    (264451, 1456),
    (280939, 1554),
    (299789, 1651),
    (316904, 1749),
    (333232, 1847),
    (349401, 1945),
    (364889, 2043),
    (384138, 2138),
    (402641, 2236),
    (419756, 2333),
];
