//! Counts of session properties: histograms with bins that do not depend on the data.

use swell_base::{Dur, Rate};
use swell_traffic::{Connection, Exchange, Model, Path, Session};

use super::secret::{Private, Purpose, Secret};
use crate::ports::CLASSES;

/// Number of windows that the trace's duration is divided into.
pub(super) const WINDOWS: usize = 10;
/// Number of connections, and of pauses of each kind, that are counted per session.
const LOOKS: usize = 4;
/// Bins of numbers of things: 1, 2, 3–4, 5–8, …; the last is open.
pub(super) const NUMBERS: usize = 8;
/// Bins of sizes, a factor of four each: 0, 1–3, 4–15, …; the last starts at 4^17 (17 GB).
pub(super) const SIZES: usize = 19;
/// Bins of pauses, a factor of four each: below 16 us, …; the last starts at 4^16 us (over an hour).
pub(super) const PAUSES: usize = 16;
/// Bins of RTTs, a factor of two each: none measured, below 128 us, …; the last starts at 2 s.
pub(super) const TRIPS: usize = 17;
/// Bins of capacities, a factor of four each: none measured, below 256 kbit/s, …, above 1 Gbit/s.
pub(super) const RATES: usize = 9;
/// Kinds of a connection: attempt, datagrams, or turns by their number.
pub(super) const KINDS: usize = 2 + NUMBERS;

/// The histograms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Histogram {
    /// Sessions by class, window of their start and side of the client.
    Starts,
    /// By class: groups and connections of a session.
    Shape,
    /// The client's path: RTT, and capacity to the client.
    Client,
    /// By class: kind of a connection.
    Kind,
    /// By class: bytes of a connection from the client and from the server.
    Bytes,
    /// By class: a server's think time.
    ServerThink,
    /// By class: a client's think time inside a connection.
    ClientThink,
    /// By class: duration of a datagram flow, and number of its datagrams.
    Flow,
    /// The server's path: RTT.
    Server,
    /// By class: from the start of a connection to the next one of its group.
    Gap,
    /// By class: from one group to the next.
    GroupThink,
}

impl Histogram {
    pub(crate) const ALL: [Histogram; 11] = [
        Histogram::Starts,
        Histogram::Shape,
        Histogram::Client,
        Histogram::Kind,
        Histogram::Bytes,
        Histogram::ServerThink,
        Histogram::ClientThink,
        Histogram::Flow,
        Histogram::Server,
        Histogram::Gap,
        Histogram::GroupThink,
    ];

    /// The most that one session adds to all cells together.
    pub(crate) const fn share(self) -> usize {
        match self {
            Histogram::Starts | Histogram::Shape | Histogram::Client => 1,
            _ => LOOKS,
        }
    }

    /// The histogram's part of epsilon. All parts sum to 1.
    pub(crate) fn part(self) -> f64 {
        // The number of sessions and their sizes matter more than any one pause.
        let weight = |h: Histogram| match h {
            Histogram::Starts => 4.0,
            Histogram::Bytes => 6.0,
            Histogram::Client | Histogram::ClientThink | Histogram::GroupThink => 1.0,
            _ => 2.0,
        };
        weight(self) / Histogram::ALL.into_iter().map(weight).sum::<f64>()
    }

    /// Scale of the noise: the number of counts over which its probability falls by a factor of `e`.
    pub(super) fn scale(self, private: &Private) -> f64 {
        self.share() as f64 / (private.epsilon * self.part())
    }

    /// Cells of one class, or all cells if it is not counted by class.
    pub(super) const fn cells(self) -> usize {
        match self {
            Histogram::Starts => 2 * WINDOWS,
            Histogram::Shape => NUMBERS * NUMBERS,
            Histogram::Client => TRIPS * RATES,
            Histogram::Kind => KINDS,
            Histogram::Bytes => SIZES * SIZES,
            Histogram::Flow => PAUSES * SIZES,
            Histogram::Server => TRIPS,
            Histogram::ServerThink
            | Histogram::ClientThink
            | Histogram::Gap
            | Histogram::GroupThink => PAUSES,
        }
    }

