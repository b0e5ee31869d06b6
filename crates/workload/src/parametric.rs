//! Backgrounds defined by a distribution instead of a model or trace: constant bit rate and Poisson.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Direction, Dur, Rate, Side, Stream, Time, UDP_HEADERS};

use crate::machine::TCP_HEADERS;
use crate::{
    Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, TimedWrite, Workload,
};

/// Distribution of the times at which packets are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// At constant intervals.
    Constant,
    /// With independent exponential gaps.
    Poisson,
}

/// What carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Datagrams: nothing is repeated, nothing slows down.
    #[default]
    Udp,
    /// Long TCP connections, written to at the packets' instants.
    Tcp,
}

impl Transport {
    /// Its name in texts.
    pub fn word(self) -> &'static str {
        match self {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
        }
    }
}

/// A parametric background.
#[derive(Clone, Debug, PartialEq)]
pub struct ParametricConfig {
    /// Law of the submission times.
    pub law: Law,
    /// Transport protocol.
    pub transport: Transport,
    /// Network-layer size of a packet in bytes, headers included.
    pub packet: u32,
    /// Mean network-layer rate of all sources together, left to right and right to left.
    pub rate: [Rate; 2],
    /// Number of sources per direction, which share the rate evenly.
    pub sources: u32,
    /// Path of the hosts on the left.
    pub left: Access,
    /// Path of the hosts on the right.
    pub right: Access,
}

/// Sources that submit packets of one size according to a law.
///
/// All sources of a direction follow one schedule and take turns, so the aggregate is exactly constant or exactly
/// Poisson for any number of sources.
#[derive(Debug)]
pub struct Parametric {
    /// Left to right and right to left.
    ways: [Way; 2],
    config: ParametricConfig,
    /// When each connection was opened; `None` once its record is written.
    opened: Vec<Option<Time>>,
    records: Vec<Record>,
}

/// All data that a packet needs, in one cache line, because there may be thousands of backgrounds.
#[derive(Debug)]
#[repr(align(64))]
struct Way {
    rng: Stream,
    /// Mean gap in seconds.
    mean_gap: f64,
    /// Remainder of the constant gap in 1/rate nanoseconds, so that rounding does not accumulate.
    carry: u64,
    /// Index of the next source, and the number of sources.
    turn: u32,
    sources: u32,
    /// Payload bytes of a packet.
    payload: u32,
    law: Law,
    transport: Transport,
}

impl Parametric {
    /// Sources with the given configuration, which draw from streams of `seed`.
    pub fn new(config: ParametricConfig, seed: u64) -> Parametric {
        let flows = config.sources as usize * 2;
        let bits = f64::from(config.packet) * 8.0;
        let headers = match config.transport {
            Transport::Udp => UDP_HEADERS[0],
            Transport::Tcp => TCP_HEADERS,
        };
        let way = |direction: Direction, name| Way {
            rng: Stream::new(seed, name),
            mean_gap: bits / config.rate[direction].bps() as f64,
            carry: 0,
            turn: 0,
            sources: config.sources,
            payload: config.packet.saturating_sub(headers).max(1),
            law: config.law,
            transport: config.transport,
        };
        Parametric {
            ways: [
                way(Direction::Up, "parametric/right"),
                way(Direction::Down, "parametric/left"),
            ],
            config,
            opened: vec![None; flows],
            records: Vec::new(),
        }
    }

    /// Mean rates of both directions.
    #[cfg(test)]
    pub(crate) fn rates(&self) -> [Rate; 2] {
        self.config.rate
    }

    #[inline]
    fn gap(&mut self, direction: Direction) -> Dur {
        let way = &mut self.ways[direction];
        match way.law {
            Law::Constant => {
                let rate = self.config.rate[direction].bps();
                let bits = u64::from(self.config.packet) * 8;
                let work = bits * 1_000_000_000 + way.carry;
                way.carry = work % rate;
                Dur::from_nanos(work / rate)
            }
            Law::Poisson => way.rng.gap(way.mean_gap),
        }
    }

    /// The timer of a direction is due. Returns the connection that submits a packet, its payload bytes, and the time
    /// until the next packet.
    #[inline]
    fn submit(&mut self, token: u64) -> (Conn, u32, Dur) {
        let direction = Direction::of(token & 1 == 1);
        let way = &mut self.ways[direction];
        let conn = Conn(direction as u32 * way.sources + way.turn);
        let next = way.turn + 1;
        way.turn = if next < way.sources { next } else { 0 };
        let payload = way.payload;
        (conn, payload, self.gap(direction))
    }

    /// Delay of the first packet. A constant stream begins at a random point of its interval, so that runs with
    /// different seeds differ. A Poisson process has no memory and begins with a gap.
    fn first(&mut self, direction: Direction) -> Dur {
        let gap = self.gap(direction);
        match self.config.law {
            Law::Constant => gap.scale(self.ways[direction].rng.uniform()),
            Law::Poisson => gap,
        }
    }
}

