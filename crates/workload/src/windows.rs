//! Restricts workloads to time windows.

use std::collections::{BTreeMap, BTreeSet};

use swell_base::{Dur, Time};

use crate::{
    Action, Conn, Event, FlowRecord, Info, Outcome, Record, RequestRecord, Sample, Workload,
};

/// Timer token: the next window opens.
const OPEN: u64 = 0;
/// Timer token: the window ends.
const CLOSE: u64 = 1;
/// Timer token: the final statistics of its connections have arrived.
const FINISH: u64 = 2;
/// Tokens from here on belong to the wrapped workloads.
const FIRST: u64 = 3;

/// A workload and the time window in which it runs.
pub struct Window {
    /// Beginning of the window, relative to the beginning of the run.
    pub begin: Dur,
    /// End of the window; `None` = the end of the run.
    pub end: Option<Dur>,
    /// The workload. Its time zero is the beginning of the window.
    pub machine: Box<dyn Workload>,
}

/// Runs a separate workload in each of several disjoint time windows. At the end of a window all its connections are
/// reset, which interrupts unfinished work.
pub struct Windows {
    /// Future windows, the next one last.
    later: Vec<Window>,
    open: Option<Open>,
    /// Beginning of the run.
    start: Time,
    /// Connections with lower numbers belonged to earlier windows.
    base: u32,
    /// The highest connection number so far, plus one.
    next: u32,
    timers: Timers,
    keep: bool,
    records: Vec<Record>,
    samples: Vec<Sample>,
    /// What earlier windows report of [`Workload::delivered`].
    delivered: Option<[u64; 2]>,
    scratch: Vec<Action>,
}

/// The open window.
struct Open {
    machine: Box<dyn Workload>,
    begin: Time,
    end: Option<Dur>,
    conns: BTreeSet<Conn>,
    facts: BTreeMap<Conn, Info>,
    /// The window has ended, so statistics go to [`Windows`] and not to the workload.
    closing: bool,
}

/// Maps the carrier's timer tokens to tokens of the workloads.
#[derive(Default)]
struct Timers {
    /// Window (by its beginning) and token of each timer.
    set: Vec<(Time, u64)>,
    free: Vec<usize>,
}

impl Timers {
    fn add(&mut self, window: Time, token: u64) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.set.push((window, token));
            self.set.len() - 1
        });
        self.set[place] = (window, token);
        place as u64 + FIRST
    }

    fn take(&mut self, token: u64) -> Option<(Time, u64)> {
        let place = usize::try_from(token.checked_sub(FIRST)?).ok()?;
        let found = *self.set.get(place)?;
        self.free.push(place);
        Some(found)
    }
}

impl Windows {
    /// Runs the given windows, which must be in order of time.
    pub fn new(mut windows: Vec<Window>) -> Windows {
        windows.reverse();
        Windows {
            later: windows,
            open: None,
            start: Time::ZERO,
            base: 0,
            next: 0,
            timers: Timers::default(),
            keep: true,
            records: Vec::new(),
            samples: Vec::new(),
            delivered: None,
            scratch: Vec::new(),
        }
    }

    /// Opens the next window if it is due, or sets a timer for it.
    fn begin(&mut self, now: Time, actions: &mut Vec<Action>) {
        let Some(next) = self.later.last() else {
            return;
        };
        let due = self.start + next.begin;
        if due > now {
            return actions.push(Action::Timer(due.since(now), OPEN));
        }
        let Some(Window {
            end, mut machine, ..
        }) = self.later.pop()
        else {
            return;
        };
        machine.keep_records(self.keep);
        self.base = self.next;
        self.open = Some(Open {
            machine,
            begin: now,
            end,
            conns: BTreeSet::new(),
            facts: BTreeMap::new(),
            closing: false,
        });
        self.tell(now, Event::Start, actions);
        if let Some(end) = end {
            actions.push(Action::Timer((self.start + end).since(now), CLOSE));
        }
    }

