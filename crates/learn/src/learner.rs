//! The one pass over the packets.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use swell_base::{Dur, Warning};
use swell_capture::{Packet, Tcp as Header, Transport};
use swell_traffic::{
    Class, Connection, Exchange, Model, Parameters, Provenance, Session, Thinner, Totals,
};

use crate::chunks::correct;
use crate::doubts::{Counts, doubts};
use crate::hosts::{Hosts, Sample, bits, group};
use crate::load::Bins;
use crate::paths::Paths;
use crate::ports::{CLASSES, class, server_first};
use crate::tcp::Tracked;
use crate::udp::Flow as UdpFlow;
use crate::users::{Place, Users};

/// What may be chosen about learning.
#[derive(Clone, Debug)]
pub struct Options {
    /// Short name of the model.
    pub name: String,
    /// Where the packets come from. `made_by` is filled in if empty.
    pub provenance: Provenance,
    /// Time-outs of the session structure.
    pub parameters: Parameters,
    /// Silence that ends a UDP flow. 60 s.
    pub udp_idle: Dur,
    /// Silence that ends a TCP connection. 15 min.
    pub tcp_idle: Dur,
    /// Which quantile of the spacing of packet pairs gives the capacity. Swing's text allows for the
    /// 0.25 and the 0.75; 0.25 recovers the capacity of simulated links, see `tests/truth.rs`.
    pub pair_quantile: f64,
    /// Most items (turns, chunks, datagrams, connections) kept in the model; sessions are thinned
    /// beyond it. 40 000 keep the file under about 1 MB.
    pub budget: usize,
    /// Packets held back at the beginning, to find out which side of the tap hosts are on before
    /// the first byte is counted.
    pub preview: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            name: String::new(),
            provenance: Provenance::default(),
            parameters: Parameters {
                group_timeout: Dur::from_secs(30),
                session_timeout: Dur::from_secs(300),
                quiet: Dur::from_millis(500),
            },
            udp_idle: Dur::from_secs(60),
            tcp_idle: Dur::from_secs(900),
            pair_quantile: 0.25,
            budget: 40_000,
            preview: 50_000,
        }
    }
}

/// After its end a TCP connection waits this long for stragglers before it is written down …
const LINGER: u64 = 2_000_000_000;
/// … and its ports are remembered this long, so that what still comes is not taken for a new one.
const TOMBSTONE: u64 = 60_000_000_000;

/// Both ends of a flow, the smaller first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    a: u128,
    b: u128,
    ports: u32,
    udp: bool,
}

#[derive(Debug)]
enum State {
    Tcp(Box<Tracked>),
    Udp(Box<UdpFlow>),
    /// Ended; with the client's initial sequence number.
    Closed(Option<u32>),
    Free,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    state: State,
    last: u64,
    /// A TCP connection that has ended.
    closed: bool,
    /// The client is `key.a`.
    client_is_a: bool,
    /// Packets from `key.a` go left to right.
    a_is_left: bool,
    hosts: [u32; 2],
    place: Option<Place>,
}

/// Learns a model from packets, one pass.
#[derive(Debug)]
pub struct Learner {
    options: Options,
    preview: Vec<Packet>,
    previewing: bool,
    first: Option<i64>,
    now: u64,
    /// Slots by key; the keys themselves are in the slots, where they are needed anyway.
    index: HashTable<u32>,
    hasher: FixedState,
    slots: Vec<Slot>,
    free: Vec<u32>,
    cursor: usize,
    turn: u8,
    hosts: Hosts,
    users: Users,
    thinner: Thinner,
    bins: Bins,
    totals: Totals,
    counts: Counts,
    doubts: Vec<Warning>,
}

impl Learner {
    /// A learner that has seen nothing.
    pub fn new(options: Options) -> Learner {
        let p = options.parameters;
        Learner {
            preview: Vec::new(),
            previewing: options.preview > 0,
            first: None,
            now: 0,
            index: HashTable::new(),
            hasher: FixedState::with_seed(0),
            slots: Vec::new(),
            free: Vec::new(),
            cursor: 0,
            turn: 0,
            hosts: Hosts::new(),
            users: Users::new(p.group_timeout, p.session_timeout),
            thinner: Thinner::new(options.budget, 0),
            bins: Bins::new(),
            totals: Totals::default(),
            counts: Counts::default(),
            doubts: Vec::new(),
            options,
        }
    }

