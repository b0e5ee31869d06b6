//! A background: the users, sessions and exchanges of a learnt traffic model.

mod lasting;
mod periods;
mod script;

use std::collections::BTreeMap;
use std::sync::Arc;

use swell_base::{Dur, Paged, Rate, Side, Time};
use swell_traffic::{Exchange, Lasting, Model, Path, Rest, Schedule, Session, Start};

use self::periods::{Periods, Waiting, next_turn};
use self::script::{ExchangeIndex, Script, Source, Step};
use crate::{Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Workload};

/// Generates the traffic of a model in a closed loop. The next group of a session starts when the current group has
/// progressed as far as it had in the trace. Its connections may continue alongside the next group. A request waits
/// for the preceding response, and a response for its request. Only the starts of sessions, the starts of connections
/// within a group and the packets of datagram flows follow the model's own times.
#[derive(Debug)]
pub struct Structural {
    model: Arc<Model>,
    starts: Vec<Start>,
    next_start: usize,
    /// By session of the model, for lasting ones: when the next copy of it begins.
    lasting: Vec<Option<Lasting>>,
    /// Lasting sessions, by session and copy.
    lasts: BTreeMap<(u32, u32), Chain>,
    /// Sessions in progress at the beginning, and the remaining pause of each.
    entered: Vec<(Visit, Dur)>,
    /// Sessions in progress.
    visits: Paged<Visit>,
    /// Number of sessions that have begun.
    begun: u32,
    /// Connections in progress.
    flows: Paged<Box<Live>>,
    /// Number of connections opened.
    opened: u32,
    /// Records of finished connections, if records are kept.
    records: Vec<Record>,
    keeps_records: bool,
}

/// Copies of a lasting session, one after the other.
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// Number of visits in progress, or due. A session that is entered may be several.
    playing: u32,
    /// The next copy does not begin before.
    next: Time,
}

/// A session in progress.
#[derive(Debug)]
struct Visit {
    session: u32,
    /// Number of this copy of the session in the run.
    copy: u32,
    /// Its group, or the one that follows `rest`.
    group: u32,
    /// The rest of a group, if the session was entered in its middle. It takes the place of a group.
    rest: Option<Arc<[Rest]>>,
    /// The next connection of the group to open.
    next: u32,
    /// Number of open connections of the group for which the next group still waits.
    open: u32,
    /// Number of connections of all its groups that are not over.
    unfinished: u32,
    /// Whether no further group follows, and only connections go on.
    ending: bool,
    /// Its connections that wait for each other.
    periods: Periods,
}

impl Visit {
    /// The next connection of the group to open: its position, the time since the one before, and its rest if it is one
    /// of the rest of a group.
    fn upcoming(&self, of: &Session) -> Option<(ExchangeIndex, Dur, Option<&Rest>)> {
        let place = |group, connection| ExchangeIndex {
            session: self.session,
            group,
            connection,
        };
        if let Some(rest) = &self.rest {
            let rest = rest.get(self.next as usize)?;
            let at = place(rest.group, rest.connection);
            return Some((at, rest.gap, Some(rest)));
        }
        let group = of.groups.get(self.group as usize)?;
        let gap = group.connections.get(self.next as usize)?.gap;
        Some((place(self.group, self.next), gap, None))
    }

    /// Whether all connections of the group have been opened.
    fn opened_all(&self, of: &Session) -> bool {
        let group = of.groups.get(self.group as usize);
        let count = match &self.rest {
            Some(rest) => rest.len(),
            None => group.map_or(0, |g| g.connections.len()),
        };
        count == self.next as usize
    }
}

/// A connection in progress.
#[derive(Debug)]
struct Live {
    visit: u32,
    class: u32,
    start: Time,
    received: [u64; 2],
    finished: bool,
    /// The session's next group no longer waits for this connection.
    passed: bool,
    /// Whether other connections of the session wait for it, as far as it has waits at all.
    busy: bool,
    script: Script,
}

