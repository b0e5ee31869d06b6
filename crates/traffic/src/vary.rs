//! The knobs, and removal of dependencies (ablation).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate, Stream};

use crate::{Connection, Exchange, Model, Path};

/// Modifications of a model. The default leaves it unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct Knobs {
    /// Factor on the number of sessions: each appears this often per cycle of the model.
    pub sessions: f64,
    /// Factor on response sizes (and on datagrams from the server).
    pub response: f64,
    /// Factor on request sizes (and on datagrams from the client).
    pub request: f64,
    /// Factor on users' think times: between groups and before the next request of a sequential exchange.
    /// Server think times, gaps inside a group, datagram spacing and concurrent exchanges are unchanged.
    pub think: f64,
    /// End-to-end RTT of every connection. The client's path gets all of it and the server's none, so that
    /// the sum is exact.
    pub rtt: Option<Dur>,
    /// Capacity of every access link, both directions, both sides.
    pub access: Option<Rate>,
    /// Phase of the model at the start of a run; drawn by the seed unless given.
    pub phase: Option<Dur>,
    /// Dependencies to remove.
    pub independent: Vec<Dependency>,
}

impl Default for Knobs {
    fn default() -> Knobs {
        Knobs {
            sessions: 1.0,
            response: 1.0,
            request: 1.0,
            think: 1.0,
            rtt: None,
            access: None,
            phase: None,
            independent: Vec::new(),
        }
    }
}

/// A dependency of the joint distribution. To remove it, a quantity is permuted across the model, so that
/// its marginal distribution is unchanged.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Independence")]
pub enum Dependency {
    /// Response size on request size: responses are permuted within their class.
    ResponseOnRequest,
    /// Sizes on class: (request, response) pairs are permuted across all classes with turns, QUIC
    /// included.
    SizeOnClass,
    /// Think times on sizes: those of servers and those of users are permuted within their class.
    ThinkOnSize,
    /// Client path on user and server path on connection: paths are permuted.
    PathOnUser,
    /// Exchanges of a session on each other: whole exchanges are permuted within their class.
    WithinSession,
    /// Path capacity and loss on RTT: they are permuted among the paths of a side.
    CapacityOnRtt,
}

impl Dependency {
    /// All dependencies with their names in experiment files.
    pub const ALL: [(Dependency, &str); 6] = [
        (Dependency::ResponseOnRequest, "response-on-request"),
        (Dependency::SizeOnClass, "size-on-class"),
        (Dependency::ThinkOnSize, "think-on-size"),
        (Dependency::PathOnUser, "path-on-user"),
        (Dependency::WithinSession, "within-session"),
        (Dependency::CapacityOnRtt, "capacity-on-rtt"),
    ];

    /// Its name in experiment files.
    pub fn name(self) -> &'static str {
        Dependency::ALL
            .iter()
            .find(|d| d.0 == self)
            .map_or("", |d| d.1)
    }
}

impl Model {
    /// The model with the knobs applied, except `sessions` and `phase`, which
    /// [`Schedule::draw`](crate::Schedule::draw) applies. Sessions keep their positions, so indices mean
    /// the same in both. `seed` matters only for removed dependencies.
    ///
    /// Totals, load and warnings still describe the trace, not the variant.
    pub fn varied(&self, knobs: &Knobs, seed: u64) -> Model {
        let mut m = self.clone();
        for &d in &knobs.independent {
            m.drop_dependency(d, &mut Stream::new(seed, d.name()));
        }
        if knobs.request != 1.0 || knobs.response != 1.0 {
            for c in m.connections_mut(None) {
                resize(&mut c.exchange, knobs.request, knobs.response);
                for (writes, k) in c.writes.iter_mut().zip([knobs.request, knobs.response]) {
                    for w in writes {
                        w.after = scaled(w.after, k).max(1);
                    }
                }
            }
        }
        if knobs.think != 1.0 {
            for s in &mut m.sessions {
                for g in &mut s.groups {
                    g.think = g.think.scale(knobs.think);
                    for c in &mut g.connections {
                        if let Exchange::Sequential(turns) = &mut c.exchange {
                            for t in turns {
                                t.client_think = t.client_think.scale(knobs.think);
                            }
                        }
                    }
                }
            }
        }
        if let Some(rtt) = knobs.rtt {
            for p in &mut m.client_paths {
                p.rtt = rtt;
            }
            for p in &mut m.server_paths {
                p.rtt = Dur::ZERO;
            }
        }
        if let Some(rate) = knobs.access {
            for p in m.client_paths.iter_mut().chain(&mut m.server_paths) {
                p.up = Some(rate);
                p.down = Some(rate);
            }
        }
        m
    }

    fn connections_mut(&mut self, class: Option<u32>) -> impl Iterator<Item = &mut Connection> {
        self.sessions
            .iter_mut()
            .filter(move |s| class.is_none_or(|c| s.class == c))
            .flat_map(|s| &mut s.groups)
            .flat_map(|g| &mut g.connections)
    }

