//! The quantities of a model one by one: for tables, plots and comparisons.

use std::fmt;

use swell_base::Dur;
use swell_stats::{Ecdf, ks, wasserstein_log2};

use crate::{Connection, Datagrams, Exchange, Model, Path, Session, Unit};

/// A quantity of the model with a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Groups per session.
    Groups,
    /// Connections (or datagram flows) per group.
    Connections,
    /// Turns per sequential connection.
    Turns,
    /// Request bytes per turn. If both ends send at once: bytes that the client sends in a row.
    Request,
    /// Response bytes per turn. If both ends send at once: bytes that the server sends in a row.
    Response,
    /// Server's think time between a request and its response, seconds.
    ServerThink,
    /// Client's think time between a response and the next request, seconds.
    ClientThink,
    /// Think time between groups, seconds.
    GroupThink,
    /// Start to start of connections within a group, seconds.
    Gap,
    /// Application bytes per connection or flow, both directions.
    ConnectionBytes,
    /// Datagram payload, bytes.
    Datagram,
    /// Time between datagrams of a flow, seconds.
    DatagramGap,
    /// RTT between tap and client, if measured, seconds, per session.
    ClientRtt,
    /// RTT between tap and server, if measured, seconds, per connection.
    ServerRtt,
    /// Capacity towards the client, if known, bit/s, per session.
    ClientDown,
    /// Capacity from the server, if known, bit/s, per connection.
    ServerUp,
    /// Share of packets lost between tap and client, both directions combined, per session.
    ClientLoss,
    /// Share of packets lost between tap and server, both directions combined, per connection.
    ServerLoss,
}

impl Quantity {
    /// All quantities, in table order.
    pub const ALL: [Quantity; 18] = [
        Quantity::Groups,
        Quantity::Connections,
        Quantity::Turns,
        Quantity::Request,
        Quantity::Response,
        Quantity::ServerThink,
        Quantity::ClientThink,
        Quantity::GroupThink,
        Quantity::Gap,
        Quantity::ConnectionBytes,
        Quantity::Datagram,
        Quantity::DatagramGap,
        Quantity::ClientRtt,
        Quantity::ServerRtt,
        Quantity::ClientDown,
        Quantity::ServerUp,
        Quantity::ClientLoss,
        Quantity::ServerLoss,
    ];

    /// Its name in tables, without the unit.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Groups => "groups per session",
            Quantity::Connections => "connections per group",
            Quantity::Turns => "turns per connection",
            Quantity::Request => "request",
            Quantity::Response => "response",
            Quantity::ServerThink => "server think",
            Quantity::ClientThink => "client think",
            Quantity::GroupThink => "group think",
            Quantity::Gap => "gap between connections",
            Quantity::ConnectionBytes => "bytes per connection",
            Quantity::Datagram => "datagram",
            Quantity::DatagramGap => "gap between datagrams",
            Quantity::ClientRtt => "client-side RTT",
            Quantity::ServerRtt => "server-side RTT",
            Quantity::ClientDown => "capacity to client",
            Quantity::ServerUp => "capacity from server",
            Quantity::ClientLoss => "client-side loss",
            Quantity::ServerLoss => "server-side loss",
        }
    }

    /// The unit of its values; empty for counts and shares.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Request
            | Quantity::Response
            | Quantity::ConnectionBytes
            | Quantity::Datagram => "B",
            Quantity::ServerThink
            | Quantity::ClientThink
            | Quantity::GroupThink
            | Quantity::Gap
            | Quantity::DatagramGap
            | Quantity::ClientRtt
            | Quantity::ServerRtt => "s",
            Quantity::ClientDown | Quantity::ServerUp => "bit/s",
            _ => "",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A weighted sample in increasing order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Values with their weights.
    points: Vec<(f64, f64)>,
    total: f64,
}

impl Sample {
    /// A sample of these values and weights. Values that are not finite, and weights that are not finite
    /// and positive, are dropped.
    pub fn new(mut points: Vec<(f64, f64)>) -> Sample {
        points.retain(|p| p.0.is_finite() && p.1.is_finite() && p.1 > 0.0);
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = points.iter().map(|p| p.1).sum();
        Sample { points, total }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Sum of the weights: the number of values in the trace that it represents.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The weighted mean.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.points.iter().map(|p| p.0 * p.1).sum();
        (self.total > 0.0).then(|| sum / self.total)
    }

