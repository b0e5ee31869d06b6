//! Builds a model from noisy counts. All other information that it takes from the trace is assumed to be
//! public.

use swell_base::{Code, Dur, Rate, Stream, Warning};
use swell_traffic::{
    Class, Connection, Datagrams, Exchange, Group, Load, Model, Path, Run, Session, Turn, Wire,
};

use super::counts::{Counts, Histogram, NUMBERS, RATES, SIZES, TRIPS, WINDOWS};
use super::secret::{Private, Purpose, Secret};
use super::totals::totals;
use crate::ports::CLASSES;

/// Maximum number of sessions in the model; if there are more, weights represent them.
const SESSIONS: f64 = 20_000.0;
/// UDP payload of the largest synthetic datagram.
const DATAGRAM: u64 = 1_400;

/// Builds a model from the noisy counts.
pub(super) fn model(counts: &Counts, public: &Model, private: &Private) -> Model {
    let mut rng = Secret::new(private.seed, Purpose::Model);
    let mut rng = Stream::new(rng.bits(), "private-model");
    let all_starts: Vec<Law> = (0..CLASSES.len())
        .map(|class| {
            let cells = counts.get(Histogram::Starts, class);
            Law::sessions(cells, Histogram::Starts.scale(private))
        })
        .collect();
    let all: f64 = all_starts.iter().map(|law| law.total).sum();
    let weight = (all / SESSIONS).max(1.0);
    let law = |h: Histogram| Law::new(counts.get(h, 0), h.scale(private), h.ordinary());
    let (client, server) = (law(Histogram::Client), law(Histogram::Server));
    let mut made = Made {
        rng: &mut rng,
        duration: public.duration,
        client,
        server,
        clients: Vec::new(),
        servers: Vec::new(),
        sessions: Vec::new(),
    };
    let mut classes = Vec::new();
    let mut hidden = Hidden::default();
    for (class, starts) in all_starts.iter().enumerate() {
        let sessions = (starts.total / weight).round() as u64;
        if sessions > 0 {
            let laws = Laws::new(counts, class, starts, private);
            hidden.add(CLASSES[class].name, &laws);
            for _ in 0..sessions {
                made.session(classes.len() as u32, CLASSES[class].udp, weight, &laws);
            }
            classes.push(Class {
                name: CLASSES[class].name.into(),
                udp: CLASSES[class].udp,
            });
        }
    }
    hidden.trips = !(made.sessions.is_empty() || made.client.known && made.server.known);
    let Made {
        clients,
        servers,
        mut sessions,
        ..
    } = made;
    sessions.sort_by_key(|s| s.start);
    let mut provenance = public.provenance.clone();
    provenance.digests = Vec::new();
    provenance.thinning = None;
    provenance.private = Some(private.epsilon);
    Model {
        name: public.name.clone(),
        provenance,
        warnings: warnings(private, &hidden),
        duration: public.duration,
        parameters: public.parameters,
        totals: totals(&sessions, &classes),
        load: Load {
            bin: public.load.bin,
            bytes: Default::default(),
            filled: [false; 2],
            lsd_bin: public.load.lsd_bin,
            lsd: Default::default(),
        },
        classes,
        client_paths: clients,
        server_paths: servers,
        sessions,
    }
}

/// What noise hides: quantities of which no cell rises above it.
#[derive(Debug, Default)]
struct Hidden {
    /// Classes whose connections have one ordinary size.
    sizes: Vec<&'static str>,
    /// Whether the numbers of connections or pauses of some class are ordinary.
    others: bool,
    /// Whether the RTTs of clients or servers are.
    trips: bool,
}

impl Hidden {
    fn add(&mut self, class: &'static str, laws: &Laws<'_>) {
        if !laws.bytes.known {
            self.sizes.push(class);
        }
        let others = [&laws.shape, &laws.kind, &laws.pauses[0]];
        self.others |= others.iter().any(|law| !law.known);
    }
}

