//! A foreground: browsers that load pages, trees of objects that name each other.

use std::collections::VecDeque;
use std::sync::Arc;

use swell_base::{Dur, Time};

use crate::{
    Access, Action, Conn, End, Event, Info, Open, Outcome, Record, RequestRecord, Workload,
};

/// An object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Bytes of the response, headers among them.
    pub size: u64,
    /// Bytes of the request.
    pub request: u64,
    /// The object that names it, earlier in the list; the browser knows of it when that one is whole. None: of the page
    /// itself, which is known at once.
    pub parent: Option<u32>,
    /// From there to the request: reading, running scripts.
    pub wait: Dur,
    /// Which of the page's hosts has it: connections are to one host.
    pub host: u32,
}

/// What the browsers do.
#[derive(Clone, Debug, PartialEq)]
pub struct PageConfig {
    /// The objects of the page; those that name others come first.
    pub objects: Arc<Vec<Object>>,
    /// Connections to each host at most.
    pub connections: u32,
    /// Requests do not wait for earlier answers on the same connection: streams of HTTP/2. The server answers them in their
    /// order, as browsers ask it to.
    pub streams: bool,
    /// Whether connections begin with a handshake of TLS 1.3 (RFC 8446 section 2).
    pub tls: bool,
    /// Whether connections are kept for the next page.
    pub keep: bool,
    /// Browsers, each with a path of its own.
    pub clients: u32,
    /// From the beginning of a page to that of the next. A page that is not there by then is given up. None: `think` after
    /// it is there.
    pub every: Option<Dur>,
    /// Pause after a page.
    pub think: Dur,
    /// When the first page is asked for.
    pub start: Dur,
    /// Path of every browser.
    pub client: Access,
    /// Path of the servers.
    pub server: Access,
}

/// ClientHello, and the server's flight with its certificates: usual sizes, bytes.
const HELLO: [u64; 2] = [517, 4000];
/// A browser that was refused tries again, but not in the same instant for ever.
const PAUSE: Dur = Dur::from_secs(1);

/// Browsers that load a page again and again.
#[derive(Debug)]
pub struct Page {
    config: PageConfig,
    browsers: Vec<Browser>,
    lines: Vec<Line>,
    records: Vec<Record>,
}

#[derive(Debug, Default)]
struct Browser {
    index: u32,
    load: Option<Load>,
    /// Open connections.
    conns: Vec<Conn>,
}

/// A page on its way.
#[derive(Debug)]
struct Load {
    start: Time,
    connected: Option<Time>,
    first_byte: Option<Time>,
    last_byte: Option<Time>,
    bytes: u64,
    retransmissions: u32,
    /// Objects that are not there yet.
    left: usize,
    /// Objects that could be asked for, where a connection were free.
    ready: VecDeque<u32>,
    /// Connections whose transport was asked for its facts.
    asked: usize,
}

/// A connection.
#[derive(Debug)]
struct Line {
    browser: u32,
    host: u32,
    /// Whether TCP's handshake is done.
    there: bool,
    /// Whether the client may send requests: TLS is done.
    open: bool,
    /// Objects that were asked for and are not there, in their order.
    wanted: VecDeque<u32>,
    /// Of how many of these the server has the request.
    answered: usize,
    /// What the server has of the handshake or of the next request.
    requested: u64,
    /// What the client has of the handshake or of the first of them.
    received: u64,
    /// The server's retransmissions before the page.
    before: u32,
}

// Timer tokens: what is due, for which browser, and for which object of which page.
const BEGIN: u64 = 0;
const READY: u64 = 1 << 62;

fn ready(browser: u32, index: u32, object: u32) -> u64 {
    READY
        | u64::from(browser & 0xf_ffff) << 40
        | u64::from(index & 0xf_ffff) << 20
        | u64::from(object)
}

impl Page {
    /// Browsers as configured: at most a million, and as many objects.
    pub fn new(config: PageConfig) -> Page {
        Page {
            browsers: (0..config.clients).map(|_| Browser::default()).collect(),
            config,
            lines: Vec::new(),
            records: Vec::new(),
        }
    }

    fn begin(&mut self, now: Time, b: u32, actions: &mut Vec<Action>) {
        if let Some(every) = self.config.every {
            actions.push(Action::Timer(every, BEGIN | u64::from(b)));
            self.give_up(Some(now), b, Outcome::Unfinished, actions);
        }
        let config = &self.config;
        let objects = &config.objects;
        self.browsers[b as usize].load = Some(Load {
            start: now,
            connected: None,
            first_byte: None,
            last_byte: None,
            bytes: 0,
            retransmissions: 0,
            left: objects.len(),
            ready: VecDeque::new(),
            asked: 0,
        });
        self.know_of(None, b, actions);
        self.ask(now, b, actions);
    }