// Timer tokens: kind in the top byte, the script's own token in the next byte, index below.
const SESSION: u64 = 0;
const GROUP: u64 = 1 << 56;
const OPEN: u64 = 2 << 56;
const SCRIPT: u64 = 3 << 56;
const HELD: u64 = 4 << 56;
const KIND: u64 = 0xff << 56;

impl Structural {
    /// Follows `schedule` of `model`. Knobs must already have been applied to the model (`Model::varied`).
    pub fn new(model: Arc<Model>, schedule: &Schedule) -> Structural {
        let entered = schedule.entered.iter().map(|e| {
            let visit = Visit {
                session: e.session,
                copy: e.copy,
                group: e.group,
                rest: e.rest.clone(),
                next: 0,
                open: 0,
                unfinished: 0,
                ending: false,
                periods: Periods::default(),
            };
            (visit, e.pause)
        });
        let entered = entered.collect();
        let lasting = |s: &Start| schedule.lasting.get(s.session as usize).copied().flatten();
        let (stay, starts): (Vec<Start>, Vec<Start>) =
            (schedule.starts.iter()).partition(|s| lasting(s).is_some());
        let chain = |s: &Start| {
            let (playing, next) = (0, s.at);
            ((s.session, s.copy), Chain { playing, next })
        };
        let lasts = stay.iter().map(chain).collect();
        Structural {
            model,
            starts,
            next_start: 0,
            lasting: schedule.lasting.clone(),
            lasts,
            entered,
            visits: Paged::default(),
            begun: 0,
            flows: Paged::default(),
            opened: 0,
            records: Vec::new(),
            keeps_records: true,
        }
    }

    /// Sets the timer for the next session to start.
    fn await_session(&mut self, now: Time, actions: &mut Vec<Action>) {
        if let Some(start) = self.starts.get(self.next_start) {
            actions.push(Action::Timer(start.at.since(now), SESSION));
        }
    }

    /// Continues the sessions in progress.
    fn enter(&mut self, actions: &mut Vec<Action>) {
        for (visit, pause) in std::mem::take(&mut self.entered) {
            let v = self.begun;
            self.begun += 1;
            if let Some(chain) = self.lasts.get_mut(&(visit.session, visit.copy)) {
                chain.playing += 1;
            }
            self.visits.insert(v, visit);
            actions.push(Action::Timer(pause, GROUP | u64::from(v)));
        }
    }

    fn begin_session(&mut self, now: Time, actions: &mut Vec<Action>) {
        let Some(&Start { session, copy, .. }) = self.starts.get(self.next_start) else {
            return;
        };
        self.next_start += 1;
        self.await_session(now, actions);
        self.visit(session, copy, Dur::ZERO, actions);
    }

    /// A session begins after this pause.
    fn visit(&mut self, session: u32, copy: u32, pause: Dur, actions: &mut Vec<Action>) {
        let v = self.begun;
        self.begun += 1;
        let visit = Visit {
            session,
            copy,
            group: 0,
            rest: None,
            next: 0,
            open: 0,
            unfinished: 0,
            ending: false,
            periods: Periods::default(),
        };
        self.visits.insert(v, visit);
        let first = self
            .session(session)
            .groups
            .first()
            .map_or(Dur::ZERO, |g| g.think);
        actions.push(Action::Timer(pause + first, GROUP | u64::from(v)));
    }

    fn session(&self, session: u32) -> &Session {
        &self.model.sessions[session as usize]
    }

