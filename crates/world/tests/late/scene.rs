//! Worlds drawn at random.

use swell_base::{Bytes, Dur, QueueLimit, Rate, Stream};
use swell_path::{Discipline, LinkConfig, Loss, RedConfig};
use swell_tcp::{Algorithm, Config};
use swell_workload::{Access, GreedyConfig, Law, ParametricConfig, Transport};

use crate::wild::{Line, Meddling, lines, one};

/// What is in a world.
#[derive(Clone, Debug)]
pub struct Scene {
    pub seed: u64,
    pub trunks: [LinkConfig; 2],
    pub wild: Vec<(Config, Vec<Line>, Option<Meddling>)>,
    pub greedy: Option<(Config, GreedyConfig)>,
    pub parametric: Option<(Config, ParametricConfig)>,
    /// Between the packets of two ports.
    pub ports: Option<Dur>,
    pub probed: bool,
    pub until: Dur,
}

fn profile(rng: &mut Stream) -> Config {
    let mut tcp = match rng.below(5) {
        0 => Config::classic(),
        1 | 2 => Config::linux(),
        3 => Config::ns2_era(),
        _ => Config::ns2_modern(),
    };
    use Algorithm::{Bbr, Cubic, Ledbat, NewReno, Reno, Vegas};
    if rng.chance(0.6) {
        tcp.algorithm = one(rng, &[Reno, NewReno, Cubic, Bbr, Bbr, Vegas, Ledbat]);
    }
    let mut turn = |switch: &mut bool| *switch ^= rng.chance(0.15);
    turn(&mut tcp.sack);
    turn(&mut tcp.ecn);
    turn(&mut tcp.delayed_ack);
    turn(&mut tcp.nagle);
    turn(&mut tcp.window_validation);
    turn(&mut tcp.handshake);
    turn(&mut tcp.packets);
    turn(&mut tcp.timestamps);
    turn(&mut tcp.recv_tuning);
    turn(&mut tcp.limited_transmit);
    if rng.chance(0.1) {
        (tcp.retries, tcp.syn_retries) = (1, 1);
    }
    if rng.chance(0.3) {
        tcp.send_window = one(rng, &[None, Some(4), Some(20), Some(1000)]);
    }
    tcp
}

fn trunk(rng: &mut Stream) -> LinkConfig {
    let rate = one(
        rng,
        &[1_000_000, 8_000_000, 8_000_000, 10_000_000, 7_654_321, 0],
    );
    let red = RedConfig {
        ecn: rng.chance(0.7),
        ..RedConfig::classic()
    };
    LinkConfig {
        rate: (rate > 0).then(|| Rate::from_bps(rate)),
        delay: Dur::from_micros(one(rng, &[0, 1000, 1000, 5000, 20_000, 20_000, 12_345])),
        queue: match rng.below(4) {
            0 => QueueLimit::Bytes(Bytes(20_000)),
            _ => QueueLimit::Packets(one(rng, &[3, 10, 10, 50])),
        },
        discipline: match rng.below(6) {
            0 | 1 => Discipline::Red(red),
            2 => Discipline::CoDel(Default::default()),
            _ => Discipline::Fifo,
        },
        loss: if rng.chance(0.25) {
            Loss::Independent { p: 0.02 }
        } else {
            Loss::None
        },
        ..LinkConfig::default()
    }
}

/// A world drawn at random: everything that can be chosen, and many equal instants.
pub fn scene(seed: u64) -> Scene {
    let rng = &mut Stream::new(seed, "scene");
    let there = trunk(rng);
    let back = if rng.chance(0.5) {
        there.clone()
    } else {
        trunk(rng)
    };
    let wild = (0..1 + rng.below(2)).map(|_| {
        let n = 1 + rng.below(4);
        let meddling = rng.chance(0.4).then(|| Meddling {
            every: Dur::from_micros(one(rng, &[1000, 7000, 10_000, 33_333, 100_000])),
            asks: rng.chance(0.6),
            writes: one(rng, &[0, 10, 1000, 1460]),
        });
        (profile(rng), lines(rng, n), meddling)
    });
    let wild = wild.collect();
    let path = |r: &mut Stream, delays: &[u64]| Access {
        delay: Dur::from_millis(one(r, delays)),
        up: Some(Rate::from_bps(10_000_000)),
        down: Some(Rate::from_bps(10_000_000)),
        ..Access::default()
    };
    Scene {
        seed,
        trunks: [there, back],
        wild,
        greedy: rng.chance(0.3).then(|| {
            let config = GreedyConfig {
                connections: 3,
                from_right: rng.chance(0.5),
                start: Dur::ZERO,
                stagger: Dur::from_millis(one(rng, &[0, 10])),
                sender: path(rng, &[1, 10, 10, 100]),
                receiver: path(rng, &[0, 10]),
            };
            (profile(rng), config)
        }),
        parametric: rng.chance(0.4).then(|| {
            let config = ParametricConfig {
                law: one(rng, &[Law::Constant, Law::Constant, Law::Poisson]),
                transport: one(rng, &[Transport::Tcp, Transport::Tcp, Transport::Udp]),
                packet: one(rng, &[1000, 1500]),
                rate: [Rate::from_bps(one(rng, &[1_000_000, 10_000_000])); 2],
                sources: one(rng, &[1, 1, 3]),
                left: path(rng, &[1, 10, 10, 100]),
                right: path(rng, &[0, 10]),
            };
            (profile(rng), config)
        }),
        ports: rng.chance(0.2).then(|| Dur::from_micros(4700)),
        probed: rng.chance(0.1),
        // What is over has been forgotten in the end.
        until: Dur::from_millis(if seed.is_multiple_of(20) {
            12_500
        } else {
            1500
        }),
    }
}
