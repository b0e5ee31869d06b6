//! Peers of a file-sharing swarm: the peer protocol of BitTorrent (BEP 3) over TCP.

mod choke;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use swell_base::{Bytes, Dur, Rate, Stream, Time};

use self::choke::{Candidate, Choker, Chooser, Market, Meter, ROUND};
use crate::{Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Workload};

/// Bytes of a block: 2^14, as in all implementations (BEP 3).
pub(crate) const BLOCK: u64 = 1 << 14;

/// Rounds of choking before the run, at assumed rates. They make the begin of a run like its rest.
const BEFORE: u32 = 60;

/// Until a lost connection is opened again.
const RETRY: Dur = Dur::from_secs(30);

/// Within how much time connections begin.
const SPREAD: Dur = Dur::from_secs(1);

/// Configuration of a swarm.
#[derive(Clone, Debug, PartialEq)]
pub struct SwarmConfig {
    /// Peers that the client, and a remote peer, unchokes at a time. One of them is the optimistic unchoke.
    pub slots: u32,
    /// Requests that a downloader keeps under way on a connection.
    pub pipeline: u32,
    /// Mean rate at which the client sends blocks. In any second it sends at most one block more.
    pub upload: Option<Rate>,
    /// Mean rate at which the client requests blocks. In any second it requests at most one block more.
    pub download: Option<Rate>,
    /// Path of the client.
    pub client: Access,
    /// The peers of the client, one for each connection.
    pub remotes: Vec<Remote>,
    /// Rates that the client is assumed to reach before the run, up and down. Only the first decisions depend on them.
    pub reach: [Rate; 2],
    /// Seed of all choices.
    pub seed: u64,
}

/// A remote peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remote {
    /// Its path.
    pub access: Access,
    /// What it sends to a peer that it has unchoked: its share of the remote peer's uplink.
    pub share: Rate,
    /// It has the whole file and wants no blocks.
    pub seed: bool,
}

impl Remote {
    /// Whether the client wants blocks of it, and it of the client.
    fn interests(&self) -> [bool; 2] {
        [true, !self.seed]
    }
}

/// A client with a connection to each of its remote peers. Both ends of a connection request blocks in a pipeline while
/// the other end unchokes them. The client unchokes the peers that give most; remote peers choose between the client
/// and rivals (`Chooser`). Every message has its bytes on the wire, so requests wait behind blocks in a
/// full queue. Blocks are written as soon as they are requested, if the cap lets them. BEP 3 recommends to write no more
/// than TCP sends, so that a choke discards the rest; aria2's traffic shows that real clients write more.
///
/// Left out: trackers, the choice of pieces (all peers always have something to offer, as with rarest first in steady
/// state: Legout, Urvoy-Keller & Michiardi, IMC 2006), `have` messages, and peers that come and go.
#[derive(Debug)]
pub struct Swarm {
    config: SwarmConfig,
    choker: Choker,
    market: Market,
    links: Vec<Link>,
    /// Those of the client, and two for each remote peer: on requests and on blocks.
    limits: Vec<Limit>,
    /// Link of each connection, indexed by connection number.
    owner: Vec<u32>,
    /// When the client's first round ends, and the first rounds of its remote peers.
    phases: Vec<Dur>,
    rivals: Stream,
    records: Vec<Record>,
    /// Bytes of blocks that arrived at the client and at its peers.
    blocks: [u64; 2],
}

/// A connection and both of its ends.
#[derive(Debug)]
struct Link {
    /// `None` while it is lost, and before it begins.
    conn: Option<Conn>,
    start: Time,
    ends: [Half; 2],
    chooser: Chooser,
    /// Application bytes that arrived at the client and at the remote peer.
    received: [u64; 2],
}

/// One end of a connection.
#[derive(Debug, Default)]
struct Half {
    live: bool,
    /// It serves the other end.
    unchokes: bool,
    /// The other end has said that it serves this one.
    allowed: bool,
    /// It wants blocks.
    interested: bool,
    /// Own requests without an answer.
    outstanding: u32,
    /// Requests of the other end that wait here. A choke discards them (BEP 3).
    queued: u32,
    /// Messages on the way to this end, and how much of the first has arrived.
    inbox: VecDeque<Message>,
    part: u64,
    /// Blocks received.
    meter: Meter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Choke,
    Unchoke,
    Request,
    Piece,
}

