//! The knobs, and removal of dependencies (ablation).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate, Stream};

use crate::{Connection, Exchange, Model, Path, Turn};

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
/// its marginal distribution is unchanged: exactly, or in a thinned model on average over seeds.
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

impl Knobs {
    /// Whether [`Model::varied`] changes nothing.
    pub fn keep_the_model(&self) -> bool {
        let Knobs {
            sessions, phase, ..
        } = *self;
        *self
            == Knobs {
                sessions,
                phase,
                ..Knobs::default()
            }
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
            for (_, c) in m.connections_mut(None) {
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

    /// The connections of a class, or of all, with the weights of their sessions.
    fn connections_mut(
        &mut self,
        class: Option<u32>,
    ) -> impl Iterator<Item = (f64, &mut Connection)> {
        self.sessions
            .iter_mut()
            .filter(move |s| class.is_none_or(|c| s.class == c))
            .flat_map(|s| {
                let weight = s.weight;
                let groups = s.groups.iter_mut();
                groups.flat_map(move |g| g.connections.iter_mut().map(move |c| (weight, c)))
            })
    }

    fn drop_dependency(&mut self, dependency: Dependency, rng: &mut Stream) {
        let classes = 0..self.classes.len() as u32;
        match dependency {
            Dependency::ResponseOnRequest => classes.for_each(|c| {
                let it = self.turns_mut(Some(c)).filter(|(_, t)| t.response > 0);
                permute(it.map(|(w, t)| (w, &mut t.response)), rng, |&r| r);
            }),
            Dependency::SizeOnClass => {
                let sizes = |t: &Turn| (t.request, t.response);
                for pattern in PATTERNS {
                    let alike =
                        |(_, t): &(f64, &mut Turn)| [t.request > 0, t.response > 0] == pattern;
                    let donors = self.turns_mut(None).filter(alike);
                    let values = donors.map(|(w, t)| (w, sizes(t))).collect();
                    let drawn = redrawn(values, rng, |s| s.0.saturating_add(s.1));
                    // Both at once, so that no turn changes its pattern before its turn comes.
                    let takers = self.turns_mut(None).filter(alike);
                    for ((_, t), (request, response)) in takers.zip(drawn) {
                        (t.request, t.response) = (request, response);
                    }
                }
            }
            Dependency::ThinkOnSize => classes.for_each(|c| {
                // A think time without data after it is none, so such turns neither give nor take one.
                for asked in [true, false] {
                    let it = self.turns_mut(Some(c));
                    let it = it.filter(|(_, t)| t.response > 0 && (t.request > 0) == asked);
                    permute(it.map(|(w, t)| (w, &mut t.server_think)), rng, |d| {
                        d.as_nanos()
                    });
                }
                for pattern in PATTERNS {
                    let it = self.client_thinks_mut(c, pattern);
                    permute(it, rng, |d| d.as_nanos());
                }
            }),
            Dependency::PathOnUser => {
                let rtts = |paths: &[Path]| paths.iter().map(|p| p.rtt.as_nanos()).collect();
                let by_rtt: [Vec<u64>; 2] = [rtts(&self.client_paths), rtts(&self.server_paths)];
                let rtt = |side: usize, i: u32| by_rtt[side].get(i as usize).copied().unwrap_or(0);
                let clients = self.sessions.iter_mut().map(|s| (s.weight, &mut s.client));
                permute(clients, rng, |&i| rtt(0, i));
                let servers = self.connections_mut(None);
                permute(servers.map(|(w, c)| (w, &mut c.server)), rng, |&i| {
                    rtt(1, i)
                });
            }
            Dependency::WithinSession => {
                for class in classes {
                    let all = self.connections_mut(Some(class));
                    let values = all.map(|(w, c)| {
                        let nothing = Exchange::Sequential(Vec::new());
                        let exchange = std::mem::replace(&mut c.exchange, nothing);
                        let writes = std::mem::take(&mut c.writes);
                        // What waits for other connections of its session is no longer with them.
                        c.waits.clear();
                        (w, (exchange, writes, c.overlap.take()))
                    });
                    let drawn = redrawn(values.collect(), rng, |(exchange, ..)| {
                        let [up, down] = exchange.bytes();
                        up.saturating_add(down)
                    });
                    let places = self.connections_mut(Some(class));
                    for ((_, c), (exchange, writes, overlap)) in places.zip(drawn) {
                        (c.exchange, c.writes, c.overlap) = (exchange, writes, overlap);
                    }
                }
                // No group waits for the last one.
                for last in self.sessions.iter_mut().filter_map(|s| s.groups.last_mut()) {
                    last.connections.iter_mut().for_each(|c| c.overlap = None);
                }
            }
            Dependency::CapacityOnRtt => {
                let uses = self.path_weights();
                for (paths, weights) in [&mut self.client_paths, &mut self.server_paths]
                    .into_iter()
                    .zip(uses)
                {
                    let values = weights.into_iter().zip(paths.iter().cloned()).collect();
                    let others = redrawn(values, rng, |p| {
                        p.up.or(p.down).map_or(u64::MAX, |rate| rate.bps())
                    });
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

    /// How much each client path and each server path counts: one each, unless sessions have unequal weights. Then it
    /// is the weight of the sessions and connections that use it.
    fn path_weights(&self) -> [Vec<f64>; 2] {
        let mut weights = [&self.client_paths, &self.server_paths].map(|p| vec![0.0; p.len()]);
        if equal(self.sessions.iter().map(|s| s.weight)) {
            weights.iter_mut().for_each(|side| side.fill(1.0));
            return weights;
        }
        let mut add = |side: usize, path: u32, weight: f64| {
            if let Some(sum) = weights[side].get_mut(path as usize) {
                *sum += weight;
            }
        };
        for s in &self.sessions {
            add(0, s.client, s.weight);
            for c in s.connections() {
                add(1, c.server, s.weight);
            }
        }
        weights
    }

    fn turns_mut(&mut self, class: Option<u32>) -> impl Iterator<Item = (f64, &mut Turn)> {
        self.connections_mut(class).flat_map(|(weight, c)| {
            let turns = match &mut c.exchange {
                Exchange::Sequential(turns) => turns.as_mut_slice(),
                _ => &mut [],
            };
            turns.iter_mut().map(move |t| (weight, t))
        })
    }

    /// The client think times of a class before another turn, where `pattern` says whether the turn has a response
    /// and whether the next one has a request.
    fn client_thinks_mut(
        &mut self,
        class: u32,
        pattern: [bool; 2],
    ) -> impl Iterator<Item = (f64, &mut Dur)> {
        self.connections_mut(Some(class))
            .flat_map(move |(weight, c)| {
                let turns = match &mut c.exchange {
                    Exchange::Sequential(turns) => turns.as_mut_slice(),
                    _ => &mut [],
                };
                let next: Vec<bool> = turns.iter().skip(1).map(|t| t.request > 0).collect();
                let pairs = turns.iter_mut().zip(next);
                let pairs = pairs.filter(move |(t, asks)| [t.response > 0, *asks] == pattern);
                pairs.map(move |(t, _)| (weight, &mut t.client_think))
            })
    }
}

const PATTERNS: [[bool; 2]; 4] = [[true, true], [true, false], [false, true], [false, false]];

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

/// Redraws one field of weighted items.
fn permute<'a, F: Clone + 'a>(
    fields: impl Iterator<Item = (f64, &'a mut F)>,
    rng: &mut Stream,
    order: impl Fn(&F) -> u64,
) {
    let fields: Vec<_> = fields.collect();
    let values = fields.iter().map(|(w, f)| (*w, (**f).clone())).collect();
    for ((_, field), value) in fields.into_iter().zip(redrawn(values, rng, order)) {
        *field = value;
    }
}

/// Gives each place one of the values, so that their distribution stays and says nothing about the place.
///
/// Places of equal weight permute their values. Otherwise a value must go to a place with a probability in
/// proportion to its own weight: a value that a thinned model holds for itself alone would else stand for as many
/// as the place does. The places in random order and the values in the given order are laid out by weight along two
/// circles at a random angle to each other, and each place takes the value opposite its middle (systematic sampling:
/// Madow & Madow, Annals of Mathematical Statistics 15, 1944). So the distribution by weight is kept on average over
/// seeds. In one draw, the weight of all values up to any one differs by at most that of the places at both ends. If
/// few large values carry most of the load, that is a large part of it. Places of like weight alone would have less
/// variance, but the weight follows from what a session carried, so that the dependency would partly stay.
fn redrawn<T: Clone>(values: Vec<(f64, T)>, rng: &mut Stream, order: impl Fn(&T) -> u64) -> Vec<T> {
    if equal(values.iter().map(|v| v.0)) {
        let mut values: Vec<T> = values.into_iter().map(|v| v.1).collect();
        rng.shuffle(&mut values);
        return values;
    }
    let mut places: Vec<usize> = (0..values.len()).collect();
    rng.shuffle(&mut places);
    let mut donors: Vec<&(f64, T)> = values.iter().filter(|v| v.0 > 0.0).collect();
    donors.sort_by_key(|v| order(&v.1));
    let ends: Vec<f64> = donors
        .iter()
        .scan(0.0, |sum, v| {
            *sum += v.0;
            Some(*sum)
        })
        .collect();
    let all = ends.last().copied().unwrap_or(0.0);
    let mut at = rng.uniform() * all;
    let mut drawn: Vec<(usize, T)> = Vec::with_capacity(values.len());
    for place in places {
        let half = values[place].0 / 2.0;
        let middle = (at + half) % all;
        at = (middle + half) % all;
        // Sums of weights are rounded, so the last end may be passed.
        let donor = ends.partition_point(|&end| end <= middle);
        drawn.push((place, donors[donor.min(donors.len() - 1)].1.clone()));
    }
    drawn.sort_by_key(|(place, _)| *place);
    drawn.into_iter().map(|(_, value)| value).collect()
}

/// Whether all weights are equal.
fn equal(mut weights: impl Iterator<Item = f64>) -> bool {
    let first = weights.next();
    weights.all(|w| Some(w) == first)
}

#[cfg(test)]
mod tests;