    /// Takes the next packet of the capture.
    #[inline]
    pub fn push(&mut self, packet: &Packet) {
        if !self.previewing {
            return self.process(packet);
        }
        self.look(packet);
        self.preview.push(*packet);
        if self.preview.len() >= self.options.preview {
            self.end_preview();
        }
    }

    /// Adds a doubt that the learner cannot know of: packets that the reader skipped.
    pub fn doubt(&mut self, warning: Warning) {
        self.doubts.push(warning);
    }

    /// Connections and flows held open at the moment: what memory grows with.
    pub fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Learns sides from a packet.
    fn look(&mut self, p: &Packet) {
        let syn = match &p.transport {
            Transport::Tcp(h) => h.has(Header::SYN) && !h.has(Header::ACK),
            Transport::Udp { .. } => false,
            _ => return,
        };
        if group(p.dst) || group(p.src) || p.src == p.dst {
            return;
        }
        let (a, b) = (self.hosts.id(p.src), self.hosts.id(p.dst));
        self.hosts.across(a, b);
        if syn {
            self.hosts.opened(a);
        }
    }

    fn end_preview(&mut self) {
        self.hosts.decide();
        // Flows count their conflicts themselves.
        self.hosts.conflicts = 0;
        self.previewing = false;
        for p in std::mem::take(&mut self.preview) {
            self.process(&p);
        }
    }

    #[inline]
    fn process(&mut self, p: &Packet) {
        let first = *self.first.get_or_insert(p.time);
        let at = u64::try_from(p.time.saturating_sub(first)).unwrap_or(0);
        if at < self.now {
            self.counts.backward += 1;
            self.counts.backward_most = self.counts.backward_most.max(self.now - at);
        }
        self.now = self.now.max(at);
        let left = match &p.transport {
            Transport::Tcp(h) => self.tcp(p, h),
            &Transport::Udp {
                src_port,
                dst_port,
                payload,
            } => self.udp(p, src_port, dst_port, payload),
            other => self.unmodelled(p, other),
        };
        let direction = usize::from(!left);
        self.totals.packets[direction] += 1;
        self.totals.bytes[direction] += u64::from(p.ip_len);
        self.bins.add(self.now, direction, p.ip_len);
        // A quarter of the packets look after what has fallen silent: enough, for nothing depends on
        // when exactly it is noticed.
        self.turn = self.turn.wrapping_add(1);
        if self.turn.is_multiple_of(4) {
            self.sweep();
            let thinner = &mut self.thinner;
            self.users.tick(self.now, &mut |s| thinner.push(s));
        }
    }

    fn unmodelled(&mut self, p: &Packet, transport: &Transport) -> bool {
        self.totals.unmodelled_packets += 1;
        self.totals.unmodelled_bytes += u64::from(p.ip_len);
        match transport {
            Transport::Icmp => self.counts.icmp += 1,
            Transport::Fragment => self.counts.fragments += 1,
            Transport::Truncated(_) => self.counts.truncated += 1,
            _ => self.counts.other += 1,
        }
        if let Some(host) = self.hosts.known(p.src) {
            self.hosts.inside(host, true)
        } else if let Some(host) = self.hosts.known(p.dst) {
            !self.hosts.inside(host, false)
        } else {
            true
        }
    }