impl Message {
    /// Bytes on the wire: length, type and fields (BEP 3).
    fn size(self) -> u64 {
        match self {
            Message::Choke | Message::Unchoke => 4 + 1,
            Message::Request => 4 + 1 + 12,
            Message::Piece => 4 + 1 + 8 + BLOCK,
        }
    }
}

/// What an end does for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Ask,
    Serve,
}

/// A limit on the blocks that an end requests or sends: at most one, and then `rate`. Links take turns.
#[derive(Debug)]
struct Limit {
    /// The links: all of the client, or that of a remote peer.
    links: Range<usize>,
    end: End,
    work: Work,
    rate: Option<Rate>,
    free: Time,
    /// A timer is set.
    waits: bool,
    /// The link after the last one.
    next: usize,
}

// Timer tokens: kind and index.
const BEGIN: u64 = 0;
const CLIENT: u64 = 1;
const REMOTE: u64 = 2;
const LIMIT: u64 = 3;

fn token(kind: u64, index: usize) -> u64 {
    kind << 32 | index as u64
}

fn other(end: End) -> End {
    match end {
        End::Client => End::Server,
        End::Server => End::Client,
    }
}

impl Swarm {
    /// A swarm in steady state.
    pub fn new(config: SwarmConfig) -> Swarm {
        let link = |remote: &Remote| Link {
            conn: None,
            start: Time::ZERO,
            ends: remote.interests().map(|interested| Half {
                interested,
                ..Half::default()
            }),
            chooser: Chooser::new(remote.seed),
            received: [0; 2],
        };
        let links: Vec<Link> = config.remotes.iter().map(link).collect();
        let limit = |of: Range<usize>, end, work, rate| Limit {
            next: of.start,
            links: of,
            end,
            work,
            rate,
            free: Time::ZERO,
            waits: false,
        };
        let mut limits = vec![
            limit(0..links.len(), End::Client, Work::Ask, config.download),
            limit(0..links.len(), End::Client, Work::Serve, config.upload),
        ];
        for (i, remote) in config.remotes.iter().enumerate() {
            limits.push(limit(i..i + 1, End::Server, Work::Ask, None));
            let share = Some(remote.share);
            limits.push(limit(i..i + 1, End::Server, Work::Serve, share));
        }
        let downloaders = config.remotes.iter().filter(|r| !r.seed);
        let mut phases = Stream::new(config.seed, "swarm-phase");
        let mut swarm = Swarm {
            choker: Choker::new(config.slots, Stream::new(config.seed, "swarm-client")),
            market: Market {
                offers: downloaders.map(|r| r.share).collect(),
                slots: config.slots,
                peers: links.len() as u32,
            },
            phases: (0..=links.len())
                .map(|_| ROUND.scale(phases.uniform()))
                .collect(),
            links,
            limits,
            owner: Vec::new(),
            rivals: Stream::new(config.seed, "swarm-rivals"),
            records: Vec::new(),
            blocks: [0; 2],
            config,
        };
        swarm.settle();
        swarm
    }

    /// Rounds before the run. Unchoked peers of the client share its upload evenly, and those that serve it send their
    /// shares, all less if together they exceed its download.
    fn settle(&mut self) {
        let caps = [self.config.upload, self.config.download];
        let reach = self.config.reach;
        let [up, down] = [0, 1].map(|d| caps[d].map_or(reach[d], |cap| cap.min(reach[d])));
        for round in 0..=BEFORE {
            let serving = |end: End| {
                let links = self.links.iter().zip(&self.config.remotes);
                links.filter(move |(link, _)| link.ends[end].unchokes)
            };
            let served = serving(End::Client).count().max(1);
            let offered: u64 = serving(End::Server).map(|(_, r)| r.share.bps()).sum();
            let fitting = (down.bps() as f64 / offered.max(1) as f64).min(1.0);
            // The last round ends in the run.
            let length = |phase: Dur| match round < BEFORE {
                true => ROUND,
                false => ROUND.saturating_sub(phase),
            };
            for (i, link) in self.links.iter_mut().enumerate() {
                let [client, remote] = &mut link.ends;
                if remote.unchokes {
                    let rate = self.config.remotes[i].share.scale(fitting);
                    (client.meter).add(rate.carried_in(length(self.phases[0])).0);
                }
                if client.unchokes {
                    let rate = up.scale(1.0 / served as f64);
                    (remote.meter).add(rate.carried_in(length(self.phases[i + 1])).0);
                }
            }
            if round < BEFORE {
                for (i, unchoke) in self.choice().into_iter().enumerate() {
                    self.links[i].ends[0].unchokes = unchoke;
                    self.links[i].ends[1].unchokes = self.remote_choice(i);
                }
            }
        }
    }

