//! Tests of the tools with synthetic delays.

use swell_base::{Stream, Time};

use super::chirp::{Pathchirp, chirp};
use super::estimator::Estimator;
use super::igi::Trains;
use super::pair::Pairs;
use super::pathload::{PUBLISHED, Pathload, RELEASED, Trend, trend};
use super::spruce::Spruce;

#[test]
fn delays_that_rise_are_told_from_those_that_do_not() {
    let mut rng = Stream::new(1, "trend");
    let mut of = |slope: f64| -> Vec<f64> {
        (0..100)
            .map(|i| slope * f64::from(i) + 1e-4 * rng.uniform())
            .collect()
    };
    for profile in [RELEASED, PUBLISHED] {
        let trend = |delays: &[f64]| trend(delays, &profile);
        assert_eq!(trend(&of(1e-5)), Some(Trend::Rising));
        let turns: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        assert_eq!(trend(&turns), Some(Trend::Flat));
        assert_eq!(trend(&of(-1e-5)), Some(Trend::Flat));
        assert_eq!(trend(&[0.0; 100]), Some(Trend::Flat));
        assert_eq!(trend(&[0.0; 30]), None);
    }
}

/// Ten medians with `rises` rises of one, and falls that make the ends differ by this share of all steps.
fn stairs(rises: u32, share: f64) -> Vec<f64> {
    let (up, down) = (f64::from(rises), f64::from(9 - rises));
    let fall = up * (1.0 - share) / (down * (1.0 + share));
    let mut median = 0.0;
    let mut delays = vec![median; 10];
    for i in 0..9 {
        median += if i < rises { 1.0 } else { -fall };
        delays.extend([median; 10]);
    }
    delays
}

#[test]
fn the_tool_and_the_paper_differ_where_delays_hardly_rise() {
    let both = |rises, share| [RELEASED, PUBLISHED].map(|p| trend(&stairs(rises, share), &p));
    assert_eq!(both(7, 0.9), [Some(Trend::Rising); 2]);
    assert_eq!(both(3, 0.2), [Some(Trend::Flat); 2]);
    // Half of the steps' sum is a rise to the tool, and too little to tell for the paper.
    assert_eq!(both(5, 0.5), [Some(Trend::Rising), Some(Trend::Unsure)]);
    assert_eq!(both(5, 0.4), [Some(Trend::Unsure), Some(Trend::Flat)]);
    // Six rises are more than 0.66 of the nine pairs, but not of the ten medians.
    assert_eq!(both(6, 0.5)[1], Some(Trend::Rising));
}

/// A link that delivers packets in bursts hides what it could carry.
#[test]
fn packets_that_arrive_all_at_one_instant_are_no_estimate() {
    let mut rng = Stream::new(1, "tool");
    let tools: [&mut dyn Estimator; 4] = [
        &mut Pairs::default(),
        &mut Spruce::new(10e6),
        &mut Trains::new(10e6, true),
        &mut Trains::new(10e6, false),
    ];
    for tool in tools {
        for round in 1..=300 {
            let began = Time::from_secs_f64(f64::from(round));
            let train = tool.next(&mut rng);
            let heard = train.packets.iter();
            let heard: Vec<_> = heard
                .map(|(at, _)| {
                    (
                        began + *at,
                        Some(Time::from_secs_f64(f64::from(round) + 0.5)),
                    )
                })
                .collect();
            assert_eq!(tool.heard(&heard), None);
        }
    }
}

