//! One run: M clients, a gateway, a server; table 1 of the paper.

use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Tag, Time, UDP_HEADERS, derived};
use swell_path::{LinkConfig, Meter};
use swell_tcp::Config;
use swell_workload::{Access, Conn, Law, Parametric, ParametricConfig, Record, TCP_HEADERS};
use swell_world::{Direction, World};

use super::lineup::{Gateway, PACKET, Profile, Transport};
use crate::grid::Cell;

/// The paper's round-trip propagation delay, 2 (25 ms + 25 ms), in which arrivals are counted.
pub const ROUND_TRIP: Dur = Dur::from_millis(100);
/// Packets that a client submits in a second, on average.
pub const PER_SECOND: f64 = 100.0;
/// Packets that the bottleneck carries in a second.
pub const CAPACITY: f64 = 50e6 / (8.0 * PACKET as f64);

/// Seconds left out at the start, for each of which a coefficient of variation is kept. The first
/// is none; 10 is what ns-2 was measured with.
pub const LEFT_OUT: [u64; 11] = [0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20];
/// Seconds left out where a number is "without the start".
pub const WARM_UP: u64 = 10;

/// Who runs: everything that varies.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Whose defaults.
    pub profile: Profile,
    /// What the clients use.
    pub transport: &'static Transport,
    /// The gateway.
    pub gateway: &'static Gateway,
    /// Clients.
    pub clients: u16,
    /// Reno clients besides, first among all.
    pub background: u16,
    /// Seed of the arrivals: equal seeds give equal submissions, whatever carries them.
    pub seed: u64,
    /// Simulated seconds, more than 20.
    pub seconds: u64,
}

/// What came out; counts are of packets over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Coefficient of variation of the arrivals at the gateway's queue per round trip, drops
    /// included, with the seconds of [`LEFT_OUT`] left out.
    pub cov: [f64; LEFT_OUT.len()],
    /// Arrivals at the gateway's queue: background, clients.
    pub arrivals: [f64; 2],
    /// Dropped there.
    pub drops: [f64; 2],
    /// Packets that reached the server's application, each once.
    pub delivered: [f64; 2],
    /// Arrivals and drops without the start, all together.
    pub warm: [f64; 2],
    /// Packets sent again.
    pub retransmissions: f64,
    /// Retransmission time-outs.
    pub timeouts: f64,
    /// Packets that an arrival found waiting, on average.
    pub queue: f64,
}

impl Scenario {
    /// The scenario of these names; none where one is unknown.
    pub fn named(
        profile: Profile,
        transport: &str,
        gateway: &str,
        clients: u16,
    ) -> Option<Scenario> {
        Some(Scenario {
            profile,
            transport: Transport::named(transport)?,
            gateway: Gateway::named(gateway)?,
            clients,
            background: 0,
            seed: 1,
            seconds: 200,
        })
    }

    /// Simulates it.
    pub fn simulate(&self) -> Outcome {
        let (discipline, queue) = self.gateway.discipline(self.profile);
        let mut gateway = LinkConfig {
            delay: Dur::from_millis(25),
            queue,
            discipline,
            ..LinkConfig::default()
        };
        let until = Dur::from_secs(self.seconds);
        self.gateway.ties(self.profile).set(&mut gateway, until);
        let back = LinkConfig {
            rate: Some(Rate::from_bps(50_000_000)),
            delay: gateway.delay,
            queue: QueueLimit::Packets(u64::MAX),
            ..LinkConfig::default()
        };
        let mut world = World::new(&[gateway, back], self.seed);
        world.meter(ROUND_TRIP, Dur::from_secs(1));
        let reno = Transport::named("reno").and_then(|t| t.config(self.profile));
        let own = self.transport.config(self.profile);
        let [reno, own] = [reno, own].map(|c| c.map(Arc::new));
        for i in 0..self.background + self.clients {
            let (tag, tcp) = if i < self.background {
                (Tag::Background, &reno)
            } else {
                (Tag::Foreground, &own)
            };
            let source = source(tcp.as_deref());
            let seed = derived(self.seed, u64::from(i));
            let tcp = tcp.clone().unwrap_or_else(|| Arc::new(Config::classic()));
            world.add(Box::new(Parametric::new(source, seed)), tag, tcp);
        }
        world.advance(Time::from_secs_f64(self.seconds as f64));
        self.measure(&mut world)
    }

    fn measure(&self, world: &mut World) -> Outcome {
        let mut out = Outcome::default();
        let ledger = world.bottleneck(Direction::Up).ledger();
        if let Some(meter) = world.bottleneck(Direction::Up).meter() {
            out.count(meter, self.seconds);
            debug_assert_eq!(out.arrivals.iter().sum::<f64>(), ledger.arrived as f64);
        }
        world.finish();
        for i in 0..self.background + self.clients {
            let group = usize::from(i >= self.background);
            let worker = usize::from(i);
            if let Some(stats) = world.tcp_stats(worker, Conn(0)) {
                out.timeouts += f64::from(stats[0].rtos);
            }
            let tcp = if group == 0 {
                Transport::named("reno").and_then(|t| t.config(self.profile))
            } else {
                self.transport.config(self.profile)
            };
            let payload = payload(tcp.as_ref());
            for record in world.take_records(worker) {
                if let Record::Flow(flow) = record {
                    out.delivered[group] += (flow.up / u64::from(payload)) as f64;
                    out.retransmissions += f64::from(flow.retransmissions);
                }
            }
        }
        out
    }
}

