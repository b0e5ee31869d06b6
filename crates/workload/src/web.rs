//! A foreground: clients that fetch objects.

use swell_base::{Bytes, Dur, Time};

use crate::starts::Starts;
use crate::{
    Access, Action, Conn, End, Event, Info, Open, Outcome, Record, RequestRecord, Workload,
};

/// Configuration of the clients.
#[derive(Clone, Debug, PartialEq)]
pub struct WebConfig {
    /// Number of clients, which fetch independently.
    pub clients: u32,
    /// Response sizes, used in turn.
    pub objects: Vec<Bytes>,
    /// Request size. httperf's requests are around a hundred bytes.
    pub request: Bytes,
    /// Pause of the server before it responds.
    pub server_think: Dur,
    /// Pause of the client between a response and the next request.
    pub think: Dur,
    /// All requests of a client use one connection, instead of one connection each.
    pub keep: bool,
    /// Requests per client; `None` = until the run ends.
    pub count: Option<u32>,
    /// When the first requests are sent.
    pub start: Dur,
    /// Path of every client.
    pub client: Access,
    /// Path of the server.
    pub server: Access,
}

/// Clients that fetch objects. Each waits for one object before it requests the next.
#[derive(Debug)]
pub struct Web {
    config: WebConfig,
    clients: Vec<Client>,
    /// Client of each connection, indexed by connection number.
    owner: Vec<u32>,
    records: Vec<Record>,
    starts: Starts,
}

#[derive(Clone, Debug, Default)]
struct Client {
    index: u32,
    conn: Option<Conn>,
    current: Option<Fetch>,
    /// Server retransmissions on the current connection before this request.
    retransmitted_before: u32,
}

#[derive(Clone, Debug)]
struct Fetch {
    start: Time,
    connected: Option<Time>,
    first_byte: Option<Time>,
    last_byte: Option<Time>,
    size: u64,
    received: u64,
    requested: u64,
}

// Timer tokens: the event, and the client.
const NEXT: u64 = 0;
const ANSWER: u64 = 1 << 32;