    /// The cell used when nothing is known. It stands for one connection with a request of some hundred
    /// bytes and a response of some thousand, two datagrams, pauses and RTTs of some ten milliseconds.
    pub(super) const fn ordinary(self) -> usize {
        match self {
            Histogram::Starts | Histogram::Shape => 0,
            Histogram::Client => 8 * RATES,
            Histogram::Server => 8,
            Histogram::Kind => 2,
            Histogram::Bytes => 5 * SIZES + 7,
            Histogram::Flow => 5 * SIZES + 1,
            Histogram::ServerThink
            | Histogram::ClientThink
            | Histogram::Gap
            | Histogram::GroupThink => 5,
        }
    }

    const fn by_class(self) -> bool {
        !matches!(self, Histogram::Client | Histogram::Server)
    }
}

/// All histograms, with or without noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts(Vec<Vec<i64>>);

impl Counts {
    fn new() -> Counts {
        let empty = |h: Histogram| {
            let classes = if h.by_class() { CLASSES.len() } else { 1 };
            vec![0; classes * h.cells()]
        };
        Counts(Histogram::ALL.into_iter().map(empty).collect())
    }

    /// The exact counts of a learnt model.
    pub fn of(model: &Model) -> Counts {
        let mut counts = Counts::new();
        for session in &model.sessions {
            counts.add(model, session);
        }
        counts
    }

    /// The cells of a histogram in a class.
    pub(super) fn get(&self, histogram: Histogram, class: usize) -> &[i64] {
        let n = histogram.cells();
        let first = if histogram.by_class() { class * n } else { 0 };
        &self.0[histogram as usize][first..first + n]
    }

    /// Sum of the absolute differences per histogram.
    pub fn apart(&self, other: &Counts) -> Vec<u64> {
        let difference = |(a, b): (&Vec<i64>, &Vec<i64>)| {
            let cells = a.iter().zip(b);
            cells.map(|(x, y)| x.abs_diff(*y)).sum()
        };
        self.0.iter().zip(&other.0).map(difference).collect()
    }

    /// Adds noise to every cell.
    pub fn noisy(mut self, private: &Private) -> Counts {
        let mut secret = Secret::new(private.seed, Purpose::Noise);
        for (histogram, cells) in Histogram::ALL.into_iter().zip(&mut self.0) {
            let scale = histogram.scale(private);
            for cell in cells {
                *cell = cell.saturating_add(secret.noise(scale));
            }
        }
        self
    }

    fn count(&mut self, histogram: Histogram, class: usize, cell: usize) {
        let first = if histogram.by_class() {
            class * histogram.cells()
        } else {
            0
        };
        if let Some(n) = self.0[histogram as usize].get_mut(first + cell) {
            *n += 1;
        }
    }

    fn add(&mut self, model: &Model, session: &Session) {
        let name = model.classes.get(session.class as usize);
        let class = name.and_then(|c| CLASSES.iter().position(|row| row.name == c.name));
        let Some(class) = class else { return };
        let window = session.start.as_nanos().saturating_mul(WINDOWS as u64)
            / model.duration.as_nanos().max(1);
        let window = (window as usize).min(WINDOWS - 1);
        let side = usize::from(session.outside) * WINDOWS;
        self.count(Histogram::Starts, class, side + window);
        let all: Vec<&Connection> = session.connections().collect();
        let shape = number(session.groups.len()) * NUMBERS + number(all.len());
        self.count(Histogram::Shape, class, shape);
        let client = model.client_paths.get(session.client as usize);
        let cell = trip(client) * RATES + rate(client.and_then(|p| p.down));
        self.count(Histogram::Client, class, cell);
        for c in looks(&all) {
            self.add_connection(model, class, c);
        }
        let gaps: Vec<Dur> = session
            .groups
            .iter()
            .flat_map(|g| g.connections.iter().skip(1).map(|c| c.gap))
            .collect();
        for &gap in looks(&gaps) {
            self.count(Histogram::Gap, class, pause(gap));
        }
        let thinks: Vec<Dur> = session.groups.iter().skip(1).map(|g| g.think).collect();
        for &think in looks(&thinks) {
            self.count(Histogram::GroupThink, class, pause(think));
        }
    }