    /// The objects that `parent` names are known.
    fn know_of(&mut self, parent: Option<u32>, b: u32, actions: &mut Vec<Action>) {
        let browser = &mut self.browsers[b as usize];
        let Some(load) = &mut browser.load else {
            return;
        };
        for (i, object) in self.config.objects.iter().enumerate() {
            if object.parent != parent {
                continue;
            }
            match object.wait {
                Dur::ZERO => load.ready.push_back(i as u32),
                wait => actions.push(Action::Timer(wait, ready(b, browser.index, i as u32))),
            }
        }
    }

    /// Asks for what can be asked for.
    fn ask(&mut self, now: Time, b: u32, actions: &mut Vec<Action>) {
        let config = &self.config;
        let browser = &mut self.browsers[b as usize];
        let Some(load) = &mut browser.load else {
            return;
        };
        let mut waiting = VecDeque::new();
        while let Some(object) = load.ready.pop_front() {
            let host = config.objects[object as usize].host;
            let lines = &self.lines;
            let own = || {
                let all = browser.conns.iter().copied();
                all.filter(|conn| lines[conn.0 as usize].host == host)
            };
            let idle =
                own().find(|conn| config.streams || lines[conn.0 as usize].wanted.is_empty());
            let conn = match idle {
                Some(conn) => {
                    // A kept connection is there already; another one's handshake says when it is.
                    if load.connected.is_none() && lines[conn.0 as usize].there {
                        load.connected = Some(now);
                    }
                    conn
                }
                None if own().count() < config.connections as usize => {
                    let conn = Conn(self.lines.len() as u32);
                    self.lines.push(Line {
                        browser: b,
                        host,
                        there: false,
                        open: !config.tls,
                        wanted: VecDeque::new(),
                        answered: 0,
                        requested: 0,
                        received: 0,
                        before: 0,
                    });
                    browser.conns.push(conn);
                    let open = Open {
                        client: config.client,
                        server: config.server,
                        ..Open::default()
                    };
                    actions.push(Action::Connect(conn, Box::new(open)));
                    if config.tls {
                        actions.push(Action::Send(conn, End::Client, HELLO[0]));
                    }
                    conn
                }
                None => {
                    waiting.push_back(object);
                    continue;
                }
            };
            let line = &mut self.lines[conn.0 as usize];
            line.wanted.push_back(object);
            if line.open {
                let request = config.objects[object as usize].request.max(1);
                actions.push(Action::Send(conn, End::Client, request));
            }
        }
        load.ready = waiting;
    }

    /// Bytes reached the server.
    fn serve(&mut self, conn: Conn, n: u64, actions: &mut Vec<Action>) {
        let Some(line) = self.lines.get_mut(conn.0 as usize) else {
            return;
        };
        line.requested += n;
        if !line.open {
            if line.requested >= HELLO[0] {
                line.requested -= HELLO[0];
                actions.push(Action::Send(conn, End::Server, HELLO[1]));
            }
            return;
        }
        while let Some(&object) = line.wanted.get(line.answered) {
            let object = self.config.objects[object as usize];
            if line.requested < object.request.max(1) {
                return;
            }
            line.requested -= object.request.max(1);
            line.answered += 1;
            actions.push(Action::Send(conn, End::Server, object.size.max(1)));
        }
    }

    /// Bytes reached the browser.
    fn take(&mut self, now: Time, conn: Conn, n: u64, actions: &mut Vec<Action>) {
        let Some(line) = self.lines.get_mut(conn.0 as usize) else {
            return;
        };
        let b = line.browser;
        let browser = &mut self.browsers[b as usize];
        let Some(load) = &mut browser.load else {
            return;
        };
        line.received += n;
        if !line.open {
            if line.received < HELLO[1] {
                return;
            }
            line.received -= HELLO[1];
            line.open = true;
            for &object in &line.wanted {
                let request = self.config.objects[object as usize].request.max(1);
                actions.push(Action::Send(conn, End::Client, request));
            }
            return;
        }
        load.first_byte.get_or_insert(now);
        load.bytes += n;
        let mut whole = Vec::new();
        while let Some(&object) = line.wanted.front() {
            let size = self.config.objects[object as usize].size.max(1);
            if line.received < size {
                break;
            }
            line.received -= size;
            line.wanted.pop_front();
            line.answered -= 1;
            load.left -= 1;
            whole.push(object);
        }
        if load.left == 0 {
            load.last_byte = Some(now);
            load.asked = browser.conns.len();
            let asks = browser.conns.iter().copied().map(Action::Ask);
            return actions.extend(asks);
        }
        if !whole.is_empty() {
            for object in whole {
                self.know_of(Some(object), b, actions);
            }
            self.ask(now, b, actions);
        }
    }

