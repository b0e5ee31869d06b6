//! A foreground: browsers that load pages, which are trees of objects that refer to each other.

mod lane;

use std::collections::VecDeque;
use std::sync::Arc;

use lane::{Arrival, HELLO, Lane};
use swell_base::{Dur, Time};

use crate::starts::Starts;
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
    /// Requests do not wait for earlier responses on the same connection, as with the streams of HTTP/2 and HTTP/3.
    pub streams: bool,
    /// Responses on one connection take turns of 16 KiB, as with the parameter `incremental` of RFC 9218. Otherwise the
    /// server responds in the order of the requests.
    pub turns: bool,
    /// What connections are opened with.
    pub opening: Opening,
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

/// How connections begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// With TCP's handshake.
    Tcp,
    /// With TCP's handshake and that of TLS 1.3 (RFC 8446 section 2).
    Tls,
    /// With QUIC's handshake, which includes that of TLS (RFC 9001). The carrier reports data as it arrives
    /// ([`Event::Early`]), and has no handshake of its own.
    Quic,
}

impl Opening {
    /// Bytes of the first flights of client and server with TLS, or zeros.
    ///
    /// For TLS over TCP these are typical sizes of a ClientHello and of a flight with certificates. For QUIC the client
    /// fills a datagram of 1200 bytes (RFC 9000 section 14.1), and the server sends three times as much. This is all
    /// that it may send to an address that is not validated (section 8.1), so it is assumed that its certificates,
    /// which may be compressed (RFC 8879), fit. UDP payload other than the TLS messages, 35 bytes in each packet, is not
    /// part of these numbers, because it counts as header.
    pub fn hello(self) -> [u64; 2] {
        match self {
            Opening::Tcp => [0; 2],
            Opening::Tls => [517, 4000],
            Opening::Quic => [1200 - 35, 3 * (1200 - 35)],
        }
    }
}

/// Pause before a browser that was refused tries again, so that it does not retry endlessly at one instant.
const PAUSE: Dur = Dur::from_secs(1);

/// Browsers that load a page again and again.
#[derive(Debug)]
pub struct Page {
    config: PageConfig,
    /// The objects of the page itself, then those that each object refers to.
    children: Vec<Vec<u32>>,
    browsers: Vec<Browser>,
    lines: Vec<Line>,
    records: Vec<Record>,
    starts: Starts,
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
    /// Whether the handshake of the transport is complete.
    there: bool,
    /// Whether the client may send requests, because the TLS handshake (if any) is complete.
    open: bool,
    /// Objects whose requests wait for the handshake, in order.
    waiting: Vec<u32>,
    /// Number of objects assigned to this connection that are not complete.
    wanted: usize,
    /// Bytes from the client and from the server.
    requests: Lane,
    responses: Lane,
    /// Bytes that the server has written.
    written: u64,
    /// Objects in [turns](PageConfig::turns) that the server has written, but for which it has not yet heard how much
    /// is unsent; each with `written`, including it.
    unplaced: VecDeque<(u32, u64)>,
    /// The server's retransmissions before this page.
    before: u32,
}

// Timer tokens: the event, the browser, and the object and page number.
const BEGIN: u64 = 0;
const READY: u64 = 1 << 62;
const GIVE_UP: u64 = 1 << 61;

fn ready(browser: u32, index: u32, object: u32) -> u64 {
    READY
        | u64::from(browser & 0xf_ffff) << 40
        | u64::from(index & 0xf_ffff) << 20
        | u64::from(object)
}

/// Bytes that arrive: so many in order, or a range.
#[derive(Clone, Copy)]
enum Bytes {
    Next(u64),
    Range(u64, u64),
}

impl Bytes {
    fn reach(self, lane: &mut Lane, turns: bool) -> Arrival {
        match self {
            Bytes::Next(n) => lane.next(n, turns),
            Bytes::Range(from, to) => lane.range(from, to, turns),
        }
    }
}

impl Line {
    /// The server's retransmissions since the last time.
    fn again(&mut self, info: &Info) -> u32 {
        let new = info.server_retransmissions.saturating_sub(self.before);
        self.before = info.server_retransmissions.max(self.before);
        new
    }

    /// The client sends the request for an object.
    fn request(&mut self, config: &PageConfig, conn: Conn, object: u32, actions: &mut Vec<Action>) {
        let request = config.objects[object as usize].request.max(1);
        self.requests.write(object, request);
        actions.push(Action::Send(conn, End::Client, request));
    }
}

