//! An ideal network: every byte arrives in order after a fixed one-way delay, and its acknowledgement arrives after
//! another delay.

use std::collections::{BTreeMap, BTreeSet};

use swell_base::{Dur, Time};
use swell_workload::{Action, Conn, End, Event, Info, Record, Workload};

pub struct Ideal<W> {
    pub workload: W,
    delay: Dur,
    now: Time,
    seq: u64,
    due: BTreeMap<(Time, u64), Event>,
    closed: BTreeSet<(Conn, End)>,
    /// All actions of the workload, with their instants.
    pub log: Vec<(Time, Action)>,
}

impl<W: Workload> Ideal<W> {
    pub fn new(workload: W, delay: Dur) -> Self {
        let (due, closed, log) = Default::default();
        let mut ideal = Ideal {
            workload,
            delay,
            now: Time::ZERO,
            seq: 0,
            due,
            closed,
            log,
        };
        ideal.after(Dur::ZERO, Event::Start);
        ideal
    }

    fn after(&mut self, pause: Dur, event: Event) {
        self.seq += 1;
        self.due.insert((self.now + pause, self.seq), event);
    }

    /// Runs for `span`, but at most a million events. Returns the records of finished work.
    pub fn run(&mut self, span: Dur) -> Vec<Record> {
        for _ in 0..1_000_000 {
            let Some((&(at, seq), _)) = self.due.first_key_value() else {
                break;
            };
            if at > Time::ZERO + span {
                break;
            }
            let event = self.due.remove(&(at, seq)).unwrap();
            self.now = at;
            let mut actions = Vec::new();
            self.workload.handle(at, event, &mut actions);
            for action in actions {
                self.act(&action);
                self.log.push((at, action));
            }
        }
        self.workload.take_records()
    }

    fn act(&mut self, action: &Action) {
        let d = self.delay;
        match *action {
            Action::Connect(conn, _) => {
                self.after(d, Event::Connected(conn, End::Server));
                self.after(d * 2, Event::Connected(conn, End::Client));
            }
            Action::Send(conn, end, n) => {
                self.after(d, Event::Received(conn, other(end), n));
                self.after(d * 2, Event::Drained(conn, end));
            }
            Action::SendDatagram(conn, end, n) => {
                self.after(d, Event::Datagram(conn, other(end), n, None));
            }
            Action::Close(conn, end) => {
                if self.closed.insert((conn, end)) {
                    self.after(d, Event::Eof(conn, other(end)));
                    if self.closed.contains(&(conn, other(end))) {
                        self.after(d * 2, Event::Closed(conn, Info::default()));
                    }
                }
            }
            Action::Timer(pause, token) => self.after(pause, Event::Timer(token)),
            Action::Ask(conn) => self.after(Dur::ZERO, Event::Info(conn, Info::default())),
            Action::Unsent(conn, end) => self.after(Dur::ZERO, Event::Unsent(conn, end, 0)),
            Action::Datagrams(..) | Action::Abort(_) => {}
        }
    }
}

fn other(end: End) -> End {
    match end {
        End::Client => End::Server,
        End::Server => End::Client,
    }
}