/// If delays keep rising from some rate on, that rate is the available bandwidth. If delays never rise, it is at least
/// the highest rate.
#[test]
fn a_chirp_is_free_up_to_where_delays_rise_for_good() {
    let rates: Vec<f64> = (0..12).map(|k| 10e6 * 1.2f64.powi(k)).collect();
    let mut delays = vec![0.0; 8];
    delays.extend([1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!((chirp(&delays, &rates) / rates[7] - 1.0).abs() < 1e-9);
    let rounded: Vec<f64> = (0..13).map(|i| 1e-9 * f64::from(i)).collect();
    assert!((chirp(&rounded, &rates) / rates[11] - 1.0).abs() < 1e-9);
    assert!((chirp(&[0.0; 13], &rates) / rates[11] - 1.0).abs() < 1e-9);
}

/// A link with a FIFO queue of 100 ms and Poisson cross traffic, independent of the simulator.
struct Link {
    /// Bits per second.
    capacity: f64,
    others: f64,
    /// Packet size of the cross traffic, bytes.
    size: u32,
    rng: Stream,
    /// When the next cross packet arrives, and when the link becomes idle, seconds.
    next: f64,
    idle: f64,
}

impl Link {
    fn new(capacity: f64, load: f64, size: u32) -> Link {
        Link {
            capacity,
            others: capacity * load,
            size,
            rng: Stream::new(3, "others"),
            next: if load > 0.0 { 0.0 } else { f64::INFINITY },
            idle: 0.0,
        }
    }

    /// When the transmission of a packet that arrives now ends; `None` if it is dropped.
    fn sends(&mut self, now: f64, size: u32) -> Option<f64> {
        while self.next <= now {
            let (at, bits) = (self.next, f64::from(self.size) * 8.0);
            self.next = at + self.rng.exponential(bits / self.others);
            self.takes(at, bits);
        }
        self.takes(now, f64::from(size) * 8.0)
    }

    fn takes(&mut self, now: f64, bits: f64) -> Option<f64> {
        let begins = self.idle.max(now);
        if begins - now > 0.1 {
            return None;
        }
        self.idle = begins + bits / self.capacity;
        Some(self.idle)
    }

    /// The available bandwidth.
    fn free(&self) -> f64 {
        self.capacity - self.others
    }

    /// The mean of several estimates.
    fn estimate(mut self, tool: &mut dyn Estimator) -> f64 {
        let (mut rng, mut now, mut found) = (Stream::new(1, "tool"), 1.0, Vec::new());
        while found.len() < 6 {
            let train = tool.next(&mut rng);
            let began = Time::from_secs_f64(now);
            let mut heard = Vec::new();
            for (at, size) in train.packets {
                now = (began + at).as_secs_f64();
                let came = self.sends(now, size);
                now = came.unwrap_or(now);
                heard.push((began + at, came.map(|t| Time::from_secs_f64(t + 0.02))));
            }
            found.extend(tool.heard(&heard).map(|(low, high)| (low + high) / 2.0));
            now += 0.02 + train.pause.as_secs_f64();
            assert!(now < 5e3, "{} estimates", found.len());
        }
        found.iter().sum::<f64>() / found.len() as f64
    }
}

/// Link rates from slow to fast, bits per second.
const SPEEDS: [f64; 7] = [1e6, 10e6, 37e6, 100e6, 155e6, 622e6, 1e9];

/// On an idle link the available bandwidth is the capacity. Pathload finds it within its resolution, pathChirp within a
/// step of its chirps.
#[test]
fn an_idle_link_is_free() {
    for capacity in SPEEDS {
        let of = |tool: &mut dyn Estimator| Link::new(capacity, 0.0, 0).estimate(tool) / capacity;
        let found = [
            (of(&mut Pathload::new(RELEASED)), 0.02),
            (of(&mut Pathchirp::new()), 0.2),
            (of(&mut Spruce::new(capacity)), 0.001),
            (of(&mut Trains::new(capacity, true)), 0.001),
            (of(&mut Trains::new(capacity, false)), 0.001),
        ];
        for (share, off) in found {
            assert!((share - 1.0).abs() <= off, "{capacity}: {found:?}");
        }
    }
}

/// With small cross packets, which are nearly a fluid, tools are accurate at any speed and load. Tolerances are shares
/// of the available bandwidth.
#[test]
fn beside_small_packets_tools_find_what_is_free() {
    for capacity in &SPEEDS[1..] {
        for load in [0.3, 0.5, 0.7] {
            let link = || Link::new(*capacity, load, 200);
            let of = |tool: &mut dyn Estimator| link().estimate(tool) / link().free() - 1.0;
            let found = [
                of(&mut Pathload::new(RELEASED)),
                of(&mut Pathchirp::new()),
                of(&mut Spruce::new(*capacity)),
                of(&mut Trains::new(*capacity, false)),
            ];
            let bars = [-0.1..0.1, -0.1..0.35, -0.15..0.15, -0.1..0.15];
            for (off, bar) in found.iter().zip(bars) {
                assert!(bar.contains(off), "{capacity}, {load}: {found:.3?}");
            }
        }
    }
}

/// With larger cross packets, tools overestimate the available bandwidth. The bias of the released tools' rules in such
/// a queue is known, at 100 Mbit/s and 1000 bytes: the middle of pathload's range is too high by 4, 6 and 12 %,
/// pathChirp by 17 and 54 to 60 % at 70 and 30 Mbit/s, and by 22 % at 30 Mbit/s with packets of 200 bytes.
#[test]
fn beside_large_packets_estimates_are_as_high_as_they_are_known_to_be() {
    for (load, pathload, pathchirp) in [(0.3, 0.04, 0.17), (0.5, 0.06, 0.35), (0.7, 0.12, 0.57)] {
        for size in [1000, 1500] {
            let link = || Link::new(100e6, load, size);
            let of = |tool: &mut dyn Estimator| link().estimate(tool) / link().free() - 1.0;
            let found = [of(&mut Pathload::new(RELEASED)), of(&mut Pathchirp::new())];
            for (off, known) in found.iter().zip([pathload, pathchirp]) {
                // A step of a chirp is 0.2.
                let bar = known - 0.15..known + 0.25;
                assert!(bar.contains(off), "{load}, {size}: {found:.3?}");
            }
        }
    }
}