/// The warnings of a model. They are computed from the noisy counts, and from the scale of the noise, which does not
/// depend on the trace. So they take nothing from the budget: no processing of a private result makes it less private
/// (Dwork & Roth, "The Algorithmic Foundations of Differential Privacy", 2014, proposition 2.1). The exact distance
/// from the trace ([`Cost`](super::Cost)) may not be in them.
fn warnings(private: &Private, hidden: &Hidden) -> Vec<Warning> {
    let sizes = Histogram::Bytes;
    let starts = Histogram::Starts;
    let mut all = vec![Warning::warning(
        Code::Private,
        format!(
            "made of histograms with noise: whether any one session was in the trace changes the odds of this model by \
             a factor of {:.3} at most (epsilon {}). The number of sessions of a class is right within {:.0} (three \
             standard deviations). Sizes and pauses that about {} connections of a class share, four of a session at \
             most, are drawn from bins a factor of four wide; rarer ones are left out, with the bytes they carry, and so \
             are losses, windows and dependencies",
            private.epsilon.exp(),
            private.epsilon,
            3.0 * spread(starts.cells(), starts.scale(private)),
            least(sizes.cells(), sizes.scale(private)),
        ),
    )];
    if !hidden.sizes.is_empty() {
        all.push(Warning::warning(
            Code::PrivateSizes,
            format!(
                "noise hides the sizes of connections ({}): a request of some hundred bytes and a response of some \
                 thousand stand for each, so the load is not that of the trace. A longer trace of more users, or a \
                 larger epsilon, shows more",
                hidden.sizes.join(", ")
            ),
        ));
    }
    let what = match (hidden.trips, hidden.others) {
        (true, true) => Some("round trips, and numbers of connections or pauses of some classes"),
        (true, false) => Some("round trips"),
        (false, true) => Some("numbers of connections or pauses of some classes"),
        (false, false) => None,
    };
    if let Some(what) = what {
        let text = format!("noise hides {what}: ordinary values stand for them");
        all.push(Warning::warning(Code::PrivateOrdinary, text));
    }
    all
}

/// Threshold for a cell, in scales above the typical maximum of the noise over all cells. Noise alone
/// exceeds it in one histogram of `2 exp(13)`, 900 000; a model has some hundred.
const CERTAIN: f64 = 13.0;

/// A distribution over the cells of a histogram.
struct Law {
    /// Running sums.
    mass: Vec<f64>,
    total: f64,
    /// Whether any cell rises above the noise.
    known: bool,
}

/// The least noisy count that noise alone does not reach, in a histogram of this many cells.
fn least(cells: usize, scale: f64) -> i64 {
    (scale * ((cells as f64).ln() + CERTAIN)).ceil() as i64
}

/// Standard deviation of the noise of the sum over all cells. The variance of a cell's noise is close to twice the
/// square of its scale.
fn spread(cells: usize, scale: f64) -> f64 {
    (2.0 * cells as f64).sqrt() * scale
}

impl Law {
    /// The distribution of noisy cells. It uses only cells that noise alone does not reach ([`CERTAIN`]).
    /// If there are none, it uses the ordinary cell: noise must not invent transfers of gigabytes.
    fn new(cells: &[i64], scale: f64, ordinary: usize) -> Law {
        let least = least(cells.len(), scale);
        if cells.iter().all(|&c| c < least) {
            let law = Law::of((0..cells.len()).map(|i| if i == ordinary { 1.0 } else { 0.0 }));
            return Law {
                known: false,
                ..law
            };
        }
        Law::of(
            cells
                .iter()
                .map(|&c| if c >= least { c as f64 } else { 0.0 }),
        )
    }

    /// Number and time distribution of the sessions of a class. Empty if noise alone may explain the
    /// count.
    fn sessions(cells: &[i64], scale: f64) -> Law {
        let sum = cells.iter().sum::<i64>() as f64;
        if sum <= 3.0 * spread(cells.len(), scale) {
            return Law::of(std::iter::empty());
        }
        let cells = cells.iter().map(|&c| (c as f64).max(0.0));
        let positive = cells.clone().sum::<f64>().max(1.0);
        Law::of(cells.map(|c| c * sum / positive))
    }

    fn of(cells: impl Iterator<Item = f64>) -> Law {
        let mut total = 0.0;
        let mass = cells
            .map(|c| {
                total += c;
                total
            })
            .collect();
        Law {
            mass,
            total,
            known: true,
        }
    }

