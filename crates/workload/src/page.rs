//! A foreground: browsers that load pages, which are trees of objects that refer to each other.

use std::collections::VecDeque;
use std::sync::Arc;

use swell_base::{Dur, Time};

use crate::{
    Access, Action, Conn, End, Event, Info, Open, Outcome, Record, RequestRecord, Workload,
};

/// An object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Response bytes, including headers.
    pub size: u64,
    /// Request bytes.
    pub request: u64,
    /// The object that refers to this one; it comes earlier in the list. The browser discovers this object when the
    /// parent is complete. `None`: the object belongs to the page itself and is known at once.
    pub parent: Option<u32>,
    /// Time from discovery to the request, for parsing and scripts.
    pub wait: Dur,
    /// The host that serves the object. A connection is to one host.
    pub host: u32,
}

/// Configuration of the browsers.
#[derive(Clone, Debug, PartialEq)]
pub struct PageConfig {
    /// The objects of the page; parents come before the objects that they refer to.
    pub objects: Arc<Vec<Object>>,
    /// Largest number of connections to each host.
    pub connections: u32,
    /// Requests do not wait for earlier responses on the same connection, as with HTTP/2 streams. The server responds
    /// in order of the requests.
    pub streams: bool,
    /// Whether connections begin with a handshake of TLS 1.3 (RFC 8446 section 2).
    pub tls: bool,
    /// Whether connections are reused for the next page.
    pub keep: bool,
    /// Number of browsers, each with its own path.
    pub clients: u32,
    /// Time between the starts of successive pages. A page that is not complete by then is aborted. `None`: the next
    /// page starts `think` after the previous one is complete.
    pub every: Option<Dur>,
    /// Pause after a complete page.
    pub think: Dur,
    /// When the first page is requested.
    pub start: Dur,
    /// Path of every browser.
    pub client: Access,
    /// Path of the servers.
    pub server: Access,
}

/// Sizes of the ClientHello and of the server's flight with its certificates: typical values, bytes.
const HELLO: [u64; 2] = [517, 4000];
/// Pause before a browser that was refused tries again, so that it does not retry endlessly at one instant.
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

/// A page that is being loaded.
#[derive(Debug)]
struct Load {
    start: Time,
    connected: Option<Time>,
    first_byte: Option<Time>,
    last_byte: Option<Time>,
    bytes: u64,
    retransmissions: u32,
    /// Number of objects that are not complete.
    left: usize,
    /// Objects that can be requested when a connection is free.
    ready: VecDeque<u32>,
    /// Number of connections whose transport statistics are pending.
    asked: usize,
}

/// A connection.
#[derive(Debug)]
struct Line {
    browser: u32,
    host: u32,
    /// Whether the TCP handshake is complete.
    there: bool,
    /// Whether the client may send requests, because the TLS handshake (if any) is complete.
    open: bool,
    /// Objects assigned to this connection that are not complete, in order.
    wanted: VecDeque<u32>,
    /// Number of these objects whose request has reached the server.
    answered: usize,
    /// Bytes of the handshake or of the next request that the server has received.
    requested: u64,
    /// Bytes of the handshake or of the first of these objects that the client has received.
    received: u64,
    /// The server's retransmissions before this page.
    before: u32,
}

// Timer tokens: the event, the browser, and the object and page number.
const BEGIN: u64 = 0;
const READY: u64 = 1 << 62;

fn ready(browser: u32, index: u32, object: u32) -> u64 {
    READY
        | u64::from(browser & 0xf_ffff) << 40
        | u64::from(index & 0xf_ffff) << 20
        | u64::from(object)
}

impl Page {
    /// Browsers with the given configuration; at most a million browsers and a million objects.
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

    /// Discovers the objects to which `parent` refers.
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

    /// Requests every object that has a free connection.
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
                    // A reused connection is already established. A new one reports when its handshake completes.
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

    /// Bytes arrive at the server.
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

    /// Bytes arrive at the browser.
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

    /// Transport statistics of a connection arrive after the page is complete.
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

    /// Aborts an incomplete page and its connections, because its remaining data would delay the next page.
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
            // If the last byte has arrived, only transport statistics are missing, and the page counts as done.
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