impl Outcome {
    fn count(&mut self, meter: &Meter, seconds: u64) {
        let bins = (seconds * 1_000_000_000 / ROUND_TRIP.as_nanos()) as usize;
        let counts: Vec<f64> = (0..bins)
            .map(|i| {
                let of = |who: usize| meter.fine_packets[who].get(i).copied().unwrap_or(0);
                f64::from(of(0) + of(1))
            })
            .collect();
        let per_second = (1_000_000_000 / ROUND_TRIP.as_nanos()) as usize;
        for (cov, left_out) in self.cov.iter_mut().zip(LEFT_OUT) {
            let rest = counts.get(left_out as usize * per_second..).unwrap_or(&[]);
            *cov = swell_stats::cov(rest).unwrap_or(f64::NAN);
        }
        let mut waiting = 0.0;
        for (second, bin) in meter.bins.iter().enumerate() {
            waiting += bin.queue_sum as f64 / f64::from(PACKET);
            for group in 0..2 {
                // The background of the study has the meter's background tag, at index 1.
                let who = 1 - group;
                self.arrivals[group] += f64::from(bin.arrived_packets[who]);
                self.drops[group] += f64::from(bin.dropped[who]);
                if second as u64 >= WARM_UP {
                    self.warm[0] += f64::from(bin.arrived_packets[who]);
                    self.warm[1] += f64::from(bin.dropped[who]);
                }
            }
        }
        self.queue = waiting / self.arrivals.iter().sum::<f64>();
    }
}

/// Coefficient of variation of the counts of `clients` Poisson processes in a round trip,
/// 1/sqrt(10 M).
pub fn poisson(clients: u16) -> f64 {
    1.0 / (f64::from(clients) * PER_SECOND * ROUND_TRIP.as_secs_f64()).sqrt()
}

/// Payload of the paper's packet.
fn payload(tcp: Option<&Config>) -> u32 {
    tcp.map_or(PACKET - UDP_HEADERS[0], |c| c.mss)
}

/// A client's source: single packets with exponential gaps, over a path of its own.
fn source(tcp: Option<&Config>) -> ParametricConfig {
    // So that `Parametric`, which takes headers off, writes a full segment.
    let packet = tcp.map_or(PACKET, |c| c.mss + TCP_HEADERS);
    ParametricConfig {
        law: Law::Poisson,
        transport: if tcp.is_some() {
            swell_workload::Transport::Tcp
        } else {
            swell_workload::Transport::Udp
        },
        packet,
        rate: [
            Rate::from_bps_f64(f64::from(packet) * 8.0 * PER_SECOND),
            Rate::from_bps(0),
        ],
        sources: 1,
        left: Access {
            delay: Dur::from_millis(25),
            up: Some(Rate::from_bps(10_000_000)),
            down: Some(Rate::from_bps(10_000_000)),
            ..Access::default()
        },
        right: Access::default(),
    }
}

impl Cell for Scenario {
    const KEYS: &'static [&'static str] = &[
        "profile",
        "transport",
        "queue",
        "clients",
        "background",
        "seed",
        "seconds",
    ];
    const NUMBERS: &'static [&'static str] = &[
        "cov",
        "cov_after_1",
        "cov_after_2",
        "cov_after_3",
        "cov_after_4",
        "cov_after_5",
        "cov_after_6",
        "cov_after_8",
        "cov_after_10",
        "cov_after_15",
        "cov_after_20",
        "background_arrivals",
        "arrivals",
        "background_drops",
        "drops",
        "background_delivered",
        "delivered",
        "arrivals_after_10",
        "drops_after_10",
        "retransmissions",
        "timeouts",
        "queue",
    ];

    fn key(&self) -> Vec<String> {
        vec![
            self.profile.name().into(),
            self.transport.name.into(),
            self.gateway.name.into(),
            self.clients.to_string(),
            self.background.to_string(),
            self.seed.to_string(),
            self.seconds.to_string(),
        ]
    }

    fn settings(&self) -> String {
        let reno = Transport::named("reno").map(|t| t.config(self.profile));
        let own = self.transport.config(self.profile);
        let gateway = self.gateway.discipline(self.profile);
        let ties = self.gateway.ties(self.profile);
        format!(
            "{own:?} {gateway:?} {ties:?} {:?}",
            reno.filter(|_| self.background > 0)
        )
    }

    fn cost(&self) -> f64 {
        f64::from(self.clients + self.background) * self.seconds as f64
    }

    fn run(&self) -> Vec<f64> {
        self.simulate().numbers()
    }
}

impl Outcome {
    /// In the order of the columns.
    fn numbers(&self) -> Vec<f64> {
        let mut numbers = self.cov.to_vec();
        for pair in [&self.arrivals, &self.drops, &self.delivered, &self.warm] {
            numbers.extend(pair);
        }
        numbers.extend([self.retransmissions, self.timeouts, self.queue]);
        numbers
    }

    /// From the columns of [`Scenario`]; none where there are too few.
    pub fn from_numbers(numbers: &[f64]) -> Option<Outcome> {
        let mut rest = numbers.iter().copied();
        let mut out = Outcome::default();
        for place in &mut out.cov {
            *place = rest.next()?;
        }
        for pair in [
            &mut out.arrivals,
            &mut out.drops,
            &mut out.delivered,
            &mut out.warm,
        ] {
            *pair = [rest.next()?, rest.next()?];
        }
        out.retransmissions = rest.next()?;
        out.timeouts = rest.next()?;
        out.queue = rest.next()?;
        Some(out)
    }
}