    /// Returns whether the packet goes left to right.
    #[inline]
    fn tcp(&mut self, p: &Packet, h: &Header) -> bool {
        let (key, from_a) = key(p, h.src_port, h.dst_port, false);
        let mut slot = self.find(&key);
        let syn = h.has(Header::SYN) && !h.has(Header::ACK);
        if let Some(i) = slot {
            let s = &self.slots[i as usize];
            let other_numbers = |isn: Option<u32>| syn && isn != Some(h.seq);
            let reused = match &s.state {
                State::Tcp(t) => {
                    other_numbers(t.client_isn())
                        // A SYN from the other end of a live connection is no reuse.
                        && (t.closed() || s.client_is_a == from_a)
                }
                State::Closed(isn) => other_numbers(*isn),
                _ => false,
            };
            if reused {
                self.close(i);
                self.release(i);
                slot = None;
            }
        }
        let i = match slot {
            Some(i) => i,
            None => self.open_tcp(p, h, key, from_a),
        };
        let s = &mut self.slots[i as usize];
        let left = from_a == s.a_is_left;
        let State::Tcp(t) = &mut s.state else {
            self.counts.stragglers += 1;
            return left;
        };
        s.last = self.now;
        let from = usize::from(from_a != s.client_is_a);
        let quiet = self.options.parameters.quiet.as_nanos();
        let news = t.packet(from, self.now, p.ip_len, h, quiet);
        s.closed = t.closed();
        let (hosts, place) = (s.hosts, s.place);
        if news.data
            && let Some(place) = place
        {
            self.users.active(place, self.now);
        }
        if let Some((end, handshake, rtt)) = news.rtt {
            let kind = if handshake {
                Sample::Handshake
            } else {
                Sample::Data
            };
            self.hosts.sample(hosts[end], kind, rtt / 1000);
        }
        if let Some(rate) = news.up {
            self.hosts.sample(hosts[from], Sample::Up, rate);
        }
        if let Some(rate) = news.down {
            self.hosts.sample(hosts[from], Sample::Down, rate);
        }
        left
    }

    #[inline]
    fn find(&self, key: &Key) -> Option<u32> {
        let slots = &self.slots;
        self.index
            .find(self.hasher.hash_one(key), |&i| {
                slots[i as usize].key == *key
            })
            .copied()
    }

    fn open_tcp(&mut self, p: &Packet, h: &Header, key: Key, from_a: bool) -> u32 {
        let client_sent = match (h.has(Header::SYN), h.has(Header::ACK)) {
            (true, false) => true,
            (true, true) => false,
            _ => match server_first(false, h.src_port, h.dst_port) {
                Some(source_is_server) => !source_is_server,
                None => true,
            },
        };
        let i = self.open_slot(p, key, from_a, client_sent);
        let (client_port, server_port) = if client_sent {
            (h.src_port, h.dst_port)
        } else {
            (h.dst_port, h.src_port)
        };
        let s = &mut self.slots[i as usize];
        s.state = State::Tcp(Box::new(Tracked::new(self.now)));
        let client = s.hosts[0];
        if h.has(Header::SYN) {
            self.hosts.opened(client);
        }
        self.totals.tcp_connections += 1;
        self.begin(i, class(false, client_port, server_port));
        i
    }

    fn udp(&mut self, p: &Packet, src_port: u16, dst_port: u16, payload: u32) -> bool {
        let (key, from_a) = key(p, src_port, dst_port, true);
        let mut slot = self.find(&key);
        if let Some(i) = slot
            && self.now.saturating_sub(self.slots[i as usize].last)
                > self.options.udp_idle.as_nanos()
        {
            self.close(i);
            self.release(i);
            slot = None;
        }
        let i = match slot {
            Some(i) => i,
            None => {
                let client_sent = match server_first(true, src_port, dst_port) {
                    Some(source_is_server) => !source_is_server,
                    None => true,
                };
                let i = self.open_slot(p, key, from_a, client_sent);
                let (client_port, server_port) = if client_sent {
                    (src_port, dst_port)
                } else {
                    (dst_port, src_port)
                };
                self.slots[i as usize].state = State::Udp(Box::new(UdpFlow::new(self.now)));
                self.totals.udp_flows += 1;
                self.begin(i, class(true, client_port, server_port));
                i
            }
        };
        let s = &mut self.slots[i as usize];
        s.last = self.now;
        if let State::Udp(flow) = &mut s.state {
            flow.push(self.now, from_a == s.client_is_a, payload);
        }
        if let Some(place) = s.place {
            self.users.active(place, self.now);
        }
        from_a == s.a_is_left
    }