    fn draw(&self, rng: &mut Stream) -> usize {
        let at = rng.uniform() * self.total;
        self.mass
            .partition_point(|&m| m <= at)
            .min(self.mass.len().saturating_sub(1))
    }
}

/// The distributions of a class.
struct Laws<'a> {
    starts: &'a Law,
    shape: Law,
    kind: Law,
    bytes: Law,
    flow: Law,
    pauses: [Law; 4],
}

impl Laws<'_> {
    fn new<'a>(counts: &Counts, class: usize, starts: &'a Law, private: &Private) -> Laws<'a> {
        let law = |h: Histogram| Law::new(counts.get(h, class), h.scale(private), h.ordinary());
        Laws {
            starts,
            shape: law(Histogram::Shape),
            kind: law(Histogram::Kind),
            bytes: law(Histogram::Bytes),
            flow: law(Histogram::Flow),
            pauses: [
                law(Histogram::ServerThink),
                law(Histogram::ClientThink),
                law(Histogram::Gap),
                law(Histogram::GroupThink),
            ],
        }
    }
}

/// A model under construction.
struct Made<'a> {
    rng: &'a mut Stream,
    duration: Dur,
    client: Law,
    server: Law,
    clients: Vec<Path>,
    servers: Vec<Path>,
    sessions: Vec<Session>,
}