    fn add_connection(&mut self, model: &Model, class: usize, c: &Connection) {
        let [up, down] = c.exchange.bytes();
        let bytes = size(up) * SIZES + size(down);
        let server = model.server_paths.get(c.server as usize);
        self.count(Histogram::Server, class, trip(server));
        match &c.exchange {
            Exchange::Attempt { .. } => self.count(Histogram::Kind, class, 0),
            Exchange::Datagrams(d) => {
                self.count(Histogram::Kind, class, 1);
                self.count(Histogram::Bytes, class, bytes);
                let [ups, downs] = d.count();
                let cell = pause(d.lasts()) * SIZES + size(ups.saturating_add(downs));
                self.count(Histogram::Flow, class, cell);
            }
            Exchange::Sequential(turns) => {
                self.count(Histogram::Kind, class, 2 + number(turns.len()));
                self.count(Histogram::Bytes, class, bytes);
                // One pause of each kind represents its connection.
                if let Some(turn) = turns.get(turns.len() / 2) {
                    self.count(Histogram::ServerThink, class, pause(turn.server_think));
                }
                if let Some(turn) = turns.len().checked_sub(2).and_then(|i| turns.get(i / 2)) {
                    self.count(Histogram::ClientThink, class, pause(turn.client_think));
                }
            }
            Exchange::Concurrent {
                up: ups,
                down: downs,
            } => {
                let turns = ups.len().max(downs.len());
                self.count(Histogram::Kind, class, 2 + number(turns));
                self.count(Histogram::Bytes, class, bytes);
                if let Some(unit) = downs.get(downs.len() / 2) {
                    self.count(Histogram::ServerThink, class, pause(unit.pause));
                }
                if let Some(unit) = ups.get(ups.len() / 2) {
                    self.count(Histogram::ClientThink, class, pause(unit.pause));
                }
            }
        }
    }
}

/// At most [`LOOKS`] of them, evenly spaced.
fn looks<T>(all: &[T]) -> impl Iterator<Item = &T> {
    let n = all.len().min(LOOKS);
    (0..n).map(move |i| &all[i * all.len() / n])
}

/// The bin of a number of things, at least one.
fn number(n: usize) -> usize {
    let bits = n.max(1).next_power_of_two().trailing_zeros();
    (bits as usize).min(NUMBERS - 1)
}

fn size(bytes: u64) -> usize {
    let bits = 64 - bytes.leading_zeros();
    (bits.div_ceil(2) as usize).min(SIZES - 1)
}

fn pause(d: Dur) -> usize {
    let us = (d.as_nanos() / 1000).max(1);
    (us.ilog2() as usize / 2).saturating_sub(1).min(PAUSES - 1)
}

/// The bin of a measured RTT; 0 if it was borrowed.
fn trip(path: Option<&Path>) -> usize {
    match path.filter(|p| p.rtt_samples > 0) {
        None => 0,
        Some(p) => {
            let us = (p.rtt.as_nanos() / 1000).max(1);
            1 + (us.ilog2() as usize).saturating_sub(6).min(TRIPS - 2)
        }
    }
}

fn rate(rate: Option<Rate>) -> usize {
    match rate {
        None => 0,
        Some(r) => {
            let quarters = (r.bps() / 64_000).max(1).ilog2() as usize / 2;
            1 + quarters.min(RATES - 2)
        }
    }
}