    fn timer(&mut self, token: u64, now: Time, actions: &mut Vec<Action>) {
        let index = token as u32;
        match token & KIND {
            SESSION => self.begin_session(now, actions),
            GROUP => self.await_connection(index, now, actions),
            OPEN => self.open(index, now, actions),
            HELD => self.give_up(index, now, actions),
            _ => {
                let what = (token >> 48) as u8;
                let waits = self
                    .flows
                    .get(index)
                    .map(|live| live.script.opening().is_some());
                if what == script::NEXT_TURN && waits == Some(true) {
                    self.busy(Conn(index), true);
                }
                self.play(Conn(index), now, actions, |script, steps| {
                    script.timer(what, steps)
                });
            }
        }
    }

    /// Sets the timer for the group's next connection, if one is left.
    fn await_connection(&mut self, v: u32, now: Time, actions: &mut Vec<Action>) {
        let Some(visit) = self.visits.get(v) else {
            return;
        };
        match visit.upcoming(self.session(visit.session)) {
            Some((place, gap, rest)) => {
                let part = place.part(&self.model, rest.and_then(|r| r.cut.as_deref()));
                // The first connection of a group waits for the group before.
                match part.opening().filter(|_| visit.next > 0) {
                    Some(wait) if wait.page > 0 => {
                        let who = (Waiting::Opening, now);
                        if let Some(due) = self.wait(v, wait, gap, who, actions) {
                            actions.push(Action::Timer(due, OPEN | u64::from(v)));
                        }
                        self.release(v, now, actions);
                    }
                    _ => actions.push(Action::Timer(gap, OPEN | u64::from(v))),
                }
            }
            None if visit.open == 0 => self.end_group(v, now, actions),
            None => {}
        }
    }

    fn end_group(&mut self, v: u32, now: Time, actions: &mut Vec<Action>) {
        let Some(visit) = self.visits.get_mut(v) else {
            return;
        };
        if visit.rest.take().is_none() {
            visit.group += 1;
        }
        visit.next = 0;
        let (session, group) = (visit.session, visit.group);
        match self
            .session(session)
            .groups
            .get(group as usize)
            .map(|g| g.think)
        {
            Some(think) => actions.push(Action::Timer(think, GROUP | u64::from(v))),
            None => {
                let lasting = self.lasting.get(session as usize).copied().flatten();
                if let Some(ending) = self.visits.get_mut(v)
                    && ending.unfinished > 0
                    && (lasting.is_some() || ending.periods.needed())
                {
                    ending.ending = true;
                    return;
                }
                self.end_visit(v, session, now, actions);
            }
        }
    }

    fn open(&mut self, v: u32, now: Time, actions: &mut Vec<Action>) {
        let Some(visit) = self.visits.get_mut(v) else {
            return;
        };
        let copy = visit.copy;
        let model = Arc::clone(&self.model);
        let session = &model.sessions[visit.session as usize];
        let Some((place, _, rest)) = visit.upcoming(session) else {
            return;
        };
        let cut = rest.and_then(|r| r.cut.clone());
        let under_way = rest.and_then(|r| r.windows);
        visit.next += 1;
        visit.open += 1;
        visit.unfinished += 1;
        let source = Source::new(Arc::clone(&model), place, cut);
        let connection = place.connection(&model);
        let conn = Conn(self.opened);
        self.opened += 1;
        let client = model.client_paths.get(session.client as usize);
        let server = model.server_paths.get(connection.server as usize);
        let rtt = [client, server].map(|path| path.map_or(Dur::ZERO, |p| p.rtt));
        let up = [client, server].map(|path| positive(path?.up));
        let live = Box::new(Live {
            visit: v,
            class: session.class,
            start: now,
            received: [0; 2],
            finished: false,
            passed: false,
            busy: false,
            script: Script::new(source, rtt, up),
        });
        let opening = live.script.opening();
        self.flows.insert(conn.0, live);
        if let Some(wait) = opening {
            self.begin_period(v, wait.page, now);
            self.busy(conn, true);
        }
        let host =
            |side: u64, index: u32| (u64::from(copy) + 1) << 33 | side << 32 | u64::from(index);
        let open = Box::new(Open {
            client_side: Side::of(session.outside),
            // Connections to the same host of the model share an access path, in each copy of a session.
            client: access(client, host(0, session.client)),
            server: access(server, host(1, connection.server)),
            hosts: [host(0, session.client), host(1, connection.server)],
            class: session.class,
            client_window: connection.client_window,
            server_window: connection.server_window,
            wire: connection.wire,
            under_way,
            silent: false,
        });
        match connection.exchange {
            Exchange::Sequential(_) | Exchange::Concurrent { .. } => {
                actions.push(Action::Connect(conn, open));
            }
            Exchange::Attempt { .. } | Exchange::Datagrams(_) => {
                actions.push(Action::Datagrams(conn, open));
            }
        }
        // This comes first, because the start alone may satisfy the condition of the next group.
        self.await_connection(v, now, actions);
        if matches!(
            connection.exchange,
            Exchange::Attempt { .. } | Exchange::Datagrams(_)
        ) {
            self.play(conn, now, actions, Script::begin);
        }
    }