impl Page {
    /// Browsers with the given configuration; at most a million browsers and a million objects.
    pub fn new(config: PageConfig) -> Page {
        let mut children = vec![Vec::new(); config.objects.len() + 1];
        for (i, object) in (0..).zip(config.objects.iter()) {
            let parent = object.parent.map_or(0, |p| p as usize + 1);
            if let Some(list) = children.get_mut(parent) {
                list.push(i);
            }
        }
        Page {
            children,
            browsers: (0..config.clients).map(|_| Browser::default()).collect(),
            config,
            lines: Vec::new(),
            records: Vec::new(),
            starts: Starts::default(),
        }
    }

    /// Clients that begin at independent times, uniform within `over` of the configured start, and not all at once.
    /// Traffic of many people is like that.
    #[must_use]
    pub fn spread(mut self, over: Dur, seed: u64) -> Self {
        self.starts = Starts::spread(over, seed);
        self
    }

    fn begin(&mut self, now: Time, b: u32, actions: &mut Vec<Action>) {
        if let Some(every) = self.config.every {
            actions.push(Action::Timer(every, BEGIN | u64::from(b)));
            let browser = &self.browsers[b as usize];
            if browser.load.is_some() {
                // The carrier answers these before a timer of zero length.
                actions.extend(browser.conns.iter().copied().map(Action::Ask));
                actions.push(Action::Timer(Dur::ZERO, GIVE_UP | u64::from(b)));
                return;
            }
        }
        self.load(now, b, actions);
    }