    fn drop_dependency(&mut self, dependency: Dependency, rng: &mut Stream) {
        let classes = 0..self.classes.len() as u32;
        match dependency {
            Dependency::ResponseOnRequest => classes.for_each(|c| {
                let it = self.turns_mut(Some(c)).filter(|t| t.response > 0);
                permute(it, rng, |t| &mut t.response);
            }),
            Dependency::SizeOnClass => {
                let sizes: Vec<_> = self
                    .turns_mut(None)
                    .map(|t| (t.request, t.response))
                    .collect();
                let sizes = shuffled(sizes, rng);
                for (t, (request, response)) in self.turns_mut(None).zip(sizes) {
                    (t.request, t.response) = (request, response);
                }
            }
            Dependency::ThinkOnSize => classes.for_each(|c| {
                permute(self.turns_mut(Some(c)), rng, |t| &mut t.server_think);
                permute(self.turns_mut(Some(c)), rng, |t| &mut t.client_think);
            }),
            Dependency::PathOnUser => {
                permute(self.sessions.iter_mut(), rng, |s| &mut s.client);
                let connections = self
                    .sessions
                    .iter_mut()
                    .flat_map(|s| &mut s.groups)
                    .flat_map(|g| &mut g.connections);
                permute(connections, rng, |c| &mut c.server);
            }
            Dependency::WithinSession => {
                for class in classes {
                    let taken = self.connections_mut(Some(class)).map(|c| {
                        let nothing = Exchange::Sequential(Vec::new());
                        let exchange = std::mem::replace(&mut c.exchange, nothing);
                        (exchange, std::mem::take(&mut c.writes), c.overlap.take())
                    });
                    let taken = shuffled(taken.collect(), rng);
                    let places = self.connections_mut(Some(class));
                    for (c, (exchange, writes, overlap)) in places.zip(taken) {
                        (c.exchange, c.writes, c.overlap) = (exchange, writes, overlap);
                    }
                }
                // No group waits for the last one.
                for last in self.sessions.iter_mut().filter_map(|s| s.groups.last_mut()) {
                    last.connections.iter_mut().for_each(|c| c.overlap = None);
                }
            }
            Dependency::CapacityOnRtt => {
                for paths in [&mut self.client_paths, &mut self.server_paths] {
                    let others = shuffled(paths.clone(), rng);
                    for (p, other) in paths.iter_mut().zip(others) {
                        *p = Path {
                            rtt: p.rtt,
                            rtt_samples: p.rtt_samples,
                            ..other
                        };
                    }
                }
            }
        }
    }

    fn turns_mut(&mut self, class: Option<u32>) -> impl Iterator<Item = &mut crate::Turn> {
        self.connections_mut(class)
            .flat_map(|c| match &mut c.exchange {
                Exchange::Sequential(turns) => turns.as_mut_slice(),
                _ => &mut [],
            })
    }
}

/// Scales bytes. Non-zero sizes keep at least one byte, unless the factor is zero.
fn scaled(bytes: u64, k: f64) -> u64 {
    match (bytes as f64 * k).round() as u64 {
        0 if bytes > 0 && k > 0.0 => 1,
        scaled => scaled,
    }
}

fn resize(exchange: &mut Exchange, request: f64, response: f64) {
    match exchange {
        Exchange::Sequential(turns) => {
            for t in turns {
                t.request = scaled(t.request, request);
                t.response = scaled(t.response, response);
            }
        }
        Exchange::Concurrent { up, down } => {
            up.iter_mut()
                .for_each(|u| u.bytes = scaled(u.bytes, request));
            down.iter_mut()
                .for_each(|u| u.bytes = scaled(u.bytes, response));
        }
        Exchange::Attempt { .. } => {}
        Exchange::Datagrams(d) => {
            for (_, client, bytes) in &mut d.packets {
                let k = if *client { request } else { response };
                *bytes = payload(*bytes, k);
            }
            for (runs, k) in d.runs.iter_mut().zip([request, response]) {
                for run in runs {
                    run.sizes = run.sizes.map(|bytes| payload(bytes, k));
                    let [least, most] = run.sizes.map(|b| u64::from(b) * u64::from(run.packets));
                    run.bytes = scaled(run.bytes, k).clamp(least, most);
                }
            }
        }
    }
}

/// A UDP payload is at most 65507 bytes over IPv4 (RFC 768, RFC 791).
fn payload(bytes: u32, k: f64) -> u32 {
    scaled(u64::from(bytes), k).min(65_507) as u32
}

/// Permutes one field of the items.
fn permute<'a, T: 'a, F: 'a>(
    items: impl Iterator<Item = &'a mut T>,
    rng: &mut Stream,
    field: impl Fn(&'a mut T) -> &'a mut F,
) {
    let mut fields: Vec<&'a mut F> = items.map(field).collect();
    for i in (1..fields.len()).rev() {
        let j = rng.below(i as u64 + 1) as usize;
        let (head, tail) = fields.split_at_mut(i);
        if j < i {
            std::mem::swap(head[j], tail[0]);
        }
    }
}

fn shuffled<T>(mut items: Vec<T>, rng: &mut Stream) -> Vec<T> {
    rng.shuffle(&mut items);
    items
}

#[cfg(test)]
mod tests;