    /// Lets the script of `conn` react to an event and carries out its steps.
    fn play(
        &mut self,
        conn: Conn,
        now: Time,
        actions: &mut Vec<Action>,
        react: impl FnOnce(&mut Script, &mut Vec<Step>),
    ) {
        let Some(live) = self.flows.get_mut(conn.0) else {
            return;
        };
        let mut steps = Vec::new();
        live.script.set_time(now);
        react(&mut live.script, &mut steps);
        let mut waits = false;
        for step in steps {
            match step {
                Step::Send(end, n) => actions.push(Action::Send(conn, end, n)),
                Step::Datagram(end, n) => actions.push(Action::SendDatagram(conn, end, n)),
                Step::Unsent(end) => actions.push(Action::Unsent(conn, end)),
                Step::Wait(pause, what) => {
                    let token = SCRIPT | u64::from(what) << 48 | u64::from(conn.0);
                    actions.push(Action::Timer(pause, token));
                }
                Step::Await(wait, recorded) => {
                    let visit = self.flows.get(conn.0).map(|own| own.visit);
                    let who = (Waiting::Turn(conn), now);
                    let due = visit.and_then(|v| self.wait(v, wait, recorded, who, actions));
                    match due {
                        Some(due) => actions.push(next_turn(conn, due)),
                        None => self.busy(conn, false),
                    }
                    waits = true;
                }
                Step::Finished => self.finished(conn, now, actions),
            }
        }
        if let Some(own) = self.flows.get(conn.0) {
            let (v, rests) = (own.visit, own.script.resting());
            if own.busy && rests {
                self.busy(conn, false);
                waits = true;
            }
            if waits {
                self.release(v, now, actions);
            }
        }
        let under_way = self.flows.get(conn.0);
        if under_way.is_some_and(|l| l.script.passed()) {
            self.pass(conn, now, actions);
        }
    }

    /// The session's next group no longer waits for `conn`.
    fn pass(&mut self, conn: Conn, now: Time, actions: &mut Vec<Action>) {
        let Some(live) = self.flows.get_mut(conn.0) else {
            return;
        };
        if std::mem::replace(&mut live.passed, true) {
            return;
        }
        let v = live.visit;
        let Some(visit) = self.visits.get_mut(v) else {
            return;
        };
        visit.open -= 1;
        let opened = visit.opened_all(&self.model.sessions[visit.session as usize]);
        if visit.open == 0 && opened {
            self.end_group(v, now, actions);
        }
    }

    /// The exchange on `conn` is over.
    fn finished(&mut self, conn: Conn, now: Time, actions: &mut Vec<Action>) {
        let Some(live) = self.flows.get_mut(conn.0) else {
            return;
        };
        if std::mem::replace(&mut live.finished, true) {
            return;
        }
        let v = live.visit;
        let is_tcp = live.script.is_tcp();
        self.busy(conn, false);
        if is_tcp {
            actions.push(Action::Ask(conn));
            actions.push(Action::Close(conn, End::Client));
            self.pass(conn, now, actions);
        } else {
            self.record(conn, Some(now), Info::default());
            actions.push(Action::Abort(conn));
            self.pass(conn, now, actions);
            self.flows.remove(conn.0);
        }
        self.release(v, now, actions);
        self.over(v, now, actions);
    }

