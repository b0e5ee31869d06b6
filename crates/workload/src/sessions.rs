//! A background: the sessions of a flow-level model, generated as in Harpoon.

use swell_base::{Bytes, Dur, Rate, Side, Time};
use swell_traffic::flowlevel::{Due, Exchange, Pacer, Player, Transfer, UdpSource};

use crate::{Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Workload};

/// A file with a limit on its rate is written in pieces of this duration.
const PIECE: Dur = Dur::from_millis(1);
/// Minimum size of such a piece, bytes: the payload of a full segment.
const SEGMENT: u64 = 1_448;
/// How long the flow of a source is kept after its last datagram, for datagrams in the network.
const LINGER: Dur = Dur::from_secs(2);

/// Configuration of the sessions of a flow-level model.
#[derive(Debug)]
pub struct SessionsConfig {
    /// Schedule of transfers and datagram sources.
    pub player: Player,
    /// Seed of the pauses of datagram sources.
    pub seed: u64,
    /// The side of the bottleneck on which the clients are.
    pub client_side: Side,
    /// Path of every client, because flow records contain no path properties.
    pub client: Access,
    /// Path of every server.
    pub server: Access,
    /// Transfers in progress at the beginning, with their remaining bytes.
    pub under_way: Vec<Transfer>,
}

impl SessionsConfig {
    /// Clients on the left, and the same path for all hosts.
    pub fn alike(player: Player, seed: u64, access: Access) -> SessionsConfig {
        SessionsConfig {
            player,
            seed,
            client_side: Side::Left,
            client: access,
            server: access,
            under_way: Vec::new(),
        }
    }
}

/// Opens a connection for every transfer when it is due, regardless of earlier transfers. The client sends its file,
/// then the server sends its own and closes; if the client has no file, the server starts at once. The network and
/// TCP determine how long that takes; files with a limit on their rate ([`Transfer::limits`]) are not written faster. Datagram sources follow their schedule; their servers respond to arriving
/// datagrams, or follow it, too ([`UdpSource::answers`]).
///
/// Records have class 0 for TCP and class 1 for datagrams.
#[derive(Debug)]
pub struct Sessions {
    config: SessionsConfig,
    /// One entry per connection or datagram flow ever opened; `None` once it is gone.
    flows: Vec<Option<Box<Live>>>,
    /// Records of finished connections, if records are kept.
    records: Vec<Record>,
    keeps_records: bool,
}

#[derive(Debug)]
struct Live {
    start: Time,
    /// Payload bytes that arrived at the client and at the server.
    received: [u64; 2],
    what: What,
}

#[derive(Debug)]
enum What {
    File {
        transfer: Transfer,
        /// The server has sent its file.
        answered: bool,
        /// Which ends have been closed.
        closed: [bool; 2],
        /// All data has arrived.
        finished: bool,
        /// The file that is written in pieces.
        paced: Option<Paced>,
    },
    Source {
        source: Box<UdpSource>,
        pacer: Box<Pacer>,
        /// The next exchange.
        next: Option<Exchange>,
        /// Datagrams that the server still has to send in response, including a fraction.
        owed: f64,
        last: Time,
    },
}

/// A file with a limit on its rate that is being written.
#[derive(Clone, Copy, Debug)]
struct Paced {
    /// The end that writes it.
    end: End,
    /// Bytes that have not been written.
    left: u64,
    /// Bytes of a piece, and the time for it.
    piece: u64,
    pause: Dur,
    /// Whether the end closes afterwards.
    closes: bool,
}

impl Paced {
    fn new(end: End, bytes: u64, rate: Rate, closes: bool) -> Paced {
        let piece = rate.carried_in(PIECE).0.max(SEGMENT);
        Paced {
            end,
            left: bytes,
            piece,
            pause: rate.transmit(Bytes(piece)),
            closes,
        }
    }
}

// Timer tokens: kind in the top byte, index in the lower bytes.
const PLAYER: u64 = 0;
const SOURCE: u64 = 1 << 56;
const OVER: u64 = 2 << 56;
const PIECES: u64 = 3 << 56;
const KIND: u64 = 0xff << 56;

impl Sessions {
    /// Sessions with the given configuration.
    pub fn new(config: SessionsConfig) -> Sessions {
        Sessions {
            config,
            flows: Vec::new(),
            records: Vec::new(),
            keeps_records: true,
        }
    }

    /// Starts everything that is due and sets the timer for the next start.
    fn play(&mut self, now: Time, actions: &mut Vec<Action>) {
        while let Some(due) = self.config.player.pop(now) {
            match due {
                Due::Transfer(transfer) => self.open(transfer, now, actions),
                Due::Datagrams(source) => self.begin(source, now, actions),
            }
        }
        if let Some(at) = self.config.player.poll_at() {
            actions.push(Action::Timer(at.since(now), PLAYER));
        }
    }