    /// Starts to load a page.
    fn load(&mut self, now: Time, b: u32, actions: &mut Vec<Action>) {
        let objects = &self.config.objects;
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
        let children = self.children.get(parent.map_or(0, |p| p as usize + 1));
        for &i in children.into_iter().flatten() {
            match self.config.objects[i as usize].wait {
                Dur::ZERO => load.ready.push_back(i),
                wait => actions.push(Action::Timer(wait, ready(b, browser.index, i))),
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
            let idle = own().find(|conn| config.streams || lines[conn.0 as usize].wanted == 0);
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
                    let [hello, _] = config.opening.hello();
                    let mut line = Line {
                        browser: b,
                        host,
                        there: false,
                        open: hello == 0,
                        waiting: Vec::new(),
                        wanted: 0,
                        requests: Lane::default(),
                        responses: Lane::default(),
                        written: 0,
                        unplaced: VecDeque::new(),
                        before: 0,
                    };
                    browser.conns.push(conn);
                    let open = Open {
                        client: config.client,
                        server: config.server,
                        hosts: [b as u64 + 1, u64::from(host) + 1],
                        ..Open::default()
                    };
                    actions.push(Action::Connect(conn, Box::new(open)));
                    if hello > 0 {
                        line.requests.write(HELLO, hello);
                        actions.push(Action::Send(conn, End::Client, hello));
                    }
                    self.lines.push(line);
                    conn
                }
                None => {
                    waiting.push_back(object);
                    continue;
                }
            };
            let line = &mut self.lines[conn.0 as usize];
            line.wanted += 1;
            if line.open {
                line.request(config, conn, object, actions);
            } else {
                line.waiting.push(object);
            }
        }
        load.ready = waiting;
    }

    /// Bytes arrive at the server.
    fn serve(&mut self, conn: Conn, bytes: Bytes, actions: &mut Vec<Action>) {
        let Some(line) = self.lines.get_mut(conn.0 as usize) else {
            return;
        };
        let config = &self.config;
        for message in bytes.reach(&mut line.requests, false).whole {
            let size = match message {
                HELLO => config.opening.hello()[1],
                object => config.objects[object as usize].size.max(1),
            };
            line.written = line.written.saturating_add(size);
            actions.push(Action::Send(conn, End::Server, size));
            if config.turns && message != HELLO {
                line.unplaced.push_back((message, line.written));
                actions.push(Action::Unsent(conn, End::Server));
            } else {
                line.responses.write(message, size);
            }
        }
    }

    /// The server hears how much of what it has written is unsent: the next response shares that.
    fn place(&mut self, conn: Conn, unsent: u64) {
        let Some(line) = self.lines.get_mut(conn.0 as usize) else {
            return;
        };
        if let Some((object, written)) = line.unplaced.pop_front() {
            line.responses.has_sent(written.saturating_sub(unsent));
            let size = self.config.objects[object as usize].size.max(1);
            line.responses.write(object, size);
        }
    }

    /// Bytes arrive at the browser.
    fn take(&mut self, now: Time, conn: Conn, bytes: Bytes, actions: &mut Vec<Action>) {
        let Some(line) = self.lines.get_mut(conn.0 as usize) else {
            return;
        };
        let b = line.browser;
        let browser = &mut self.browsers[b as usize];
        let Some(load) = &mut browser.load else {
            return;
        };
        let config = &self.config;
        // On a network without any delay, bytes may be faster than the answer of their sender's carrier.
        for (object, _) in line.unplaced.drain(..) {
            let size = config.objects[object as usize].size.max(1);
            line.responses.write(object, size);
        }
        let mut arrival = bytes.reach(&mut line.responses, config.turns);
        if let Some(first) = arrival.whole.iter().position(|&message| message == HELLO) {
            arrival.whole.remove(first);
            line.open = true;
            if config.opening == Opening::Quic {
                line.there = true;
                load.connected.get_or_insert(now);
            }
            for object in std::mem::take(&mut line.waiting) {
                line.request(config, conn, object, actions);
            }
        }
        if arrival.bytes == 0 {
            return;
        }
        load.first_byte.get_or_insert(now);
        load.bytes += arrival.bytes;
        line.wanted -= arrival.whole.len();
        load.left -= arrival.whole.len();
        if load.left == 0 {
            load.last_byte = Some(now);
            load.asked = browser.conns.len();
            let asks = browser.conns.iter().copied().map(Action::Ask);
            return actions.extend(asks);
        }
        if !arrival.whole.is_empty() {
            for object in arrival.whole {
                self.know_of(Some(object), b, actions);
            }
            self.ask(now, b, actions);
        }
    }

    /// Transport statistics of a connection arrive, after the page is complete or before it is given up.
    fn told(&mut self, now: Time, conn: Conn, info: Info, actions: &mut Vec<Action>) {
        let Some(line) = self.lines.get_mut(conn.0 as usize) else {
            return;
        };
        let b = line.browser;
        let browser = &mut self.browsers[b as usize];
        let Some(load) = &mut browser.load else {
            return;
        };
        load.retransmissions += line.again(&info);
        if load.last_byte.is_none() {
            return;
        }
        load.asked = load.asked.saturating_sub(1);
        if load.asked > 0 {
            return;
        }
        if !self.config.keep {
            for own in browser.conns.drain(..) {
                let over = &mut self.lines[own.0 as usize];
                (over.requests, over.responses) = Default::default();
                actions.push(Action::Close(own, End::Client));
            }
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
        if token & GIVE_UP != 0 {
            self.give_up(Some(now), token as u32, Outcome::Unfinished, actions);
            return self.load(now, token as u32, actions);
        }
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
                    let start = self.config.start + self.starts.of(b);
                    actions.push(Action::Timer(start, BEGIN | b));
                }
            }
            Event::Timer(token) => self.due(now, token, actions),
            // QUIC's handshake is not the carrier's.
            Event::Connected(conn, End::Client) if self.config.opening != Opening::Quic => {
                if let Some(line) = self.lines.get_mut(conn.0 as usize) {
                    line.there = true;
                    if let Some(load) = &mut self.browsers[line.browser as usize].load {
                        load.connected.get_or_insert(now);
                    }
                }
            }
            Event::Received(conn, End::Server, n) => self.serve(conn, Bytes::Next(n), actions),
            Event::Received(conn, End::Client, n) => self.take(now, conn, Bytes::Next(n), actions),
            Event::Early(conn, End::Server, from, to) => {
                self.serve(conn, Bytes::Range(from, to), actions);
            }
            Event::Early(conn, End::Client, from, to) => {
                self.take(now, conn, Bytes::Range(from, to), actions);
            }
            Event::Unsent(conn, _, unsent) => self.place(conn, unsent),
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

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for b in 0..self.config.clients {
            let browser = &mut self.browsers[b as usize];
            if let Some(load) = &mut browser.load {
                for &conn in &browser.conns {
                    load.retransmissions += self.lines[conn.0 as usize].again(&info(conn));
                }
            }
            self.record(b, Outcome::Unfinished, None);
        }
    }
}