    /// Passes an event to the open workload, and its actions to the carrier.
    fn tell(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        let Some(open) = &mut self.open else { return };
        let mut answers = std::mem::take(&mut self.scratch);
        let own = Time::ZERO + now.since(open.begin);
        open.machine.handle(own, event, &mut answers);
        for answer in answers.drain(..) {
            let outer = |conn: Conn| Conn(self.base + conn.0);
            actions.push(match answer {
                Action::Connect(conn, with) => {
                    self.next = self.next.max(outer(conn).0 + 1);
                    open.conns.insert(outer(conn));
                    Action::Connect(outer(conn), with)
                }
                Action::Datagrams(conn, with) => {
                    self.next = self.next.max(outer(conn).0 + 1);
                    open.conns.insert(outer(conn));
                    Action::Datagrams(outer(conn), with)
                }
                Action::Send(conn, end, bytes) => Action::Send(outer(conn), end, bytes),
                Action::SendDatagram(conn, end, bytes) => {
                    Action::SendDatagram(outer(conn), end, bytes)
                }
                Action::Close(conn, end) => Action::Close(outer(conn), end),
                Action::Abort(conn) => {
                    open.conns.remove(&outer(conn));
                    Action::Abort(outer(conn))
                }
                Action::Timer(after, token) => {
                    Action::Timer(after, self.timers.add(open.begin, token))
                }
                Action::Ask(conn) => Action::Ask(outer(conn)),
                Action::Unsent(conn, end) => Action::Unsent(outer(conn), end),
            });
        }
        self.scratch = answers;
    }

    /// Ends the open window and its unfinished work. `info` returns final statistics.
    fn cut(&mut self, at: Option<Time>, info: &dyn Fn(Conn) -> Info) -> BTreeSet<Conn> {
        let Some(mut open) = self.open.take() else {
            return BTreeSet::new();
        };
        let base = self.base;
        let inner = |conn: Conn| info(Conn(base + conn.0));
        self.delivered = added(self.delivered, open.machine.delivered(&inner));
        open.machine.finish(&inner);
        let since = open.begin.since(Time::ZERO);
        let records = open.machine.take_records().into_iter();
        self.records
            .extend(records.map(|r| until(later(r, since), at)));
        let samples = open.machine.take_samples().into_iter();
        self.samples.extend(samples.map(|s| Sample {
            at: s.at + since,
            ..s
        }));
        open.conns
    }

    /// Translates an event for the open workload; `None` if it concerns an earlier window.
    fn own(&mut self, event: Event) -> Option<Event> {
        let base = self.base;
        let inner = |conn: Conn| conn.0.checked_sub(base).map(Conn);
        Some(match event {
            Event::Start => Event::Start,
            Event::Timer(token) => {
                let (window, own) = self.timers.take(token)?;
                let open = self.open.as_ref()?;
                if open.begin != window {
                    return None;
                }
                Event::Timer(own)
            }
            Event::Connected(conn, end) => Event::Connected(inner(conn)?, end),
            Event::Received(conn, end, bytes) => Event::Received(inner(conn)?, end, bytes),
            Event::Early(conn, end, from, to) => Event::Early(inner(conn)?, end, from, to),
            Event::Unsent(conn, end, bytes) => Event::Unsent(inner(conn)?, end, bytes),
            Event::Drained(conn, end) => Event::Drained(inner(conn)?, end),
            Event::Eof(conn, end) => Event::Eof(inner(conn)?, end),
            Event::Reset(conn, end) => {
                self.forget(conn);
                Event::Reset(inner(conn)?, end)
            }
            Event::Closed(conn, info) => {
                self.forget(conn);
                Event::Closed(inner(conn)?, info)
            }
            Event::Info(conn, info) => {
                if let Some(open) = self.open.as_mut().filter(|o| o.closing) {
                    open.facts.insert(conn, info);
                    return None;
                }
                Event::Info(inner(conn)?, info)
            }
            Event::Datagram(conn, end, bytes, number) => {
                Event::Datagram(inner(conn)?, end, bytes, number)
            }
        })
    }

