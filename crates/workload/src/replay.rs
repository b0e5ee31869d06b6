//! Open-loop replay of a packet trace.

use std::sync::Arc;

use swell_base::{Direction, Dur, Side, Time, UDP_HEADERS};

use crate::machine::TCP_HEADERS;
use crate::{
    Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Transport, Workload,
};

/// Packets of one direction as (time since the beginning, network-layer size in bytes), in order of time.
pub type Packets = Arc<[(Dur, u32)]>;

/// How a trace is replayed.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    /// Packets from left to right and from right to left.
    pub packets: [Packets; 2],
    /// Over UDP every packet is a datagram of its size, sent at its time regardless of the network. Over TCP one
    /// connection per direction receives the packets as writes at their times, and TCP decides when to send.
    pub transport: Transport,
    /// Position in the trace at which the replay begins, in trace time.
    pub phase: Dur,
    /// Period after which the trace repeats, in trace time. At least the time of the last packet plus a nanosecond.
    /// `None`: the trace does not repeat.
    pub period: Option<Dur>,
    /// Factor on times, at least 0; above 1 is slower.
    pub stretch: f64,
    /// Times are rounded up to multiples of this; zero keeps them exact.
    pub grid: Dur,
    /// Path of the host on the left.
    pub left: Access,
    /// Path of the host on the right.
    pub right: Access,
}

impl ReplayConfig {
    /// The exact replay of `packets` over UDP, between hosts directly at the bottleneck.
    pub fn exact(packets: [Packets; 2]) -> ReplayConfig {
        ReplayConfig {
            packets,
            transport: Transport::Udp,
            phase: Dur::ZERO,
            period: None,
            stretch: 1.0,
            grid: Dur::ZERO,
            left: Access::default(),
            right: Access::default(),
        }
    }
}

/// Replays a trace. It does not react to the network; over TCP the transport does.
#[derive(Debug)]
pub struct Replay {
    config: ReplayConfig,
    start: Time,
    /// Index of the next packet in each direction, and the number of completed repetitions.
    next: [usize; 2],
    round: [u64; 2],
    period: Option<u64>,
    records: Vec<Record>,
}

impl Replay {
    /// A replay with the given configuration.
    pub fn new(config: ReplayConfig) -> Replay {
        let ends = config.packets.each_ref().map(|p| p.last().map(|p| p.0));
        let last = ends.into_iter().flatten().max().unwrap_or_default();
        let next = config
            .packets
            .each_ref()
            .map(|p| p.partition_point(|p| p.0 < config.phase));
        Replay {
            // A trace with stretch zero would repeat endlessly at one instant.
            period: config
                .period
                .filter(|_| config.stretch > 0.0)
                .map(|p| p.as_nanos().max(last.as_nanos().saturating_add(1))),
            config,
            start: Time::ZERO,
            next,
            round: [0; 2],
            records: Vec::new(),
        }
    }

    /// The next packet of a direction: its time since the beginning of the replay, in trace time, and its size.
    fn peek(&mut self, d: Direction) -> Option<(Dur, u32)> {
        let packets = &self.config.packets[d];
        if self.next[d] == packets.len()
            && let Some(period) = self.period
            && !packets.is_empty()
            && self.round[d].checked_mul(period).is_some()
        {
            self.next[d] = 0;
            self.round[d] += 1;
        }
        let &(at, size) = packets.get(self.next[d])?;
        let past = self.round[d].saturating_mul(self.period.unwrap_or(0));
        let at = Dur::from_nanos(at.as_nanos().saturating_add(past));
        Some((at.saturating_sub(self.config.phase), size))
    }

    /// Run time of a packet since the beginning of the replay, after stretching and rounding.
    fn due(&self, at: Dur) -> Dur {
        let at = if self.config.stretch == 1.0 {
            at
        } else {
            at.scale(self.config.stretch.max(0.0))
        };
        let grid = self.config.grid.as_nanos();
        if grid == 0 {
            return at;
        }
        Dur::from_nanos(at.as_nanos().div_ceil(grid).saturating_mul(grid))
    }

    /// Sends the packets of a direction that are due and sets the timer for the next one.
    fn send(&mut self, d: Direction, now: Time, actions: &mut Vec<Action>) {
        let conn = Conn(d as u32);
        while let Some((at, size)) = self.peek(d) {
            let due = self.start + self.due(at);
            if due > now {
                actions.push(Action::Timer(due.since(now), d as u64));
                return;
            }
            self.next[d] += 1;
            actions.push(match self.config.transport {
                Transport::Udp => {
                    Action::SendDatagram(conn, End::Client, size.saturating_sub(UDP_HEADERS[0]))
                }
                Transport::Tcp => {
                    let payload = size.saturating_sub(TCP_HEADERS).max(1);
                    Action::Send(conn, End::Client, u64::from(payload))
                }
            });
        }
    }
}

impl Workload for Replay {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                self.start = now;
                let (left, right) = (self.config.left, self.config.right);
                for d in Direction::BOTH {
                    let (client, server) = match d {
                        Direction::Up => (left, right),
                        Direction::Down => (right, left),
                    };
                    if self.config.packets[d].is_empty() {
                        continue;
                    }
                    let open = Box::new(Open {
                        client_side: Side::of(d == Direction::Down),
                        client,
                        server,
                        silent: true,
                        ..Open::default()
                    });
                    let conn = Conn(d as u32);
                    actions.push(match self.config.transport {
                        Transport::Udp => Action::Datagrams(conn, open),
                        Transport::Tcp => Action::Connect(conn, open),
                    });
                    self.send(d, now, actions);
                }
            }
            Event::Timer(d) => self.send(Direction::of(d & 1 == 1), now, actions),
            _ => {}
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for d in Direction::BOTH {
            if self.config.packets[d].is_empty() {
                continue;
            }
            let facts = info(Conn(d as u32));
            let mut bytes = [0; 2];
            bytes[d] = facts.received[1];
            self.records.push(Record::Flow(FlowRecord {
                class: 0,
                start: self.start,
                end: None,
                up: bytes[0],
                down: bytes[1],
                min_rtt: facts.min_rtt,
                retransmissions: facts.client_retransmissions + facts.server_retransmissions,
            }));
        }
    }
}
