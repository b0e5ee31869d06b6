//! Two endpoints, two wires and an event loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use swell_base::{Dur, Flags, Rate, SackBlocks, Segment, Time};
use swell_tcp::{Config, Endpoint, Event};

/// Index of an end.
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// The fate of a segment on a wire: the extra delay of each delivered copy. Empty means lost.
pub type Fate = Vec<Dur>;

/// A segment in transit, as passed to the judge.
pub struct Sent<'a> {
    pub at: Time,
    /// The end that sent it.
    pub from: usize,
    /// Number among that end's segments, from 0.
    pub index: usize,
    pub seg: &'a Segment,
}

/// Decides the fate of each segment; may keep state.
pub type Judge = Box<dyn FnMut(&Sent<'_>) -> Fate>;

pub fn deliver() -> Fate {
    vec![Dur::ZERO]
}

pub fn lose() -> Fate {
    Vec::new()
}

/// Called at every event of an end: (now, end, event, that endpoint).
pub type App = Box<dyn FnMut(Time, usize, Event, &mut Endpoint)>;

pub struct Net {
    pub now: Time,
    pub ends: [Endpoint; 2],
    /// Everything sent: (when, from, segment, lost).
    pub log: Vec<(Time, usize, Segment, bool)>,
    /// The SACK blocks of each logged segment.
    pub sacks: Vec<SackBlocks>,
    pub events: Vec<(Time, usize, Event)>,
    delay: Dur,
    /// Rate of each direction; `None` means no serialisation delay.
    rate: Option<Rate>,
    /// Maximum queueing delay; a segment that would wait longer is dropped.
    queue: Dur,
    /// Queueing delay above which segments are marked.
    mark: Dur,
    busy_until: [Time; 2],
    flying: BTreeMap<(Time, u64), (usize, Segment, SackBlocks)>,
    order: u64,
    sent: [usize; 2],
    judge: Judge,
    app: App,
    cfg: Arc<Config>,
}

impl Net {
    /// Two ends with the same settings and a one-way delay of `delay`.
    pub fn new(cfg: Config, delay: Dur) -> Net {
        let cfg = Arc::new(cfg);
        Net {
            now: Time::ZERO,
            ends: [Endpoint::client(cfg.clone()), Endpoint::server(cfg.clone())],
            log: Vec::new(),
            sacks: Vec::new(),
            events: Vec::new(),
            delay,
            rate: None,
            queue: Dur::MAX,
            mark: Dur::MAX,
            busy_until: [Time::ZERO; 2],
            flying: BTreeMap::new(),
            order: 0,
            sent: [0; 2],
            judge: Box::new(|_| deliver()),
            app: Box::new(|_, _, _, _| {}),
            cfg,
        }
    }

    pub fn rate(mut self, rate: Rate) -> Net {
        self.rate = Some(rate);
        self
    }

    pub fn queue(mut self, longest_wait: Dur) -> Net {
        self.queue = longest_wait;
        self
    }

    /// Marks ECN-capable segments (RFC 3168) that would wait longer than this.
    pub fn mark(mut self, wait: Dur) -> Net {
        self.mark = wait;
        self
    }

    pub fn judge(mut self, judge: impl FnMut(&Sent<'_>) -> Fate + 'static) -> Net {
        self.judge = Box::new(judge);
        self
    }

    pub fn app(mut self, app: impl FnMut(Time, usize, Event, &mut Endpoint) + 'static) -> Net {
        self.app = Box::new(app);
        self
    }

    /// Loses data segments of the server, given by their order of first transmission, from 0; each once.
    pub fn lose_data(self, which: &[usize]) -> Net {
        let mut left: Vec<u64> = Vec::new();
        let which = which.to_vec();
        let mut seen = 0;
        let mut high = 0;
        self.judge(move |s| {
            if s.from == SERVER && s.seg.len > 0 {
                let fresh = s.seg.seq >= high;
                if fresh {
                    high = s.seg.seq + 1;
                    seen += 1;
                    if which.contains(&(seen - 1)) {
                        left.push(s.seg.seq);
                        return lose();
                    }
                }
            }
            deliver()
        })
    }

    /// Processes all events up to `until`.
    pub fn run_until(&mut self, until: Time) {
        self.drain(CLIENT);
        self.drain(SERVER);
        while let Some(at) = self.next_at() {
            if at > until {
                break;
            }
            self.step(at);
        }
        self.now = self.now.max(until);
    }

    /// Processes all events. Panics after `most` segments, because the connection would then be endless.
    pub fn run(&mut self, most: usize) {
        self.drain(CLIENT);
        self.drain(SERVER);
        while let Some(at) = self.next_at() {
            self.step(at);
            assert!(self.log.len() <= most, "more than {most} segments");
        }
    }

    fn next_at(&self) -> Option<Time> {
        let wire = self.flying.keys().next().map(|k| k.0);
        let timers = self.ends.iter().filter_map(Endpoint::poll_timeout).min();
        [wire, timers].into_iter().flatten().min()
    }

    fn step(&mut self, at: Time) {
        assert!(
            at >= self.now,
            "a deadline in the past: {at} at {}",
            self.now
        );
        self.now = at;
        while let Some(entry) = self.flying.first_entry() {
            if entry.key().0 > at {
                break;
            }
            let (to, seg, sacks) = entry.remove();
            self.ends[to].handle_segment(at, &seg, &sacks);
            self.drain(to);
        }
        for i in [CLIENT, SERVER] {
            if self.ends[i].poll_timeout().is_some_and(|t| t <= at) {
                self.ends[i].handle_timeout(at);
                self.drain(i);
                assert!(
                    self.ends[i].poll_timeout().is_none_or(|t| t > at),
                    "a timer that stays due"
                );
            }
        }
    }

    /// Delivers events to the application and puts pending segments on the wire. Public for tests that call an
    /// endpoint themselves.
    pub fn drain(&mut self, from: usize) {
        loop {
            while let Some(e) = self.ends[from].poll() {
                self.events.push((self.now, from, e));
                (self.app)(self.now, from, e, &mut self.ends[from]);
            }
            let Some(seg) = self.ends[from].poll_transmit(self.now) else {
                break;
            };
            self.transmit(from, seg);
        }
        assert!(self.ends[from].poll_transmit(self.now).is_none());
    }

    fn transmit(&mut self, from: usize, (seg, sacks): (Segment, SackBlocks)) {
        let index = self.sent[from];
        self.sent[from] += 1;
        let mut fate = (self.judge)(&Sent {
            at: self.now,
            from,
            index,
            seg: &seg,
        });
        let mut departs = self.now;
        if let Some(rate) = self.rate {
            let starts = self.busy_until[from].max(self.now);
            if starts.since(self.now) > self.queue {
                fate.clear();
            } else {
                let size = swell_base::Bytes(u64::from(self.cfg.wire_size(&seg)));
                departs = starts + rate.transmit(size);
                self.busy_until[from] = departs;
            }
        }
        self.log.push((self.now, from, seg, fate.is_empty()));
        self.sacks.push(sacks);
        let mut seg = seg;
        if seg.ecn != 0 && departs.since(self.now) > self.mark {
            seg.ecn = 3; // congestion experienced
        }
        for late in fate {
            self.order += 1;
            let at = departs + self.delay + late;
            self.flying.insert((at, self.order), (1 - from, seg, sacks));
        }
    }

    /// Queueing delay of a segment that `from` sends now.
    pub fn backlog(&self, from: usize) -> Dur {
        self.busy_until[from].since(self.now)
    }

    /// Bytes received in order at `end`.
    pub fn received(&self, end: usize) -> u64 {
        self.events
            .iter()
            .filter_map(|&(_, e, ev)| match ev {
                Event::Received(n) if e == end => Some(n),
                _ => None,
            })
            .sum()
    }

    /// Time when `event` first happened at `end`.
    pub fn when(&self, end: usize, event: Event) -> Option<Time> {
        self.events
            .iter()
            .find(|&&(_, e, ev)| e == end && ev == event)
            .map(|x| x.0)
    }

    /// Time when `end` had received `bytes`.
    pub fn when_received(&self, end: usize, bytes: u64) -> Option<Time> {
        let mut sum = 0;
        self.events.iter().find_map(|&(t, e, ev)| {
            if let Event::Received(n) = ev
                && e == end
            {
                sum += n;
                return (sum >= bytes).then_some(t);
            }
            None
        })
    }

    /// Segments with payload sent by `end`: (when, segment, lost).
    pub fn data(&self, end: usize) -> Vec<(Time, Segment, bool)> {
        self.log
            .iter()
            .filter(|x| x.1 == end && x.2.len > 0)
            .map(|x| (x.0, x.2, x.3))
            .collect()
    }

    /// Pure acknowledgements sent by `end`.
    pub fn pure_acks(&self, end: usize) -> Vec<(Time, Segment)> {
        self.log
            .iter()
            .filter(|x| x.1 == end && x.2.len == 0 && x.2.flags == Flags::ACK)
            .map(|x| (x.0, x.2))
            .collect()
    }
}

/// The server sends `bytes` once connected, then closes; the client closes at end of file.
pub fn serve(bytes: u64) -> impl FnMut(Time, usize, Event, &mut Endpoint) + 'static {
    move |_, end, event, e| match (end, event) {
        (SERVER, Event::Connected) => {
            e.send(bytes);
            e.close();
        }
        (CLIENT, Event::Eof) => e.close(),
        _ => {}
    }
}

pub fn ms(n: u64) -> Dur {
    Dur::from_millis(n)
}