    /// The transport says what happened on a connection of a page that is there.
    fn told(&mut self, now: Time, conn: Conn, info: Info, actions: &mut Vec<Action>) {
        let Some(line) = self.lines.get_mut(conn.0 as usize) else {
            return;
        };
        let b = line.browser;
        let browser = &mut self.browsers[b as usize];
        let Some(load) = &mut browser.load else {
            return;
        };
        load.retransmissions += info.server_retransmissions.saturating_sub(line.before);
        line.before = info.server_retransmissions;
        load.asked = load.asked.saturating_sub(1);
        if load.asked > 0 {
            return;
        }
        if !self.config.keep {
            let closed = browser.conns.drain(..);
            actions.extend(closed.map(|own| Action::Close(own, End::Client)));
        }
        self.record(b, Outcome::Done, None);
        if self.config.every.is_none() {
            match self.config.think {
                Dur::ZERO => self.begin(now, b, actions),
                think => actions.push(Action::Timer(think, BEGIN | u64::from(b))),
            }
        }
    }

    /// A page that is not there comes no more: what is on its way is in the way of the next.
    fn give_up(
        &mut self,
        until: Option<Time>,
        b: u32,
        outcome: Outcome,
        actions: &mut Vec<Action>,
    ) {
        let browser = &mut self.browsers[b as usize];
        if browser.load.is_some() {
            let conns = browser.conns.drain(..);
            actions.extend(conns.map(Action::Abort));
            self.record(b, outcome, until);
        }
    }

    fn record(&mut self, b: u32, outcome: Outcome, watched_until: Option<Time>) {
        let browser = &mut self.browsers[b as usize];
        let Some(load) = browser.load.take() else {
            return;
        };
        self.records.push(Record::Request(RequestRecord {
            client: b,
            index: browser.index,
            start: load.start,
            connected: load.connected,
            first_byte: load.first_byte,
            last_byte: load.last_byte,
            bytes: load.bytes,
            retransmissions: load.retransmissions,
            // Its last byte came; only the transport's facts are missing.
            outcome: match load.last_byte {
                Some(_) => Outcome::Done,
                None => outcome,
            },
            watched_until,
        }));
        browser.index += 1;
    }

    fn due(&mut self, now: Time, token: u64, actions: &mut Vec<Action>) {
        if token & READY == 0 {
            return self.begin(now, token as u32, actions);
        }
        let part = |shift: u32| (token >> shift) as u32 & 0xf_ffff;
        let b = part(40);
        let browser = &mut self.browsers[b as usize];
        if browser.index & 0xf_ffff == part(20)
            && let Some(load) = &mut browser.load
        {
            load.ready.push_back(part(0));
            self.ask(now, b, actions);
        }
    }
}

impl Workload for Page {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                for b in 0..u64::from(self.config.clients) {
                    actions.push(Action::Timer(self.config.start, BEGIN | b));
                }
            }
            Event::Timer(token) => self.due(now, token, actions),
            Event::Connected(conn, End::Client) => {
                if let Some(line) = self.lines.get_mut(conn.0 as usize) {
                    line.there = true;
                    if let Some(load) = &mut self.browsers[line.browser as usize].load {
                        load.connected.get_or_insert(now);
                    }
                }
            }
            Event::Received(conn, End::Server, n) => self.serve(conn, n, actions),
            Event::Received(conn, End::Client, n) => self.take(now, conn, n, actions),
            Event::Info(conn, info) => self.told(now, conn, info, actions),
            Event::Eof(conn, End::Server) => actions.push(Action::Close(conn, End::Server)),
            Event::Reset(conn, _) => {
                let Some(line) = self.lines.get(conn.0 as usize) else {
                    return;
                };
                let b = line.browser;
                let browser = &mut self.browsers[b as usize];
                let before = browser.conns.len();
                browser.conns.retain(|own| *own != conn);
                if browser.conns.len() < before && browser.load.is_some() {
                    self.give_up(None, b, Outcome::Failed, actions);
                    if self.config.every.is_none() {
                        let pause = self.config.think.max(PAUSE);
                        actions.push(Action::Timer(pause, BEGIN | u64::from(b)));
                    }
                }
            }
            _ => {}
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {
        for b in 0..self.config.clients {
            self.record(b, Outcome::Unfinished, None);
        }
    }
}