    fn forget(&mut self, conn: Conn) {
        if let Some(open) = &mut self.open {
            open.conns.remove(&conn);
        }
    }
}

/// The sum of what is known of two.
fn added(a: Option<[u64; 2]>, b: Option<[u64; 2]>) -> Option<[u64; 2]> {
    match (a, b) {
        (Some(a), Some(b)) => Some([a[0] + b[0], a[1] + b[1]]),
        (one, other) => one.or(other),
    }
}

/// Shifts a record of a workload whose time zero is `by` after that of the run.
fn later(record: Record, by: Dur) -> Record {
    moved(record, |t| t + by)
}

/// Converts the times of a record from the workload's own time to that of the run.
pub(crate) fn moved(record: Record, real: impl Fn(Time) -> Time) -> Record {
    match record {
        Record::Flow(f) => Record::Flow(FlowRecord {
            start: real(f.start),
            end: f.end.map(real),
            ..f
        }),
        Record::Request(r) => Record::Request(RequestRecord {
            start: real(r.start),
            connected: r.connected.map(&real),
            first_byte: r.first_byte.map(&real),
            last_byte: r.last_byte.map(&real),
            watched_until: r.watched_until.map(real),
            ..r
        }),
    }
}

/// Sets when observation of an unfinished request ended, if that was before the end of the run. A request that its
/// machine had already given up keeps the earlier instant.
fn until(record: Record, at: Option<Time>) -> Record {
    match record {
        Record::Request(r) => Record::Request(RequestRecord {
            watched_until: match r.watched_until {
                None => at.filter(|_| r.outcome == Outcome::Unfinished),
                given_up => given_up,
            },
            ..r
        }),
        flow @ Record::Flow(_) => flow,
    }
}

impl Workload for Windows {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                self.start = now;
                self.begin(now, actions);
            }
            Event::Timer(OPEN) => self.begin(now, actions),
            Event::Timer(CLOSE) => {
                let over = |end: Dur| now >= self.start + end;
                if let Some(open) = &mut self.open
                    && open.end.is_some_and(over)
                {
                    open.closing = true;
                    // The carrier answers these before a timer of zero length.
                    actions.extend(open.conns.iter().map(|&conn| Action::Ask(conn)));
                    actions.push(Action::Timer(Dur::ZERO, FINISH));
                }
            }
            Event::Timer(FINISH) => {
                let facts = (self.open.as_mut()).map(|o| std::mem::take(&mut o.facts));
                let facts = facts.unwrap_or_default();
                let left = self.cut(Some(now), &|conn| {
                    facts.get(&conn).copied().unwrap_or_default()
                });
                actions.extend(left.into_iter().map(Action::Abort));
                self.begin(now, actions);
            }
            event => {
                if let Some(own) = self.own(event) {
                    self.tell(now, own, actions);
                }
            }
        }
    }

    fn keep_records(&mut self, keep: bool) {
        self.keep = keep;
    }

    fn take_records(&mut self) -> Vec<Record> {
        let mut all = std::mem::take(&mut self.records);
        if let Some(open) = &mut self.open {
            let since = open.begin.since(Time::ZERO);
            let records = open.machine.take_records().into_iter();
            all.extend(records.map(|r| later(r, since)));
        }
        all
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    fn delivered(&self, info: &dyn Fn(Conn) -> Info) -> Option<[u64; 2]> {
        let inner = |conn: Conn| info(Conn(self.base + conn.0));
        let open = self.open.as_ref();
        let now = open.and_then(|open| open.machine.delivered(&inner));
        added(self.delivered, now)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        self.cut(None, info);
    }
}

#[cfg(test)]
mod tests {
    use swell_base::Bytes;

    use super::*;
    use crate::{Access, End, Web, WebConfig};

    fn web() -> Box<dyn Workload> {
        let access = Access::default();
        Box::new(Web::new(WebConfig {
            clients: 1,
            objects: vec![Bytes(1_000)],
            request: Bytes(100),
            server_think: Dur::ZERO,
            think: Dur::ZERO,
            keep: false,
            count: None,
            start: Dur::ZERO,
            client: access,
            server: access,
        }))
    }