    /// Whom the client unchokes from now on.
    fn choice(&mut self) -> Vec<bool> {
        let candidate = |link: &mut Link| Candidate {
            interested: link.ends[1].interested,
            unchoked: link.ends[0].unchokes,
            gave: link.ends[0].meter.turn(),
        };
        let peers: Vec<Candidate> = self.links.iter_mut().map(candidate).collect();
        self.choker.turn(&peers)
    }

    /// Whether the remote peer of link `i` unchokes the client from now on.
    fn remote_choice(&mut self, i: usize) -> bool {
        let link = &mut self.links[i];
        let gave = link.ends[1].meter.turn();
        (link.chooser).turn(gave, &self.market, &mut self.rivals)
    }

    fn begin(&mut self, now: Time, i: usize, actions: &mut Vec<Action>) {
        let conn = Conn(self.owner.len() as u32);
        self.owner.push(i as u32);
        let link = &mut self.links[i];
        (link.conn, link.start, link.received) = (Some(conn), now, [0; 2]);
        // After a loss, neither end was interested.
        let interests = self.config.remotes[i].interests();
        for (half, interested) in link.ends.iter_mut().zip(interests) {
            half.interested = interested;
        }
        let open = Open {
            client: self.config.client,
            server: self.config.remotes[i].access,
            hosts: [1, i as u64 + 1],
            ..Open::default()
        };
        actions.push(Action::Connect(conn, Box::new(open)));
    }

    /// Chokes or unchokes the other end.
    fn set(&mut self, i: usize, end: End, unchoke: bool, actions: &mut Vec<Action>) {
        let half = &mut self.links[i].ends[end];
        if half.unchokes == unchoke {
            return;
        }
        half.unchokes = unchoke;
        if !unchoke {
            half.queued = 0;
        }
        // Before the connection is there, nothing has been said.
        if half.live {
            let message = match unchoke {
                true => Message::Unchoke,
                false => Message::Choke,
            };
            self.send(i, end, message, actions);
        }
    }

    fn send(&mut self, i: usize, end: End, message: Message, actions: &mut Vec<Action>) {
        let link = &mut self.links[i];
        if let Some(conn) = link.conn {
            link.ends[other(end) as usize].inbox.push_back(message);
            actions.push(Action::Send(conn, end, message.size()));
        }
    }

    fn received(&mut self, now: Time, i: usize, end: End, n: u64, actions: &mut Vec<Action>) {
        let link = &mut self.links[i];
        link.received[end] += n;
        let half = &mut link.ends[end];
        let (mut left, mut before) = (n, half.part);
        for message in &half.inbox {
            let own = left.min(message.size().saturating_sub(before));
            if *message == Message::Piece {
                self.blocks[end] += own;
            }
            (left, before) = (left - own, 0);
            if left == 0 {
                break;
            }
        }
        half.part += n;
        while let Some(&message) = half.inbox.front()
            && half.part >= message.size()
        {
            half.part -= message.size();
            half.inbox.pop_front();
            match message {
                Message::Choke => (half.allowed, half.outstanding) = (false, 0),
                Message::Unchoke => half.allowed = true,
                // A request that crossed a choke is discarded.
                Message::Request => half.queued += u32::from(half.unchokes),
                Message::Piece => {
                    half.outstanding = half.outstanding.saturating_sub(1);
                    half.meter.add(BLOCK);
                }
            }
        }
        for work in [Work::Ask, Work::Serve] {
            self.advance(now, Swarm::limit(i, end, work), actions);
        }
    }

    /// The limit of this end. The client has one for all its links.
    fn limit(i: usize, end: End, work: Work) -> usize {
        let owner = match end {
            End::Client => 0,
            End::Server => i + 1,
        };
        2 * owner + work as usize
    }