    /// The smallest value with at least share `p` of the weight at or below it.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let mut sum = 0.0;
        for &(value, weight) in &self.points {
            sum += weight;
            if sum >= p * self.total {
                return Some(value);
            }
        }
        self.points.last().map(|l| l.0)
    }

    /// The distribution as equally weighted values, for statistics that ignore weights: the values
    /// themselves if all weights are one, else `n` evenly spaced quantiles.
    pub fn ecdf(&self, n: usize) -> Ecdf {
        if self.points.iter().all(|p| p.1 == 1.0) {
            return Ecdf::new(self.points.iter().map(|p| p.0).collect());
        }
        let (mut sum, mut at) = (0.0, 0);
        let quantile = |i: usize| {
            let wanted = (i as f64 + 0.5) / n as f64 * self.total;
            while at < self.points.len() {
                let upto = sum + self.points[at].1;
                if upto >= wanted {
                    return Some(self.points[at].0);
                }
                (sum, at) = (upto, at + 1);
            }
            self.points.last().map(|l| l.0)
        };
        Ecdf::new((0..n).filter_map(quantile).collect())
    }
}

/// One quantity of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginal {
    /// Name of the class; empty for all classes together.
    pub class: String,
    /// The quantity.
    pub quantity: Quantity,
    /// Its values.
    pub sample: Sample,
}

/// The marginal distributions of a model: of all classes together, then class by class.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginals {
    /// The marginals with at least one value.
    pub list: Vec<Marginal>,
    /// Weighted number of sessions by class, in the order of the model's classes.
    pub sessions: Vec<(String, f64)>,
}

/// Distance between one quantity of one class in two models.
#[derive(Clone, Debug, PartialEq)]
pub struct Distance {
    /// Name of the class; empty for all classes together.
    pub class: String,
    /// The quantity.
    pub quantity: Quantity,
    /// Kolmogorov-Smirnov: the largest difference of the distribution functions, 0 to 1.
    pub ks: f64,
    /// Wasserstein-1 of the binary logarithms, octaves. `None` if either has a zero value.
    pub octaves: Option<f64>,
    /// Medians of both.
    pub medians: [f64; 2],
    /// Number of values of both.
    pub samples: [usize; 2],
}

/// Number of quantiles taken of weighted samples for a distance.
const QUANTILES: usize = 2_000;

/// Maximum number of datagrams counted per flow, evenly spread over it. They stand for all.
const DATAGRAMS: u64 = 512;
/// Maximum number of datagrams of a flow that they are spread over, its first ones: a run names billions of
/// datagrams in a few bytes.
const WALK: u64 = 1 << 20;

impl Marginals {
    /// The marginals of a model.
    pub fn of(model: &Model) -> Marginals {
        let mut values: Vec<Vec<Vec<(f64, f64)>>> =
            vec![vec![Vec::new(); Quantity::ALL.len()]; model.classes.len() + 1];
        let mut sessions: Vec<(String, f64)> = model
            .classes
            .iter()
            .map(|c| (c.name.clone(), 0.0))
            .collect();
        for s in &model.sessions {
            let class = s.class as usize;
            if let Some(count) = sessions.get_mut(class) {
                count.1 += s.weight;
            }
            each(model, s, |quantity, value, stands_for| {
                for row in [0, class + 1] {
                    if let Some(row) = values.get_mut(row) {
                        row[quantity as usize].push((value, s.weight * stands_for));
                    }
                }
            });
        }
        let names = std::iter::once("").chain(model.classes.iter().map(|c| c.name.as_str()));
        let list = names
            .zip(values)
            .flat_map(|(class, row)| {
                Quantity::ALL
                    .into_iter()
                    .zip(row)
                    .map(|(quantity, points)| Marginal {
                        class: class.into(),
                        quantity,
                        sample: Sample::new(points),
                    })
            })
            .filter(|m| !m.sample.is_empty())
            .collect();
        Marginals { list, sessions }
    }

    /// One marginal; the empty class means all classes together.
    pub fn get(&self, class: &str, quantity: Quantity) -> Option<&Sample> {
        self.list
            .iter()
            .find(|m| m.class == class && m.quantity == quantity)
            .map(|m| &m.sample)
    }

    /// The distances of all quantities that both models have.
    pub fn distances(&self, other: &Marginals) -> Vec<Distance> {
        let mut distances = Vec::new();
        for m in &self.list {
            let Some(o) = other.get(&m.class, m.quantity) else {
                continue;
            };
            let (a, b) = (m.sample.ecdf(QUANTILES), o.ecdf(QUANTILES));
            let (Some(ks), Some(x), Some(y)) =
                (ks(&a, &b), m.sample.quantile(0.5), o.quantile(0.5))
            else {
                continue;
            };
            distances.push(Distance {
                class: m.class.clone(),
                quantity: m.quantity,
                ks,
                octaves: wasserstein_log2(&a, &b),
                medians: [x, y],
                samples: [m.sample.len(), o.len()],
            });
        }
        distances
    }
}

/// Delay of ACKs by receivers, as in the learner.
const DELAYED_ACK: Dur = Dur::from_millis(40);

/// The silence that separates objects of a direction, as in the learner.
fn quiet(model: &Model, s: &Session, c: &Connection) -> Dur {
    let client = model.client_paths.get(s.client as usize);
    let server = model.server_paths.get(c.server as usize);
    match (client, server) {
        (Some(a), Some(b)) if a.rtt_samples > 0 && b.rtt_samples > 0 => {
            let waits = a.rtt + b.rtt + DELAYED_ACK;
            model.parameters.quiet.min(waits)
        }
        _ => model.parameters.quiet,
    }
}