    fn path(&self, source: u64, destination: u64) -> Box<Open> {
        // Connections of a host share its access path, if the path has a rate to share.
        let keyed = |access: Access, side: u64, rank: u64| Access {
            key: match access.up.or(access.down) {
                Some(_) => (rank + 1) << 1 | side,
                None => access.key,
            },
            ..access
        };
        Box::new(Open {
            client_side: self.config.client_side,
            client: keyed(self.config.client, 0, source),
            server: keyed(self.config.server, 1, destination),
            ..Open::default()
        })
    }

    fn open(&mut self, transfer: Transfer, now: Time, actions: &mut Vec<Action>) {
        let conn = Conn(self.flows.len() as u32);
        actions.push(Action::Connect(
            conn,
            self.path(transfer.source, transfer.destination),
        ));
        self.flows.push(Some(Box::new(Live {
            start: now,
            received: [0; 2],
            what: What::File {
                transfer,
                answered: false,
                closed: [false; 2],
                finished: false,
                paced: None,
            },
        })));
    }

    fn begin(&mut self, source: UdpSource, now: Time, actions: &mut Vec<Action>) {
        let conn = Conn(self.flows.len() as u32);
        let mut pacer = source.pace(self.config.seed);
        // A source without exchanges sends nothing.
        let Some(next) = pacer.next() else { return };
        actions.push(Action::Datagrams(
            conn,
            self.path(source.source, source.destination),
        ));
        actions.push(Action::Timer(
            next.at.since(now),
            SOURCE | u64::from(conn.0),
        ));
        self.flows.push(Some(Box::new(Live {
            // A source that is entered in its middle begins with its next exchange.
            start: now.max(source.at),
            received: [0; 2],
            what: What::Source {
                source: Box::new(source),
                pacer: Box::new(pacer),
                next: Some(next),
                owed: 0.0,
                last: now,
            },
        })));
    }

    fn live(&mut self, conn: Conn) -> Option<&mut Live> {
        self.flows.get_mut(conn.0 as usize)?.as_deref_mut()
    }

    fn connected(&mut self, conn: Conn, end: End, actions: &mut Vec<Action>) {
        let Some(What::File {
            transfer, answered, ..
        }) = self.live(conn).map(|l| &mut l.what)
        else {
            return;
        };
        match end {
            End::Client if transfer.up > 0 => self.write(conn, end, actions),
            End::Server if transfer.up == 0 => {
                *answered = true;
                self.write(conn, end, actions);
            }
            _ => {}
        }
    }

    /// Begins to send the file of an end.
    fn write(&mut self, conn: Conn, end: End, actions: &mut Vec<Action>) {
        let Some(What::File {
            transfer,
            closed,
            paced,
            ..
        }) = self.live(conn).map(|l| &mut l.what)
        else {
            return;
        };
        let bytes = [transfer.up, transfer.down][end as usize];
        let closes = end == End::Server || transfer.down == 0;
        if let Some(rate) = transfer.limits[end as usize] {
            *paced = Some(Paced::new(end, bytes, rate, closes));
            actions.push(Action::Unsent(conn, end));
            return;
        }
        actions.push(Action::Send(conn, end, bytes));
        if closes {
            closed[end as usize] = true;
            actions.push(Action::Close(conn, end));
        }
    }

    /// The next piece of a file with a limit is due.
    fn paced(&mut self, conn: Conn, actions: &mut Vec<Action>) {
        if let Some(What::File {
            paced: Some(file), ..
        }) = self.live(conn).map(|l| &l.what)
        {
            actions.push(Action::Unsent(conn, file.end));
        }
    }

    /// Writes the next piece of a file with a limit, unless an earlier one is still waiting for the network. What the
    /// network delays is not made up for, so the rate is never above the limit.
    fn piece(&mut self, conn: Conn, unsent: u64, actions: &mut Vec<Action>) {
        let Some(What::File { closed, paced, .. }) = self.live(conn).map(|l| &mut l.what) else {
            return;
        };
        let Some(file) = paced else { return };
        let end = file.end;
        if unsent < file.piece {
            let bytes = file.piece.min(file.left);
            file.left -= bytes;
            actions.push(Action::Send(conn, end, bytes));
        }
        if file.left > 0 {
            actions.push(Action::Timer(file.pause, PIECES | u64::from(conn.0)));
            return;
        }
        if file.closes {
            closed[end as usize] = true;
            actions.push(Action::Close(conn, end));
        }
        *paced = None;
    }

