//! Endless transfers.

use swell_base::{Dur, Side, Time};

use crate::{Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Workload};

/// Configuration of a greedy source.
#[derive(Clone, Debug, PartialEq)]
pub struct GreedyConfig {
    /// Number of connections, each of which always has data to send.
    pub connections: u32,
    /// The side from which data flow.
    pub from: Side,
    /// When the source starts.
    pub start: Dur,
    /// Time between the starts of consecutive connections.
    pub stagger: Dur,
    /// Additional delay of each connection's start; zero for connections that are not listed.
    pub later: Vec<Dur>,
    /// One-way delay of each connection's access paths, at both ends. Connections that are not listed have the delays
    /// of `sender` and `receiver`.
    pub delays: Vec<Dur>,
    /// Path of the sender.
    pub sender: Access,
    /// Path of the receiver.
    pub receiver: Access,
}

impl Default for GreedyConfig {
    /// One connection from left to right, from the start.
    fn default() -> Self {
        GreedyConfig {
            connections: 1,
            from: Side::Left,
            start: Dur::ZERO,
            stagger: Dur::ZERO,
            later: Vec::new(),
            delays: Vec::new(),
            sender: Access::default(),
            receiver: Access::default(),
        }
    }
}

/// Connections that send as fast as the transport allows until the run ends ("infinite FTP").
#[derive(Debug)]
pub struct Greedy {
    config: GreedyConfig,
    /// Every other connection sends in the opposite direction.
    both: bool,
    /// Start of each connection, in order of time, and its index in the lists of the configuration.
    starts: Vec<(Dur, usize)>,
    opened: Vec<Time>,
    records: Vec<Record>,
}

/// More bytes than any run can send.
const ENDLESS: u64 = 1 << 60;

impl Greedy {
    /// A source with the given configuration.
    pub fn new(config: GreedyConfig) -> Greedy {
        let one = |i: u32| {
            let i = i as usize;
            let later = config.later.get(i).copied().unwrap_or_default();
            (config.start + config.stagger * i as u64 + later, i)
        };
        let mut starts: Vec<(Dur, usize)> = (0..config.connections).map(one).collect();
        starts.sort_unstable();
        Greedy {
            config,
            both: false,
            starts,
            opened: Vec::new(),
            records: Vec::new(),
        }
    }

    /// A source of which every other connection sends in the opposite direction.
    pub fn both_ways(config: GreedyConfig) -> Greedy {
        Greedy {
            both: true,
            ..Greedy::new(config)
        }
    }

    /// The side from which the connection with this index carries data.
    fn sender_side(&self, which: usize) -> Side {
        match self.both && which % 2 == 1 {
            true => self.config.from.other(),
            false => self.config.from,
        }
    }

    fn wait(&self, now: Time, actions: &mut Vec<Action>) {
        if let Some(&(start, _)) = self.starts.get(self.opened.len()) {
            actions.push(Action::Timer((Time::ZERO + start).since(now), 0));
        }
    }
}

impl Workload for Greedy {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => self.wait(now, actions),
            Event::Timer(_) => {
                let Some(&(_, which)) = self.starts.get(self.opened.len()) else {
                    return;
                };
                let conn = Conn(self.opened.len() as u32);
                self.opened.push(now);
                let own = |path: Access| Access {
                    delay: (self.config.delays.get(which).copied()).unwrap_or(path.delay),
                    ..path
                };
                let open = Open {
                    client_side: self.sender_side(which),
                    client: own(self.config.sender),
                    server: own(self.config.receiver),
                    silent: true,
                    ..Open::default()
                };
                actions.push(Action::Connect(conn, Box::new(open)));
                actions.push(Action::Send(conn, End::Client, ENDLESS));
                self.wait(now, actions);
            }
            _ => {}
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn delivered(&self, info: &dyn Fn(Conn) -> Info) -> Option<[u64; 2]> {
        let mut sum = [0; 2];
        for i in 0..self.opened.len() {
            let side = self.sender_side(self.starts[i].1);
            sum[side] += info(Conn(i as u32)).received[1];
        }
        Some(sum)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for (i, start) in std::mem::take(&mut self.opened).into_iter().enumerate() {
            let facts = info(Conn(i as u32));
            let bytes = facts.received[1];
            let (up, down) = match self.sender_side(self.starts[i].1) {
                Side::Left => (bytes, 0),
                Side::Right => (0, bytes),
            };
            self.records.push(Record::Flow(FlowRecord {
                class: 0,
                start,
                end: None,
                up,
                down,
                min_rtt: facts.min_rtt,
                retransmissions: facts.client_retransmissions + facts.server_retransmissions,
            }));
        }
    }
}
