//! The endless transfer.

use swell_base::{Dur, Time};

use crate::{Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Workload};

/// What a greedy source does.
#[derive(Clone, Debug, PartialEq)]
pub struct GreedyConfig {
    /// Connections, each of which always has something to send.
    pub connections: u32,
    /// Data flows from right to left instead of from left to right.
    pub from_right: bool,
    /// When it begins.
    pub start: Dur,
    /// Time between the beginnings of one connection and the next.
    pub stagger: Dur,
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
            from_right: false,
            start: Dur::ZERO,
            stagger: Dur::ZERO,
            sender: Access::default(),
            receiver: Access::default(),
        }
    }
}

/// Connections that send as much as the transport lets them until the run ends: "infinite FTP".
#[derive(Debug)]
pub struct Greedy {
    config: GreedyConfig,
    opened: Vec<Time>,
    records: Vec<Record>,
}

/// More than any run can send.
const ENDLESS: u64 = 1 << 60;

impl Greedy {
    /// The source, ready to start.
    pub fn new(config: GreedyConfig) -> Greedy {
        Greedy {
            config,
            opened: Vec::new(),
            records: Vec::new(),
        }
    }

    fn wait(&self, actions: &mut Vec<Action>, pause: Dur) {
        if (self.opened.len() as u32) < self.config.connections {
            actions.push(Action::Timer(pause, 0));
        }
    }
}

impl Workload for Greedy {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => self.wait(actions, self.config.start),
            Event::Timer(_) => {
                let conn = Conn(self.opened.len() as u32);
                self.opened.push(now);
                let open = Open {
                    from_right: self.config.from_right,
                    client: self.config.sender,
                    server: self.config.receiver,
                    silent: true,
                    ..Open::default()
                };
                actions.push(Action::Connect(conn, Box::new(open)));
                actions.push(Action::Send(conn, End::Client, ENDLESS));
                self.wait(actions, self.config.stagger);
            }
            _ => {}
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for (i, start) in self.opened.drain(..).enumerate() {
            let facts = info(Conn(i as u32));
            let bytes = facts.received[1];
            let (up, down) = if self.config.from_right {
                (0, bytes)
            } else {
                (bytes, 0)
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