/// The objects that one end sends in a row, if both ends send independently. An object ends when its
/// sender has received something new, or is silent. Each has the pause before it, if its sender had
/// received something new. They correspond to the requests and responses of turns.
fn objects(units: &[Unit], quiet: Dur) -> Vec<(u64, Option<Dur>)> {
    let mut objects: Vec<(u64, Option<Dur>)> = Vec::new();
    let mut after = 0;
    for unit in units {
        let heard = unit.after > after;
        after = unit.after;
        match objects.last_mut() {
            Some(object) if !heard && unit.pause <= quiet => {
                object.0 = object.0.saturating_add(unit.bytes);
            }
            _ => objects.push((unit.bytes, heard.then_some(unit.pause))),
        }
    }
    objects
}

/// Calls `each` with every value of a session, and with how many values it stands for.
fn each(model: &Model, s: &Session, mut each: impl FnMut(Quantity, f64, f64)) {
    use Quantity as Q;
    let mut value = |quantity, value| each(quantity, value, 1.0);
    let secs = |d: Dur| d.as_secs_f64();
    let loss = |p: &Path| 1.0 - (1.0 - p.loss_up) * (1.0 - p.loss_down);
    value(Q::Groups, s.groups.len() as f64);
    if let Some(p) = model.client_paths.get(s.client as usize) {
        // A borrowed RTT would count its donor twice.
        if p.rtt_samples > 0 {
            value(Q::ClientRtt, secs(p.rtt));
        }
        value(Q::ClientLoss, loss(p));
        if let Some(rate) = p.down {
            value(Q::ClientDown, rate.bps() as f64);
        }
    }
    for (i, g) in s.groups.iter().enumerate() {
        value(Q::Connections, g.connections.len() as f64);
        if i > 0 {
            value(Q::GroupThink, secs(g.think));
        }
        for (j, c) in g.connections.iter().enumerate() {
            if j > 0 {
                value(Q::Gap, secs(c.gap));
            }
            if !matches!(c.exchange, Exchange::Attempt { .. }) {
                let bytes = c.exchange.bytes();
                value(Q::ConnectionBytes, bytes[0] as f64 + bytes[1] as f64);
            }
            if let Some(p) = model.server_paths.get(c.server as usize) {
                if p.rtt_samples > 0 {
                    value(Q::ServerRtt, secs(p.rtt));
                }
                value(Q::ServerLoss, loss(p));
                if let Some(rate) = p.up {
                    value(Q::ServerUp, rate.bps() as f64);
                }
            }
            match &c.exchange {
                Exchange::Sequential(turns) => {
                    value(Q::Turns, turns.len() as f64);
                    for (k, t) in turns.iter().enumerate() {
                        if t.request > 0 {
                            value(Q::Request, t.request as f64);
                        }
                        if t.response > 0 {
                            value(Q::Response, t.response as f64);
                        }
                        if t.request > 0 && t.response > 0 {
                            value(Q::ServerThink, secs(t.server_think));
                        }
                        if t.response > 0 && turns.get(k + 1).is_some_and(|n| n.request > 0) {
                            value(Q::ClientThink, secs(t.client_think));
                        }
                    }
                }
                Exchange::Concurrent { up, down } => {
                    let quiet = quiet(model, s, c);
                    for (units, size, think) in [
                        (up, Q::Request, Q::ClientThink),
                        (down, Q::Response, Q::ServerThink),
                    ] {
                        for (bytes, pause) in objects(units, quiet) {
                            value(size, bytes as f64);
                            pause.into_iter().for_each(|p| value(think, secs(p)));
                        }
                    }
                }
                Exchange::Attempt { .. } | Exchange::Datagrams(_) => {}
            }
        }
    }
    for c in s.connections() {
        if let Exchange::Datagrams(d) = &c.exchange {
            datagrams(d, &mut each);
        }
    }
}

/// Calls `each` with the sizes of datagrams and the gaps between them, and with how many each stands for.
fn datagrams(d: &Datagrams, each: &mut impl FnMut(Quantity, f64, f64)) {
    let all = d.count().into_iter().fold(0, u64::saturating_add);
    let walked = all.min(WALK);
    let every = walked.div_ceil(DATAGRAMS).max(1);
    // Together, those counted stand for all datagrams of the flow.
    let stands_for = all as f64 / walked.div_ceil(every).max(1) as f64;
    for (k, (gap, _, bytes)) in d.iter().take(walked as usize).enumerate() {
        if !(k as u64).is_multiple_of(every) {
            continue;
        }
        each(Quantity::Datagram, f64::from(bytes), stands_for);
        if k > 0 {
            each(Quantity::DatagramGap, gap.as_secs_f64(), stands_for);
        }
    }
}

#[cfg(test)]
mod tests;