    /// Requests or sends blocks until the limit is reached or nothing is left to do.
    fn advance(&mut self, now: Time, which: usize, actions: &mut Vec<Action>) {
        let pipeline = self.config.pipeline;
        loop {
            let limit = &mut self.limits[which];
            let (end, work) = (limit.end, limit.work);
            let ready = |i: &usize| {
                let half = &self.links[*i].ends[end];
                half.live
                    && match work {
                        Work::Ask => half.interested && half.allowed && half.outstanding < pipeline,
                        Work::Serve => half.queued > 0,
                    }
            };
            if limit.waits {
                return;
            }
            let mut turns = (limit.next..limit.links.end).chain(limit.links.start..limit.next);
            let Some(i) = turns.find(ready) else {
                return;
            };
            if limit.free > now {
                limit.waits = true;
                actions.push(Action::Timer(limit.free.since(now), token(LIMIT, which)));
                return;
            }
            limit.next = i + 1;
            if let Some(rate) = limit.rate {
                limit.free = now + rate.transmit(Bytes(BLOCK));
            }
            let half = &mut self.links[i].ends[end];
            match work {
                Work::Ask => {
                    half.outstanding += 1;
                    self.send(i, end, Message::Request, actions);
                }
                Work::Serve => {
                    half.queued -= 1;
                    self.send(i, end, Message::Piece, actions);
                }
            }
        }
    }

    /// The link of a connection that has not been lost.
    fn link(&self, conn: Conn) -> Option<usize> {
        let i = *self.owner.get(conn.0 as usize)? as usize;
        (self.links[i].conn == Some(conn)).then_some(i)
    }

    fn timer(&mut self, now: Time, due: u64, actions: &mut Vec<Action>) {
        let (kind, index) = (due >> 32, due as u32 as usize);
        match kind {
            BEGIN => self.begin(now, index, actions),
            CLIENT => {
                let unchoked = self.choice();
                // Chokes come first, so that there are never more unchoked peers than slots.
                for unchoke in [false, true] {
                    for i in (0..unchoked.len()).filter(|&i| unchoked[i] == unchoke) {
                        self.set(i, End::Client, unchoke, actions);
                    }
                }
                actions.push(Action::Timer(ROUND, due));
            }
            REMOTE => {
                let unchoke = self.remote_choice(index);
                self.set(index, End::Server, unchoke, actions);
                actions.push(Action::Timer(ROUND, due));
            }
            _ => {
                self.limits[index].waits = false;
                self.advance(now, index, actions);
            }
        }
    }

    fn record(&mut self, i: usize, info: Info, end: Option<Time>) {
        let link = &self.links[i];
        self.records.push(Record::Flow(FlowRecord {
            class: 0,
            start: link.start,
            end,
            up: link.received[1],
            down: link.received[0],
            min_rtt: info.min_rtt,
            retransmissions: info.client_retransmissions + info.server_retransmissions,
        }));
    }
}

impl Workload for Swarm {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                let mut starts = Stream::new(self.config.seed, "swarm-start");
                actions.push(Action::Timer(self.phases[0], token(CLIENT, 0)));
                for (i, &phase) in self.phases[1..].iter().enumerate() {
                    let after = SPREAD.scale(starts.uniform());
                    actions.push(Action::Timer(after, token(BEGIN, i)));
                    actions.push(Action::Timer(phase, token(REMOTE, i)));
                }
            }
            Event::Timer(due) => self.timer(now, due, actions),
            Event::Connected(conn, end) => {
                if let Some(i) = self.link(conn) {
                    let half = &mut self.links[i].ends[end];
                    half.live = true;
                    if half.unchokes {
                        self.send(i, end, Message::Unchoke, actions);
                    }
                }
            }
            Event::Received(conn, end, n) => {
                if let Some(i) = self.link(conn) {
                    self.received(now, i, end, n, actions);
                }
            }
            Event::Reset(conn, _) => {
                if let Some(i) = self.link(conn) {
                    self.record(i, Info::default(), Some(now));
                    let link = &mut self.links[i];
                    link.conn = None;
                    // It wants nothing any more, so that it takes no slot.
                    link.ends = Default::default();
                    actions.push(Action::Timer(RETRY, token(BEGIN, i)));
                }
            }
            Event::Drained(..)
            | Event::Unsent(..)
            | Event::Eof(..)
            | Event::Closed(..)
            | Event::Info(..)
            | Event::Early(..)
            | Event::Datagram(..) => {}
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn delivered(&self, _: &dyn Fn(Conn) -> Info) -> Option<[u64; 2]> {
        let [down, up] = self.blocks;
        Some([up, down])
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for i in 0..self.links.len() {
            if let Some(conn) = self.links[i].conn {
                self.record(i, info(conn), None);
            }
        }
    }
}