    fn record(&mut self, conn: Conn, end: Option<Time>, info: Info) {
        let Some(live) = self.flows.get(conn.0).filter(|_| self.keeps_records) else {
            return;
        };
        self.records.push(Record::Flow(FlowRecord {
            class: live.class,
            start: live.start,
            end,
            up: live.received[1],
            down: live.received[0],
            min_rtt: info.min_rtt,
            retransmissions: info.client_retransmissions + info.server_retransmissions,
        }));
    }
}

impl Workload for Structural {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                self.enter(actions);
                self.stay(now, actions);
                self.await_session(now, actions);
            }
            Event::Timer(token) => self.timer(token, now, actions),
            Event::Connected(conn, End::Client) => self.play(conn, now, actions, Script::begin),
            Event::Received(conn, end, n) => {
                if let Some(live) = self.flows.get_mut(conn.0) {
                    live.received[end] += n;
                    self.play(conn, now, actions, |s, steps| s.received(end, n, steps));
                }
            }
            Event::Datagram(conn, end, n, _) => {
                if let Some(live) = self.flows.get_mut(conn.0) {
                    live.received[end] += u64::from(n);
                    self.play(conn, now, actions, |s, steps| s.datagram(end, steps));
                }
            }
            Event::Drained(conn, end) => {
                self.play(conn, now, actions, |s, steps| s.drained(end, steps));
            }
            Event::Unsent(conn, end, unsent) => {
                self.play(conn, now, actions, |s, steps| s.unsent(end, unsent, steps));
            }
            Event::Info(conn, info) => self.record(conn, Some(now), info),
            Event::Eof(conn, End::Server) => actions.push(Action::Close(conn, End::Server)),
            Event::Eof(conn, End::Client) => actions.push(Action::Close(conn, End::Client)),
            Event::Reset(conn, _) => {
                let Some(live) = self.flows.get_mut(conn.0) else {
                    return;
                };
                let (v, first) = (live.visit, !std::mem::replace(&mut live.finished, true));
                if first {
                    self.record(conn, Some(now), Info::default());
                }
                self.busy(conn, false);
                self.leave(v, conn);
                self.pass(conn, now, actions);
                self.flows.remove(conn.0);
                self.release(v, now, actions);
                if first {
                    self.over(v, now, actions);
                }
            }
            Event::Closed(conn, _) => {
                self.busy(conn, false);
                let visit = self.flows.get(conn.0).map(|live| live.visit);
                if let Some(v) = visit {
                    self.leave(v, conn);
                    self.release(v, now, actions);
                }
                self.flows.remove(conn.0);
            }
            Event::Connected(_, End::Server) | Event::Early(..) => {}
        }
    }

    fn keep_records(&mut self, keep: bool) {
        self.keeps_records = keep;
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        let unfinished = self.flows.iter().filter(|(_, live)| !live.finished);
        let unfinished: Vec<Conn> = unfinished.map(|(i, _)| Conn(i)).collect();
        for conn in unfinished {
            self.record(conn, None, info(conn));
        }
    }
}

fn positive(rate: Option<Rate>) -> Option<Rate> {
    rate.filter(|r| r.bps() > 0)
}

fn access(path: Option<&Path>, key: u64) -> Access {
    let Some(path) = path else {
        return Access::default();
    };
    Access {
        delay: path.rtt / 2,
        up: positive(path.up),
        down: positive(path.down),
        loss_up: path.loss_up,
        loss_down: path.loss_down,
        key,
    }
}