impl Made<'_> {
    fn session(&mut self, class: u32, udp: bool, weight: f64, laws: &Laws<'_>) {
        let start = laws.starts.draw(self.rng);
        let (outside, window) = (start >= WINDOWS, start % WINDOWS);
        let at = (window as f64 + self.rng.uniform()) / WINDOWS as f64;
        let shape = laws.shape.draw(self.rng);
        let groups = self.number(shape / NUMBERS);
        let connections = self.number(shape % NUMBERS).max(groups);
        let cell = self.client.draw(self.rng);
        let client = self.path(cell / RATES, cell % RATES);
        self.clients.push(client);
        let mut list = Vec::new();
        for g in 0..groups {
            let own = connections * (g + 1) / groups - connections * g / groups;
            let think = if g == 0 {
                Dur::ZERO
            } else {
                self.pause(&laws.pauses[3])
            };
            let opened = (0..own)
                .map(|i| self.connection(i == 0, udp, laws))
                .collect();
            list.push(Group {
                think,
                connections: opened,
            });
        }
        self.sessions.push(Session {
            class,
            start: Dur::from_micros((self.duration.as_secs_f64() * 1e6 * at) as u64),
            weight,
            client: self.clients.len() as u32 - 1,
            outside,
            lasted: None,
            groups: list,
        });
    }

    fn connection(&mut self, first: bool, udp: bool, laws: &Laws<'_>) -> Connection {
        let gap = if first {
            Dur::ZERO
        } else {
            self.pause(&laws.pauses[2])
        };
        let trip = self.server.draw(self.rng);
        let server = self.path(trip, 0);
        self.servers.push(server);
        let bytes = laws.bytes.draw(self.rng);
        let bytes = [bytes / SIZES, bytes % SIZES].map(|bin| self.size(bin));
        let kind = laws.kind.draw(self.rng);
        let exchange = match kind {
            _ if udp => self.datagrams(bytes, laws),
            0 => Exchange::Attempt {
                retries: Vec::new(),
                refused: true,
            },
            _ => {
                let turns = self.number(kind.saturating_sub(2));
                Exchange::Sequential(
                    (0..turns)
                        .map(|i| self.turn(i, turns, bytes, laws))
                        .collect(),
                )
            }
        };
        Connection {
            gap,
            server: self.servers.len() as u32 - 1,
            exchange,
            client_window: 0,
            server_window: 0,
            wire: Wire::default(),
            writes: Default::default(),
            waits: Vec::new(),
            left_censored: false,
            right_censored: false,
            overlap: None,
        }
    }

    /// Turn `i` of `turns`, which share the bytes of a connection.
    fn turn(&mut self, i: u64, turns: u64, bytes: [u64; 2], laws: &Laws<'_>) -> Turn {
        let part = |b: u64| {
            let upto = |n: u64| (u128::from(b) * u128::from(n) / u128::from(turns)) as u64;
            upto(i + 1) - upto(i)
        };
        Turn {
            request: part(bytes[0]).max(1),
            server_think: self.pause(&laws.pauses[0]),
            response: part(bytes[1]),
            client_think: if i + 1 < turns {
                self.pause(&laws.pauses[1])
            } else {
                Dur::ZERO
            },
        }
    }

    fn datagrams(&mut self, bytes: [u64; 2], laws: &Laws<'_>) -> Exchange {
        let cell = laws.flow.draw(self.rng);
        let span = self.within(pause_bin(cell / SIZES));
        let packets = self.size(cell % SIZES).max(1);
        let all = bytes[0].saturating_add(bytes[1]).max(1);
        let runs = [0, 1].map(|end| {
            let own = (u128::from(packets) * u128::from(bytes[end]) / u128::from(all)) as u64;
            // At least as many as the bytes need.
            let own = own
                .max(bytes[end].div_ceil(DATAGRAM))
                .min(u64::from(u32::MAX));
            if own == 0 && end == 1 {
                return Vec::new();
            }
            let own = own.max(1);
            let least = (bytes[end] / own) as u32;
            let rest = u32::from(bytes[end] > u64::from(least) * own);
            vec![Run {
                pause: Dur::ZERO,
                span: if own == 1 { Dur::ZERO } else { span },
                packets: own as u32,
                bytes: bytes[end],
                sizes: [least, least + rest],
            }]
        });
        Exchange::Datagrams(Datagrams {
            packets: Vec::new(),
            runs,
        })
    }

    fn path(&mut self, trip: usize, rate: usize) -> Path {
        // Paths without a measurement get a typical RTT of 10 ms.
        let rtt = match trip {
            0 => 10_000,
            n => self.within([32 << n, 64 << n]).as_nanos() / 1000,
        };
        let down = (rate > 0 && rate < RATES - 1).then(|| {
            let low = 64_000u64 << (2 * (rate - 1));
            Rate::from_bps(self.log_uniform(low, 4 * low))
        });
        Path {
            rtt: Dur::from_micros(rtt),
            up: None,
            down,
            loss_up: 0.0,
            loss_down: 0.0,
            rtt_samples: u32::from(trip > 0 && trip < TRIPS),
            capacity_samples: u32::from(down.is_some()),
            loss_samples: 0,
        }
    }

    fn pause(&mut self, law: &Law) -> Dur {
        let bin = law.draw(self.rng);
        self.within(pause_bin(bin))
    }

    /// A random time between two, microseconds.
    fn within(&mut self, [low, high]: [u64; 2]) -> Dur {
        Dur::from_micros(self.log_uniform(low, high))
    }

    fn number(&mut self, bin: usize) -> u64 {
        match bin {
            0 => 1,
            1 => 2,
            n => self.log_uniform((1 << (n - 1)) + 1, (1 << n) + 1).max(1),
        }
    }

    fn size(&mut self, bin: usize) -> u64 {
        match bin {
            0 => 0,
            n => self.log_uniform(1 << (2 * n - 2), 1 << (2 * n)),
        }
    }

    fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        let ratio = high as f64 / low.max(1) as f64;
        let value = low as f64 * ratio.powf(self.rng.uniform());
        (value as u64).clamp(low, high.saturating_sub(1).max(low))
    }
}

/// Lower and upper limit, microseconds.
fn pause_bin(bin: usize) -> [u64; 2] {
    match bin {
        0 => [1, 16],
        n => [1 << (2 * n + 2), 1 << (2 * n + 4)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of twenty thousand histograms of pure noise, none yields more than the ordinary cell.
    #[test]
    fn noise_alone_says_nothing() {
        let mut secret = Secret::new([3; 32], Purpose::Noise);
        for i in 0..20_000 {
            let scale = [0.3, 2.0, 40.0][i % 3];
            let cells: Vec<i64> = (0..SIZES * SIZES).map(|_| secret.noise(scale)).collect();
            let law = Law::new(&cells, scale, 7);
            let before = law.mass[..7].iter().all(|&m| m == 0.0);
            assert!(before && law.mass[7] == law.total, "histogram {i}");
        }
    }
}