impl Web {
    /// Clients with the given configuration.
    pub fn new(config: WebConfig) -> Web {
        let clients = vec![Client::default(); config.clients as usize];
        Web {
            config,
            clients,
            owner: Vec::new(),
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

    fn fetch(&mut self, now: Time, c: u32, actions: &mut Vec<Action>) {
        let config = &self.config;
        let client = &mut self.clients[c as usize];
        if config.count.is_some_and(|n| client.index >= n) || config.objects.is_empty() {
            if let Some(conn) = client.conn.take() {
                actions.push(Action::Close(conn, End::Client));
            }
            return;
        }
        let size = config.objects[client.index as usize % config.objects.len()].0;
        let mut fetch = Fetch {
            start: now,
            connected: None,
            first_byte: None,
            last_byte: None,
            size,
            received: 0,
            requested: 0,
        };
        let conn = match client.conn {
            Some(conn) => {
                fetch.connected = Some(now);
                conn
            }
            None => {
                let conn = Conn(self.owner.len() as u32);
                self.owner.push(c);
                client.conn = Some(conn);
                client.retransmitted_before = 0;
                let open = Open {
                    client: config.client,
                    server: config.server,
                    hosts: [c as u64 + 1, 1],
                    ..Open::default()
                };
                actions.push(Action::Connect(conn, Box::new(open)));
                conn
            }
        };
        actions.push(Action::Send(conn, End::Client, config.request.0.max(1)));
        client.current = Some(fetch);
    }

    /// The client that currently uses this connection.
    fn client(&mut self, conn: Conn) -> Option<(u32, &mut Client)> {
        let c = *self.owner.get(conn.0 as usize)?;
        let client = &mut self.clients[c as usize];
        (client.conn == Some(conn)).then_some((c, client))
    }

    fn record(&mut self, c: u32, info: Info, outcome: Outcome) {
        let client = &mut self.clients[c as usize];
        let Some(fetch) = client.current.take() else {
            return;
        };
        let retransmissions = info
            .server_retransmissions
            .saturating_sub(client.retransmitted_before);
        client.retransmitted_before = info.server_retransmissions;
        self.records.push(Record::Request(RequestRecord {
            client: c,
            index: client.index,
            start: fetch.start,
            connected: fetch.connected,
            first_byte: fetch.first_byte,
            last_byte: fetch.last_byte,
            bytes: fetch.received,
            retransmissions,
            outcome,
            watched_until: None,
        }));
        client.index += 1;
    }

    fn next(&mut self, now: Time, c: u32, actions: &mut Vec<Action>) {
        if self.config.think == Dur::ZERO {
            self.fetch(now, c, actions);
        } else {
            actions.push(Action::Timer(self.config.think, NEXT | u64::from(c)));
        }
    }
}

impl Workload for Web {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                for c in 0..self.config.clients {
                    let start = self.config.start + self.starts.of(u64::from(c));
                    actions.push(Action::Timer(start, NEXT | u64::from(c)));
                }
            }
            Event::Timer(token) if token & ANSWER != 0 => {
                let conn = Conn(token as u32);
                if let Some((_, client)) = self.client(conn)
                    && let Some(fetch) = &client.current
                {
                    actions.push(Action::Send(conn, End::Server, fetch.size));
                }
            }
            Event::Timer(token) => self.fetch(now, token as u32, actions),
            Event::Connected(conn, End::Client) => {
                if let Some((
                    _,
                    Client {
                        current: Some(fetch),
                        ..
                    },
                )) = self.client(conn)
                {
                    fetch.connected = Some(now);
                }
            }
            Event::Received(conn, End::Server, n) => {
                let (wanted, think) = (self.config.request.0.max(1), self.config.server_think);
                let Some((
                    _,
                    Client {
                        current: Some(fetch),
                        ..
                    },
                )) = self.client(conn)
                else {
                    return;
                };
                fetch.requested += n;
                if fetch.requested == wanted {
                    if think == Dur::ZERO {
                        actions.push(Action::Send(conn, End::Server, fetch.size));
                    } else {
                        actions.push(Action::Timer(think, ANSWER | u64::from(conn.0)));
                    }
                }
            }
            Event::Received(conn, End::Client, n) => {
                let Some((
                    _,
                    Client {
                        current: Some(fetch),
                        ..
                    },
                )) = self.client(conn)
                else {
                    return;
                };
                fetch.first_byte.get_or_insert(now);
                fetch.received += n;
                if fetch.received >= fetch.size {
                    fetch.last_byte = Some(now);
                    actions.push(Action::Ask(conn));
                }
            }
            Event::Info(conn, info) => {
                let keep = self.config.keep;
                let Some((c, client)) = self.client(conn) else {
                    return;
                };
                if !keep {
                    client.conn = None;
                    actions.push(Action::Close(conn, End::Client));
                }
                self.record(c, info, Outcome::Done);
                self.next(now, c, actions);
            }
            Event::Eof(conn, End::Server) => actions.push(Action::Close(conn, End::Server)),
            Event::Reset(conn, _) => {
                let Some((c, client)) = self.client(conn) else {
                    return;
                };
                client.conn = None;
                // Otherwise the client thinks, and its next request has a timer already.
                if client.current.is_none() {
                    return;
                }
                self.record(c, Info::default(), Outcome::Failed);
                // A client that is refused retries after a pause, not endlessly at one instant.
                let pause = self.config.think.max(Dur::from_secs(1));
                actions.push(Action::Timer(pause, NEXT | u64::from(c)));
            }
            _ => {}
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for c in 0..self.config.clients {
            if let Some(conn) = self.clients[c as usize].conn {
                self.record(c, info(conn), Outcome::Unfinished);
            }
        }
    }
}