    fn open_slot(&mut self, p: &Packet, key: Key, from_a: bool, client_sent: bool) -> u32 {
        let (src, dst) = (self.hosts.id(p.src), self.hosts.id(p.dst));
        if group(p.dst) || group(p.src) || src == dst {
            self.counts.group_flows += 1;
        } else {
            self.hosts.across(src, dst);
        }
        let source_is_left = if group(p.src) {
            !self.hosts.inside(dst, false)
        } else {
            self.hosts.inside(src, client_sent)
        };
        let slot = Slot {
            key,
            state: State::Free,
            last: self.now,
            closed: false,
            client_is_a: from_a == client_sent,
            a_is_left: from_a == source_is_left,
            hosts: if client_sent { [src, dst] } else { [dst, src] },
            place: None,
        };
        let i = match self.free.pop() {
            Some(i) => {
                self.slots[i as usize] = slot;
                i
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        let (hasher, slots) = (&self.hasher, &self.slots);
        self.index.insert_unique(hasher.hash_one(key), i, |&j| {
            hasher.hash_one(slots[j as usize].key)
        });
        i
    }

    fn begin(&mut self, slot: u32, class: u8) {
        let client = self.slots[slot as usize].hosts[0];
        let thinner = &mut self.thinner;
        let place = self
            .users
            .begin(client, class, self.now, &mut |s| thinner.push(s));
        self.slots[slot as usize].place = Some(place);
    }

    /// Looks at one slot, in turn.
    #[inline]
    fn sweep(&mut self) {
        self.cursor += 1;
        if self.cursor >= self.slots.len() {
            self.cursor = 0;
        }
        let Some(s) = self.slots.get(self.cursor) else {
            return;
        };
        let idle = self.now.saturating_sub(s.last);
        let i = self.cursor as u32;
        match &s.state {
            State::Tcp(_) => {
                if idle > LINGER && s.closed || idle > self.options.tcp_idle.as_nanos() {
                    self.close(i);
                }
            }
            State::Udp(_) => {
                if idle > self.options.udp_idle.as_nanos() {
                    self.close(i);
                    self.release(i);
                }
            }
            State::Closed(_) => {
                if idle > TOMBSTONE {
                    self.release(i);
                }
            }
            State::Free => {}
        }
    }

    /// Writes the flow in a slot down and leaves a tombstone.
    fn close(&mut self, i: u32) {
        let s = &mut self.slots[i as usize];
        let isn = match &s.state {
            State::Tcp(t) => t.client_isn(),
            _ => None,
        };
        let state = std::mem::replace(&mut s.state, State::Closed(isn));
        let (hosts, place) = (s.hosts, s.place.take());
        let connection = match state {
            State::Tcp(t) => self.tcp_connection(&t, hosts),
            State::Udp(flow) => {
                let right_censored =
                    self.now.saturating_sub(flow.last) <= self.options.udp_idle.as_nanos();
                Some(Connection {
                    gap: Dur::ZERO,
                    server: hosts[1],
                    exchange: Exchange::Datagrams(flow.finish()),
                    client_window: 0,
                    server_window: 0,
                    left_censored: false,
                    right_censored,
                })
            }
            State::Closed(_) | State::Free => return,
        };
        if let Some(place) = place {
            let thinner = &mut self.thinner;
            self.users
                .end(place, connection, &mut |session| thinner.push(session));
        }
    }

    fn release(&mut self, i: u32) {
        let s = &mut self.slots[i as usize];
        s.state = State::Free;
        let hash = self.hasher.hash_one(s.key);
        if let Ok(entry) = self.index.find_entry(hash, |&j| j == i) {
            entry.remove();
        }
        self.free.push(i);
    }

    fn tcp_connection(&mut self, t: &Tracked, hosts: [u32; 2]) -> Option<Connection> {
        for from in [0, 1] {
            let h = &t.halves[from];
            self.hosts.losses(
                hosts[from],
                hosts[1 - from],
                h.packets,
                h.lost_before,
                h.lost_beyond,
            );
        }
        self.counts.tcp(t);
        self.totals.tcp_handshakes += u64::from(t.handshake);
        let exchange = if t.attempt() {
            Exchange::Attempt {
                retries: t
                    .syns
                    .windows(2)
                    .map(|w| Dur::from_nanos(w[1] - w[0]))
                    .collect(),
                refused: t.reset,
            }
        } else {
            if t.left_censored() && t.chunks.is_empty() {
                self.counts.strays += 1;
                return None;
            }
            t.chunks.exchange(t.opened.unwrap_or(t.start))
        };
        Some(Connection {
            gap: Dur::ZERO,
            server: hosts[1],
            exchange,
            client_window: t.halves[0].max_window,
            server_window: t.halves[1].max_window,
            left_censored: t.left_censored(),
            right_censored: !t.closed() && !t.attempt(),
        })
    }

    /// The model of everything seen.
    pub fn finish(mut self) -> Model {
        if self.previewing {
            self.end_preview();
        }
        for i in 0..self.slots.len() as u32 {
            self.close(i);
        }
        let mut thinner = self.thinner;
        self.users.finish(&mut |s| thinner.push(s));
        let offered = thinner.seen();
        let mut sessions = thinner.finish();
        sessions.sort_by_key(|s| s.start);
        // A trace of one packet lasts no time; a session needs some to lie in.
        let duration = self.now + 1_000;

        for s in &mut sessions {
            s.outside = !self.hosts.inside(s.client, true);
        }
        let mut paths = Paths::new();
        for s in &mut sessions {
            paths.place(s);
        }
        let [client_paths, server_paths] =
            paths.finish(&self.hosts, self.options.pair_quantile, &mut self.counts);
        for s in &mut sessions {
            let client = client_paths[s.client as usize].rtt;
            for g in &mut s.groups {
                // The user saw the last response, and the next SYN passed the tap, half a client-side
                // round trip later each.
                g.think = g.think.saturating_sub(client);
                for c in &mut g.connections {
                    let server = server_paths[c.server as usize].rtt;
                    correct(&mut c.exchange, client, server);
                }
            }
        }
        let classes = used_classes(&mut sessions);
        let mut provenance = self.options.provenance;
        if provenance.made_by.is_empty() {
            provenance.made_by = concat!("swell-learn ", env!("CARGO_PKG_VERSION")).into();
        }
        let mut model = Model {
            name: self.options.name,
            provenance,
            warnings: Vec::new(),
            duration: Dur::from_nanos(duration),
            parameters: self.options.parameters,
            totals: self.totals,
            load: self.bins.finish(self.now),
            classes,
            client_paths,
            server_paths,
            sessions,
        };
        whole_micros(&mut model);
        let cut = self.users.cut;
        model.warnings = doubts(&model, &self.counts, &self.hosts, cut, offered);
        model.warnings.splice(0..0, self.doubts);
        model
            .warnings
            .sort_by_key(|w| std::cmp::Reverse(w.severity));
        model
    }
}

/// The classes that sessions use, renumbered.
fn used_classes(sessions: &mut [Session]) -> Vec<Class> {
    let mut number = [None; CLASSES.len()];
    let mut classes = Vec::new();
    for (i, row) in CLASSES.iter().enumerate() {
        if sessions.iter().any(|s| s.class as usize == i) {
            number[i] = Some(classes.len() as u32);
            classes.push(Class {
                name: row.name.into(),
                udp: row.udp,
            });
        }
    }
    for s in sessions {
        s.class = number[s.class as usize].unwrap_or(0);
    }
    classes
}

/// Rounds every time to whole microseconds, as the file has them, so that a model in memory and the
/// same model read back are equal.
fn whole_micros(m: &mut Model) {
    let round = |d: &mut Dur| *d = Dur::from_micros((d.as_nanos() + 500) / 1000);
    round(&mut m.duration);
    for s in &mut m.sessions {
        round(&mut s.start);
        for g in &mut s.groups {
            round(&mut g.think);
            for c in &mut g.connections {
                round(&mut c.gap);
                match &mut c.exchange {
                    Exchange::Sequential(turns) => {
                        for t in turns {
                            round(&mut t.server_think);
                            round(&mut t.client_think);
                        }
                    }
                    Exchange::Concurrent { up, down } => {
                        up.iter_mut()
                            .chain(down)
                            .for_each(|unit| round(&mut unit.0));
                    }
                    Exchange::Attempt { retries, .. } => retries.iter_mut().for_each(round),
                    Exchange::Datagrams(d) => d.packets.iter_mut().for_each(|p| round(&mut p.0)),
                }
            }
        }
    }
}

fn key(p: &Packet, src_port: u16, dst_port: u16, udp: bool) -> (Key, bool) {
    let (a, b) = (bits(p.src), bits(p.dst));
    let from_a = (a, src_port) <= (b, dst_port);
    let join = |x: u16, y: u16| u32::from(x) << 16 | u32::from(y);
    let key = if from_a {
        Key {
            a,
            b,
            ports: join(src_port, dst_port),
            udp,
        }
    } else {
        Key {
            a: b,
            b: a,
            ports: join(dst_port, src_port),
            udp,
        }
    };
    (key, from_a)
}
