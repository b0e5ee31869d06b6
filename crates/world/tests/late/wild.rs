//! A workload that does many things to a few connections, at instants that often coincide, and notes what it is told.

use std::sync::mpsc::Sender;

use swell_base::{Dur, Rate, Stream, Time};
use swell_workload::{
    Access, Action, Beat, Conn, End, Event, Info, Open, Record, Wire, WireEnd, Workload,
};

/// When, which workload, what it was told.
pub type Told = (Time, usize, String);

/// What goes on over a connection.
#[derive(Clone, Copy, Debug)]
pub enum Talk {
    /// An end has everything to send at once.
    Bulk(End, u64),
    /// Both have.
    Both(u64, u64),
    /// An end writes so much at constant intervals.
    Pulses(End, u64, Dur),
    /// The same by a timer that may rest.
    Feed(End, u64, Dur),
    /// So many requests, each answered.
    Turns(u32, u64, u64),
    /// Datagrams at constant intervals.
    Datagrams(End, u32, Dur),
}

/// A connection of a [`Wild`] workload.
#[derive(Clone, Debug)]
pub struct Line {
    pub start: Dur,
    pub open: Open,
    pub talk: Talk,
    /// Closed by this end when that much time has passed.
    pub close: Option<(Dur, End)>,
    pub abort: Option<Dur>,
}

/// Other things that are done, several at once.
#[derive(Clone, Copy, Debug)]
pub struct Meddling {
    pub every: Dur,
    pub asks: bool,
    pub writes: u64,
}

pub struct Wild {
    pub number: usize,
    pub lines: Vec<Line>,
    pub meddling: Option<Meddling>,
    pub told: Sender<Told>,
    /// Turns that are left, and bytes awaited by the server and the client.
    pub turns: Vec<(u32, u64, u64)>,
}

const OPENS: u64 = 0;
const PULSE: u64 = 100;
const CLOSES: u64 = 200;
const ABORTS: u64 = 300;
const MEDDLES: u64 = 400;

impl Wild {
    fn open(&mut self, i: u64, actions: &mut Vec<Action>) {
        let line = &self.lines[i as usize];
        let (conn, open) = (Conn(i as u32), Box::new(line.open.clone()));
        if let Talk::Datagrams(..) = line.talk {
            actions.push(Action::Datagrams(conn, open));
        } else {
            actions.push(Action::Connect(conn, open));
        }
        match line.talk {
            Talk::Bulk(end, bytes) => actions.push(Action::Send(conn, end, bytes)),
            Talk::Both(a, b) => {
                actions.push(Action::Send(conn, End::Client, a));
                actions.push(Action::Send(conn, End::Server, b));
            }
            Talk::Pulses(_, _, pause) | Talk::Feed(_, _, pause) | Talk::Datagrams(_, _, pause) => {
                actions.push(Action::Timer(pause, PULSE + i))
            }
            Talk::Turns(n, request, answer) => {
                self.turns[i as usize] = (n, request, answer);
                actions.push(Action::Send(conn, End::Client, request));
            }
        }
        if let Some((after, _)) = line.close {
            actions.push(Action::Timer(after, CLOSES + i));
        }
        if let Some(after) = line.abort {
            actions.push(Action::Timer(after, ABORTS + i));
        }
    }

    fn pulse(&self, i: u64, actions: &mut Vec<Action>) {
        let conn = Conn(i as u32);
        match self.lines[i as usize].talk {
            Talk::Pulses(end, bytes, pause) => {
                let send = Action::Send(conn, end, bytes);
                let timer = Action::Timer(pause, PULSE + i);
                // One way or the other.
                actions.extend(if i == 1 { [timer, send] } else { [send, timer] });
            }
            Talk::Datagrams(end, bytes, pause) => {
                actions.push(Action::SendDatagram(conn, end, bytes));
                actions.push(Action::Timer(pause, PULSE + i));
            }
            _ => {}
        }
    }

    /// Something is done to every connection.
    fn meddle(&self, meddling: Meddling, actions: &mut Vec<Action>) {
        for (i, line) in self.lines.iter().enumerate() {
            let conn = Conn(i as u32);
            let end = match line.talk {
                Talk::Bulk(end, _) | Talk::Pulses(end, ..) => end,
                Talk::Both(..) => End::Server,
                _ => continue,
            };
            if meddling.asks {
                actions.push(Action::Ask(conn));
            }
            if meddling.writes > 0 {
                actions.push(Action::Send(conn, end, meddling.writes));
            }
        }
        actions.push(Action::Timer(meddling.every, MEDDLES));
    }

    fn received(&mut self, i: usize, end: End, n: u64, actions: &mut Vec<Action>) {
        let Talk::Turns(_, request, answer) = self.lines[i].talk else {
            return;
        };
        let (left, up, down) = &mut self.turns[i];
        let conn = Conn(i as u32);
        if end == End::Server {
            *up = up.saturating_sub(n);
            if *up == 0 {
                *up = request;
                // In two writes, of which the second comes while the first waits.
                actions.push(Action::Send(conn, end, answer / 2));
                actions.push(Action::Send(conn, end, answer - answer / 2));
            }
        } else {
            *down = down.saturating_sub(n);
            if *down == 0 && *left > 0 {
                *left -= 1;
                *down = answer;
                actions.push(Action::Send(conn, end, request));
            }
        }
    }
}