    fn received(&mut self, conn: Conn, end: End, n: u64, actions: &mut Vec<Action>) {
        let Some(live) = self.live(conn) else { return };
        live.received[end] += n;
        let received = live.received;
        let What::File {
            transfer,
            answered,
            finished,
            ..
        } = &mut live.what
        else {
            return;
        };
        let asked = received[End::Server as usize] >= transfer.up;
        let all = asked && received[End::Client as usize] >= transfer.down;
        let answers = asked && transfer.down > 0 && !std::mem::replace(answered, true);
        let over = all && !std::mem::replace(finished, true);
        if answers {
            self.write(conn, End::Server, actions);
        }
        if over {
            actions.push(Action::Ask(conn));
        }
    }

    fn eof(&mut self, conn: Conn, end: End, actions: &mut Vec<Action>) {
        if let Some(What::File { closed, .. }) = self.live(conn).map(|l| &mut l.what)
            && !std::mem::replace(&mut closed[end], true)
        {
            actions.push(Action::Close(conn, end));
        }
    }

    /// The next exchange of a source is due.
    fn exchange(&mut self, conn: Conn, now: Time, actions: &mut Vec<Action>) {
        let Some(What::Source {
            source,
            pacer,
            next,
            last,
            ..
        }) = self.live(conn).map(|l| &mut l.what)
        else {
            return;
        };
        while let Some(due) = next.filter(|e| e.at <= now) {
            for _ in 0..due.up {
                actions.push(Action::SendDatagram(conn, End::Client, source.up.payload));
            }
            // Other servers respond to arriving datagrams.
            if !source.answers() {
                for _ in 0..due.down {
                    actions.push(Action::SendDatagram(conn, End::Server, source.down.payload));
                }
            }
            *last = now;
            *next = pacer.next();
        }
        let (wait, kind) = match next {
            Some(e) => (e.at.since(now), SOURCE),
            None => (LINGER, OVER),
        };
        actions.push(Action::Timer(wait, kind | u64::from(conn.0)));
    }

    fn datagram(&mut self, conn: Conn, end: End, n: u32, actions: &mut Vec<Action>) {
        let Some(live) = self.live(conn) else { return };
        live.received[end] += u64::from(n);
        let What::Source { source, owed, .. } = &mut live.what else {
            return;
        };
        if end == End::Server && source.answers() {
            *owed += source.down.datagrams / source.up.datagrams;
            while *owed >= 1.0 {
                *owed -= 1.0;
                actions.push(Action::SendDatagram(conn, End::Server, source.down.payload));
            }
        }
    }

    fn record(&mut self, conn: Conn, end: Option<Time>, info: Info) {
        let Some(live) = self.live(conn) else { return };
        let (class, end) = match live.what {
            What::File { .. } => (0, end),
            What::Source { last, .. } => (1, end.map(|_| last)),
        };
        let record = FlowRecord {
            class,
            start: live.start,
            end,
            up: live.received[End::Server as usize],
            down: live.received[End::Client as usize],
            min_rtt: info.min_rtt,
            retransmissions: info.client_retransmissions + info.server_retransmissions,
        };
        if self.keeps_records {
            self.records.push(Record::Flow(record));
        }
    }
}

impl Workload for Sessions {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                for transfer in std::mem::take(&mut self.config.under_way) {
                    self.open(transfer, now, actions);
                }
                self.play(now, actions);
            }
            Event::Timer(token) => {
                let conn = Conn(token as u32);
                match token & KIND {
                    PLAYER => self.play(now, actions),
                    SOURCE => self.exchange(conn, now, actions),
                    PIECES => self.paced(conn, actions),
                    _ => {
                        self.record(conn, Some(now), Info::default());
                        self.flows[conn.0 as usize] = None;
                        actions.push(Action::Abort(conn));
                    }
                }
            }
            Event::Connected(conn, end) => self.connected(conn, end, actions),
            Event::Received(conn, end, n) => self.received(conn, end, n, actions),
            Event::Datagram(conn, end, n, _) => self.datagram(conn, end, n, actions),
            Event::Eof(conn, end) => self.eof(conn, end, actions),
            Event::Info(conn, info) => self.record(conn, Some(now), info),
            Event::Reset(conn, _) => {
                if let Some(What::File {
                    finished: false, ..
                }) = self.live(conn).map(|l| &l.what)
                {
                    self.record(conn, Some(now), Info::default());
                }
                if let Some(slot) = self.flows.get_mut(conn.0 as usize) {
                    *slot = None;
                }
            }
            Event::Closed(conn, _) => {
                if let Some(slot) = self.flows.get_mut(conn.0 as usize) {
                    *slot = None;
                }
            }
            Event::Unsent(conn, _, unsent) => self.piece(conn, unsent, actions),
            Event::Drained(..) | Event::Early(..) => {}
        }
    }

    fn keep_records(&mut self, keep: bool) {
        self.keeps_records = keep;
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for i in 0..self.flows.len() as u32 {
            let open = self
                .live(Conn(i))
                .is_some_and(|l| !matches!(l.what, What::File { finished: true, .. }));
            if open {
                self.record(Conn(i), None, info(Conn(i)));
            }
        }
    }
}