impl Workload for Parametric {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                for direction in Direction::BOTH {
                    if self.config.rate[direction].bps() == 0 {
                        continue;
                    }
                    for i in 0..self.config.sources {
                        // The sender opens the connection, so those down are opened from the right.
                        let conn = Conn(direction as u32 * self.config.sources + i);
                        let (left, right) = (self.config.left, self.config.right);
                        let (client, server) = match direction {
                            Direction::Up => (left, right),
                            Direction::Down => (right, left),
                        };
                        let open = Box::new(Open {
                            client_side: Side::of(direction == Direction::Down),
                            client,
                            server,
                            silent: true,
                            ..Open::default()
                        });
                        actions.push(match self.config.transport {
                            Transport::Udp => Action::Datagrams(conn, open),
                            Transport::Tcp => Action::Connect(conn, open),
                        });
                        self.opened[conn.0 as usize] = Some(now);
                    }
                    let first = self.first(direction);
                    actions.push(Action::Timer(first, direction as u64));
                }
            }
            Event::Timer(direction) => {
                let (conn, n, gap) = self.submit(direction);
                actions.push(match self.config.transport {
                    Transport::Udp => Action::SendDatagram(conn, End::Client, n),
                    Transport::Tcp => Action::Send(conn, End::Client, u64::from(n)),
                });
                actions.push(Action::Timer(gap, direction));
            }
            _ => {}
        }
    }

    #[inline]
    fn timed_write(&mut self, token: u64) -> Option<TimedWrite> {
        if self.ways[token as usize & 1].transport != Transport::Tcp {
            return None;
        }
        let (conn, n, pause) = self.submit(token);
        Some(TimedWrite {
            conn,
            end: End::Client,
            bytes: u64::from(n),
            pause,
            alone: self.ways[token as usize & 1].sources == 1,
        })
    }

    fn timed_writes(&mut self, token: u64, due: &mut Time, now: Time, most: u32) -> (u64, u32) {
        let direction = Direction::of(token & 1 == 1);
        let mut n = 0;
        while n < most && *due < now {
            *due += self.gap(direction);
            n += 1;
        }
        (u64::from(self.ways[direction].payload), n)
    }

    fn about(&self, token: u64) -> Option<Conn> {
        let d = token as usize & 1;
        let way = &self.ways[d];
        let conn = Conn(d as u32 * way.sources + way.turn);
        Some(conn)
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for i in 0..self.opened.len() as u32 {
            self.record(Conn(i), info(Conn(i)));
        }
    }
}

impl Parametric {
    fn record(&mut self, conn: Conn, info: Info) {
        let Some(start) = self.opened[conn.0 as usize].take() else {
            return;
        };
        // The sender opens the connection, so the payload arrives at the server.
        let bytes = info.received[1];
        let (up, down) = if conn.0 < self.config.sources {
            (bytes, 0)
        } else {
            (0, bytes)
        };
        self.records.push(Record::Flow(FlowRecord {
            class: 0,
            start,
            end: None,
            up,
            down,
            min_rtt: info.min_rtt,
            retransmissions: info.client_retransmissions + info.server_retransmissions,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_what_the_timer_does() {
        let access = Access::default();
        for law in [Law::Poisson, Law::Constant] {
            let config = ParametricConfig {
                law,
                transport: Transport::Tcp,
                packet: 1000,
                rate: [Rate::from_bps(1_234_567), Rate::from_bps(7_654)],
                sources: 3,
                left: access,
                right: access,
            };
            let mut told = Parametric::new(config.clone(), 1);
            let mut asked = Parametric::new(config, 1);
            for i in 0..1_000 {
                let (token, mut actions) = (i / 2 % 2, Vec::new());
                told.handle(Time::ZERO, Event::Timer(token), &mut actions);
                let write = asked.timed_write(token).expect("TCP");
                let same = [
                    Action::Send(write.conn, write.end, write.bytes),
                    Action::Timer(write.pause, token),
                ];
                assert_eq!(actions, same);
                assert!(!write.alone, "sources take turns");
            }
        }
    }

    #[test]
    fn beats_are_beat_after_beat() {
        for law in [Law::Poisson, Law::Constant] {
            let config = ParametricConfig {
                law,
                transport: Transport::Tcp,
                packet: 1000,
                rate: [Rate::from_bps(1_234_567); 2],
                sources: 1,
                left: Access::default(),
                right: Access::default(),
            };
            let mut one = Parametric::new(config.clone(), 1);
            let mut many = Parametric::new(config, 1);
            let (mut due, mut next) = (Time::ZERO, Time::ZERO);
            for i in 0..1_000 {
                let now = Time::ZERO + Dur::from_millis(20 * i);
                let (bytes, n) = many.timed_writes(0, &mut due, now, (i % 6) as u32);
                for _ in 0..n {
                    assert!(next < now);
                    let write = one.timed_write(0).expect("TCP");
                    assert!(write.alone);
                    assert_eq!(write.bytes, bytes);
                    next += write.pause;
                }
                assert_eq!(due, next);
                assert!(u64::from(n) == i % 6 || next >= now);
            }
        }
    }

    #[test]
    fn datagrams_have_no_beat() {
        let config = ParametricConfig {
            law: Law::Constant,
            transport: Transport::Udp,
            packet: 1000,
            rate: [Rate::from_bps(8_000), Rate::from_bps(0)],
            sources: 1,
            left: Access::default(),
            right: Access::default(),
        };
        assert_eq!(Parametric::new(config, 1).timed_write(0), None);
    }
}