impl Workload for Wild {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        let told = (now, self.number, format!("{event:?}"));
        self.told.send(told).expect("the test listens");
        match event {
            Event::Start => {
                for (i, line) in self.lines.iter().enumerate() {
                    actions.push(Action::Timer(line.start, OPENS + i as u64));
                }
                if let Some(meddling) = self.meddling {
                    actions.push(Action::Timer(meddling.every, MEDDLES));
                }
            }
            Event::Timer(MEDDLES) => {
                if let Some(meddling) = self.meddling {
                    self.meddle(meddling, actions);
                }
            }
            Event::Timer(token) => {
                let i = token % 100;
                match token - i {
                    OPENS => self.open(i, actions),
                    PULSE => self.pulse(i, actions),
                    CLOSES => {
                        if let Some((_, end)) = self.lines[i as usize].close {
                            actions.push(Action::Close(Conn(i as u32), end));
                        }
                    }
                    _ => actions.push(Action::Abort(Conn(i as u32))),
                }
            }
            Event::Received(conn, end, n) => self.received(conn.0 as usize, end, n, actions),
            Event::Eof(conn, end) => actions.push(Action::Close(conn, end)),
            _ => {}
        }
    }

    fn beat(&mut self, token: u64) -> Option<Beat> {
        let i = token.checked_sub(PULSE).filter(|i| *i < 100)?;
        match self.lines[i as usize].talk {
            Talk::Feed(end, bytes, pause) => Some(Beat {
                conn: Conn(i as u32),
                end,
                bytes,
                pause,
                alone: true,
            }),
            _ => None,
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for i in 0..self.lines.len() as u32 {
            let told = (Time::MAX, self.number, format!("{:?}", info(Conn(i))));
            self.told.send(told).expect("the test listens");
        }
    }
}

/// One of a few, so that there are equal ones.
pub fn one<T: Clone>(rng: &mut Stream, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

fn access(rng: &mut Stream) -> Access {
    let rate = |r: &mut Stream| {
        let rate = one(
            r,
            &[
                0,
                0,
                1_000_000,
                8_000_000,
                10_000_000,
                100_000_000,
                7_654_321,
            ],
        );
        (rate > 0).then(|| Rate::from_bps(rate))
    };
    let micros = one(
        rng,
        &[
            0, 1, 10, 100, 1_000, 1_000, 5_000, 10_000, 10_000, 40_000, 300_000,
        ],
    );
    let loss = |r: &mut Stream| {
        if r.chance(0.05) { 0.02 } else { 0.0 }
    };
    Access {
        delay: Dur::from_nanos(micros * 1000 + one(rng, &[0, 0, 0, 999, 12_345])),
        up: rate(rng),
        down: rate(rng),
        loss_up: loss(rng),
        loss_down: loss(rng),
        key: one(rng, &[0, 0, 0, 0, 0, 7]),
    }
}

fn end(rng: &mut Stream) -> End {
    one(rng, &[End::Client, End::Server])
}

fn talk(rng: &mut Stream) -> Talk {
    let size = |r: &mut Stream| one(r, &[1, 100, 1000, 1460, 1460, 2920, 4000, 30_000]);
    let pause = |r: &mut Stream| {
        let micros = one(r, &[500, 1000, 1500, 2000, 4000, 10_000, 50_000, 333]);
        Dur::from_micros(micros)
    };
    let much = |r: &mut Stream| one(r, &[5_000, 50_000, 400_000, 1 << 40]);
    match rng.below(8) {
        0 | 1 => Talk::Bulk(end(rng), much(rng)),
        2 => Talk::Both(much(rng), much(rng)),
        3 => Talk::Pulses(end(rng), size(rng), pause(rng)),
        4 => Talk::Feed(end(rng), size(rng), pause(rng)),
        5 => Talk::Feed(End::Client, 1000, pause(rng)),
        6 => Talk::Turns(8, size(rng), much(rng).min(100_000)),
        _ => Talk::Datagrams(end(rng), size(rng) as u32, pause(rng)),
    }
}

/// So many connections, drawn at random; in every other world their paths are alike.
pub fn lines(rng: &mut Stream, n: u64) -> Vec<Line> {
    let alike = rng.chance(0.5).then(|| [access(rng), access(rng)]);
    let from_right = rng.chance(0.2);
    (0..n).map(|_| line(rng, alike, from_right)).collect()
}

fn line(rng: &mut Stream, alike: Option<[Access; 2]>, from_right: bool) -> Line {
    let [client, server] = alike.unwrap_or_else(|| [access(rng), access(rng)]);
    let window = |r: &mut Stream| one(r, &[0, 0, 0, 0, 3000, 10_000, 65_535]);
    let after = |r: &mut Stream| Dur::from_millis(one(r, &[300, 500, 1000, 1234]));
    Line {
        start: Dur::from_millis(one(rng, &[0, 0, 0, 1, 10, 100])),
        open: Open {
            from_right: from_right ^ rng.chance(0.2),
            client,
            server,
            client_window: window(rng),
            server_window: window(rng),
            wire: Wire {
                ends: [0, 1].map(|_| WireEnd {
                    mss: one(rng, &[0, 0, 0, 1000]),
                    ..WireEnd::default()
                }),
                ..Wire::default()
            },
            silent: rng.chance(0.3),
            ..Open::default()
        },
        talk: talk(rng),
        close: rng.chance(0.3).then(|| (after(rng), end(rng))),
        abort: rng.chance(0.15).then(|| after(rng)),
    }
}