    fn told(windows: &mut Windows, at: Dur, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        windows.handle(Time::ZERO + at, event, &mut actions);
        actions
    }

    fn seconds(n: u64) -> Dur {
        Dur::from_secs(n)
    }

    /// The connection that is opened, if any.
    fn opened(actions: &[Action]) -> Option<Conn> {
        actions.iter().find_map(|a| match a {
            Action::Connect(conn, _) => Some(*conn),
            _ => None,
        })
    }

    /// The token of the timer that is due after `pause`.
    fn timer(actions: &[Action], pause: Dur) -> u64 {
        let found = actions.iter().find_map(|a| match a {
            Action::Timer(after, token) if *after == pause => Some(*token),
            _ => None,
        });
        found.expect("a timer")
    }

    #[test]
    fn each_window_has_a_machine_of_its_own_and_resets_what_it_leaves() {
        let window = |from: u64, to: u64| Window {
            begin: seconds(from),
            end: Some(seconds(to)),
            machine: web(),
        };
        let mut windows = Windows::new(vec![window(1, 3), window(5, 7)]);
        let first = told(&mut windows, Dur::ZERO, Event::Start);
        assert_eq!(opened(&first), None);
        let open = timer(&first, seconds(1));
        let second = told(&mut windows, seconds(1), Event::Timer(open));
        let begin = timer(&second, Dur::ZERO);
        let close = timer(&second, seconds(2));
        let fetch = told(&mut windows, seconds(1), Event::Timer(begin));
        let conn = opened(&fetch).expect("a request");
        told(
            &mut windows,
            seconds(1),
            Event::Connected(conn, End::Client),
        );

        // At the end of the window, statistics of the connection are requested; then it is reset, and its request
        // becomes a record.
        let ask = told(&mut windows, seconds(3), Event::Timer(close));
        assert!(ask.contains(&Action::Ask(conn)), "{ask:?}");
        let finish = timer(&ask, Dur::ZERO);
        told(&mut windows, seconds(3), Event::Info(conn, Info::default()));
        let end = told(&mut windows, seconds(3), Event::Timer(finish));
        assert!(end.contains(&Action::Abort(conn)), "{end:?}");
        let records = windows.take_records();
        let [Record::Request(request)] = &records[..] else {
            panic!("{records:?}")
        };
        assert_eq!(request.start, Time::ZERO + seconds(1));
        assert_eq!(request.watched_until, Some(Time::ZERO + seconds(3)));

        // Connections of the next window have other numbers, and late events of the first window are ignored.
        let again = told(
            &mut windows,
            seconds(5),
            Event::Timer(timer(&end, seconds(2))),
        );
        let next = timer(&again, Dur::ZERO);
        let late = told(
            &mut windows,
            seconds(5),
            Event::Received(conn, End::Client, 1_000),
        );
        assert!(late.is_empty(), "{late:?}");
        let other = told(&mut windows, seconds(5), Event::Timer(next));
        assert!(opened(&other).expect("a request") > conn);
    }

    #[test]
    fn a_request_given_up_before_its_window_ends_was_watched_until_then() {
        let watched = |given_up: Option<u64>| {
            let unfinished = Record::Request(RequestRecord {
                client: 0,
                index: 0,
                start: Time::ZERO,
                connected: None,
                first_byte: None,
                last_byte: None,
                bytes: 0,
                retransmissions: 0,
                outcome: Outcome::Unfinished,
                watched_until: given_up.map(|s| Time::ZERO + seconds(s)),
            });
            // Of a window from 5 s to 9 s.
            match until(later(unfinished, seconds(5)), Some(Time::ZERO + seconds(9))) {
                Record::Request(r) => r.watched_until,
                Record::Flow(_) => None,
            }
        };
        assert_eq!(watched(None), Some(Time::ZERO + seconds(9)));
        assert_eq!(watched(Some(2)), Some(Time::ZERO + seconds(7)));
    }
}
