//! Thinning: a bounded weighted sample of sessions.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use swell_base::Stream;

use crate::file::text_of;
use crate::model::Thinning;
use crate::{Model, Session};

/// Bytes added to a session's size in its priority. Without them, the many small sessions (name look-ups)
/// would be dropped before the large ones; counts matter as well as bytes.
const BASE: f64 = 4_000.0;

/// Holds sessions up to a budget of items ([`Session::items`]); above it, a weighted sample.
///
/// *Within a class* it is a priority sample (Duffield, Lund & Thorup, "Priority sampling for estimation of
/// arbitrary subset sums", J. ACM 54(6), 2007). Session `i` of measure `x` has priority `x / u`, with `u`
/// uniform in (0, 1]. The sessions with the highest priorities are kept, and each represents `max(1, t /
/// x)` sessions, where `t` is the highest priority dropped. The measure is a session's bytes divided by
/// the square root of its items, the optimum for a budget of items (Cochran, Sampling Techniques, section
/// 5.5). So the largest sessions are kept, but one with many items must have bytes to justify them.
///
/// *Between classes* the budget is divided by the square roots of the items offered, so that small classes
/// keep most of their sessions.
///
/// *At the end* weights are raked class by class (Deming & Stephan, Annals of Mathematical Statistics 11,
/// 1940), to restore the distributions of connections, and of bytes, by connection size. Then they are
/// calibrated (Deville & Särndal, JASA 87, 1992), to restore the sums of sessions, connections and bytes
/// of either direction.
///
/// `N` is what goes with a session, and not into the model.
#[derive(Debug)]
pub struct Thinner<N = ()> {
    strata: Vec<Stratum<N>>,
    budget: usize,
    items: usize,
    seen: u64,
    /// Connections by their size, and their bytes.
    sizes: Sizes,
    rng: Stream,
}

/// The sessions of one class.
#[derive(Debug)]
struct Stratum<N> {
    heap: BinaryHeap<Held<N>>,
    items: usize,
    threshold: f64,
    offered_items: f64,
    /// Sums of [`facts`] over all sessions offered.
    offered: [f64; FACTS],
    /// Connections by their size, and their bytes.
    sizes: Sizes,
}

impl<N> Default for Stratum<N> {
    fn default() -> Stratum<N> {
        Stratum {
            heap: BinaryHeap::new(),
            items: 0,
            threshold: 0.0,
            offered_items: 0.0,
            offered: [0.0; FACTS],
            sizes: Sizes::default(),
        }
    }
}

#[derive(Debug)]
struct Held<N> {
    priority: f64,
    /// Order of arrival, which breaks ties.
    order: u64,
    measure: f64,
    items: usize,
    session: Session,
    note: N,
}

/// Number of calibrated quantities.
const FACTS: usize = 4;

/// Sessions, connections, bytes from the client and from the server.
fn facts(s: &Session) -> [f64; FACTS] {
    let [up, down] = s.bytes();
    [1.0, s.connections().count() as f64, up as f64, down as f64]
}

/// Most sessions that one stands for. No trace has as many, and sums over much larger weights would not be finite.
pub(crate) const MOST_WEIGHT: f64 = 1e15;

/// Calibrated weights stay within this factor of the sample's own.
const FARTHEST: f64 = 5.0;

impl Thinner {
    /// Keeps at most `budget` items; `seed` selects the sample.
    pub fn new(budget: usize, seed: u64) -> Thinner {
        Thinner::with_notes(budget, seed)
    }

    /// Offers a session. A session of weight 2 counts as two sessions.
    pub fn push(&mut self, session: Session) {
        self.push_with(session, ());
    }

    /// The sample with its weights, in the order offered; and the cost, if sessions were dropped.
    pub fn finish(self) -> (Vec<Session>, Option<Thinning>) {
        let (sessions, _, thinning) = self.finish_with();
        (sessions, thinning)
    }
}

impl<N> Thinner<N> {
    /// The same as [`Thinner::new`], with notes to the sessions.
    pub fn with_notes(budget: usize, seed: u64) -> Thinner<N> {
        Thinner {
            strata: Vec::new(),
            budget,
            items: 0,
            seen: 0,
            sizes: Sizes::default(),
            rng: Stream::new(seed, "thin"),
        }
    }

    /// Offers a session and what goes with it.
    pub fn push_with(&mut self, mut session: Session, note: N) {
        session.weight = session.weight.min(MOST_WEIGHT);
        let facts = facts(&session);
        let items = session.items();
        let measure = (facts[2] + facts[3] + BASE) * session.weight / (items.max(1) as f64).sqrt();
        let u = 1.0 - self.rng.uniform();
        self.sizes.add(&session);
        let class = session.class as usize;
        if self.strata.len() <= class {
            self.strata.resize_with(class + 1, Stratum::default);
        }
        let stratum = &mut self.strata[class];
        for (sum, fact) in stratum.offered.iter_mut().zip(facts) {
            *sum += fact * session.weight;
        }
        stratum.offered_items += items as f64;
        stratum.sizes.add(&session);
        stratum.items += items;
        stratum.heap.push(Held {
            priority: measure / u,
            order: self.seen,
            measure,
            items,
            session,
            note,
        });
        self.seen += 1;
        self.items += items;
        while self.items > self.budget {
            if self.drop_one().is_none() {
                break;
            }
        }
    }

    /// Drops the session of lowest priority in the class that most exceeds its share. `None` if each class has only one
    /// left, which it keeps.
    fn drop_one(&mut self) -> Option<Held<N>> {
        let over = |s: &Stratum<N>| s.items as f64 / s.offered_items.max(1.0).sqrt();
        let full = self.strata.iter_mut().filter(|s| s.heap.len() > 1);
        let fullest = full.max_by(|a, b| over(a).total_cmp(&over(b)))?;
        let gone = fullest.heap.pop()?;
        fullest.items -= gone.items;
        fullest.threshold = fullest.threshold.max(gone.priority);
        self.items -= gone.items;
        Some(gone)
    }

    /// Drops sessions until those held take at most about `bytes` in the text of a model, which a budget of items does
    /// not limit: sessions of few items, such as those of a scan, have much text for each. Returns whether it dropped any.
    pub fn fit(&mut self, bytes: usize) -> bool {
        let held = self.strata.iter().flat_map(|s| s.heap.iter());
        let mut text: usize = held.map(|h| text_of(&h.session)).sum();
        let mut dropped = false;
        while text > bytes {
            let Some(gone) = self.drop_one() else { break };
            text -= text_of(&gone.session);
            dropped = true;
        }
        dropped
    }

    /// Number of sessions offered so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Sums over all sessions offered: sessions, connections, bytes from clients and from servers.
    pub fn offered(&self) -> [f64; FACTS] {
        let mut sums = [0.0; FACTS];
        for stratum in &self.strata {
            for (sum, own) in sums.iter_mut().zip(stratum.offered) {
                *sum += own;
            }
        }
        sums
    }

    /// Number of items held now ([`Session::items`]).
    pub fn items(&self) -> usize {
        self.items
    }

    /// Number of sessions held now.
    pub fn held(&self) -> usize {
        self.strata.iter().map(|s| s.heap.len()).sum()
    }

    /// The sample with its weights, in the order offered; what goes with each; and the cost, if sessions were dropped.
    pub fn finish_with(self) -> (Vec<Session>, Vec<N>, Option<Thinning>) {
        let kept = self.held() as u64;
        let mut held: Vec<Held<N>> = Vec::with_capacity(kept as usize);
        for stratum in self.strata {
            let threshold = stratum.threshold;
            let mut own = stratum.heap.into_vec();
            own.sort_unstable_by_key(|h| h.order);
            if threshold > 0.0 {
                for h in &mut own {
                    h.session.weight *= (threshold / h.measure).max(1.0);
                }
                rake(&mut own, &stratum.sizes);
                calibrate(&mut own, &stratum.offered);
            }
            held.append(&mut own);
        }
        held.sort_unstable_by_key(|h| h.order);
        let (mut sessions, notes): (Vec<Session>, Vec<N>) =
            held.into_iter().map(|h| (h.session, h.note)).unzip();
        for session in &mut sessions {
            session.weight = session.weight.min(MOST_WEIGHT);
        }
        let thinning = (kept < self.seen).then(|| {
            let mut sizes = Sizes::default();
            sessions.iter().for_each(|s| sizes.add(s));
            let [connections, bytes] = sizes.distance(&self.sizes);
            Thinning {
                kept,
                seen: self.seen,
                w1_connections: connections,
                w1_bytes: bytes,
            }
        });
        (sessions, notes, thinning)
    }
}

/// Rounds of raking; weights hardly change after about ten.
const ROUNDS: usize = 20;
/// Maximum factor by which a round changes a weight.
const STEP: f64 = 2.0;

/// Adjusts the weights of a sample to the sizes of all sessions offered, alternating between the number of
/// connections by size and their bytes.
fn rake<N>(held: &mut [Held<N>], offered: &Sizes) {
    let own: Vec<[Vec<(usize, f64)>; 2]> = held
        .iter()
        .map(|h| {
            let mut parts: [Vec<(usize, f64)>; 2] = Default::default();
            for bytes in sizes(&h.session) {
                let bin = class_of(bytes);
                parts[0].push((bin, 1.0));
                parts[1].push((bin, bytes));
            }
            parts
        })
        .collect();
    let targets = [0, 1].map(|k| {
        let bins = offered.0[k].chunks(JOINED);
        bins.map(|b| b.iter().sum::<f64>()).collect::<Vec<f64>>()
    });
    for round in 0..2 * ROUNDS {
        let k = round % 2;
        let mut sums = vec![0.0; targets[k].len()];
        for (h, parts) in held.iter().zip(&own) {
            for &(bin, x) in &parts[k] {
                sums[bin] += h.session.weight * x;
            }
        }
        for (h, parts) in held.iter_mut().zip(&own) {
            let all: f64 = parts[k].iter().map(|p| p.1).sum();
            if all > 0.0 {
                let wanted = |&(bin, x): &(usize, f64)| x * targets[k][bin] / sums[bin];
                let factor = parts[k].iter().map(wanted).sum::<f64>() / all;
                h.session.weight *= factor.clamp(1.0 / STEP, STEP);
            }
        }
    }
}

/// Adjusts the weights of a sample so that its facts sum to those of all sessions offered.
fn calibrate<N>(held: &mut [Held<N>], offered: &[f64; FACTS]) {
    let base: Vec<f64> = held.iter().map(|h| h.session.weight).collect();
    let facts: Vec<[f64; FACTS]> = held.iter().map(|h| facts(&h.session)).collect();
    // As many facts as can be met without changing a weight too much; bytes take precedence over counts.
    let choices: [&[usize]; 4] = [&[0, 1, 2, 3], &[0, 2, 3], &[2, 3], &[3]];
    let factors = choices
        .iter()
        .find_map(|chosen| factors(&base, &facts, offered, chosen));
    for (i, h) in held.iter_mut().enumerate() {
        h.session.weight = base[i] * factors.as_ref().map_or(1.0, |f| f[i]);
    }
}

/// Linear calibration: weights times `1 + x·l`, so that the chosen facts sum to those offered. `None` if a
/// factor would be out of bounds.
fn factors(
    base: &[f64],
    facts: &[[f64; FACTS]],
    offered: &[f64; FACTS],
    chosen: &[usize],
) -> Option<Vec<f64>> {
    let n = chosen.len();
    let mut matrix = vec![vec![0.0; n + 1]; n];
    // Relative to the sums offered, so that all numbers have a similar magnitude.
    let unit = |k: usize| offered[chosen[k]].max(1.0);
    for (w, x) in base.iter().zip(facts) {
        for (r, row) in matrix.iter_mut().enumerate() {
            let xr = x[chosen[r]] / unit(r);
            for (c, cell) in row[..n].iter_mut().enumerate() {
                *cell += w * xr * x[chosen[c]] / unit(c);
            }
            row[n] -= w * xr;
        }
    }
    for (r, row) in matrix.iter_mut().enumerate() {
        row[n] += offered[chosen[r]] / unit(r);
    }
    let solution = solve(matrix);
    let mut all = Vec::with_capacity(base.len());
    for x in facts {
        let shift: f64 = (0..n).map(|k| solution[k] * x[chosen[k]] / unit(k)).sum();
        let factor = 1.0 + shift;
        if !(1.0 / FARTHEST..=FARTHEST).contains(&factor) {
            return None;
        }
        all.push(factor);
    }
    Some(all)
}

/// Solves a system of linear equations by elimination with pivoting; the right-hand side is the last
/// column. Variables without an independent equation are set to zero.
fn solve(mut m: Vec<Vec<f64>>) -> Vec<f64> {
    let n = m.len();
    let scale = (0..n).map(|i| m[i][i].abs()).fold(0.0, f64::max);
    let mut pivots = Vec::new();
    let mut row = 0;
    for column in 0..n {
        let best = (row..n).max_by(|&a, &b| m[a][column].abs().total_cmp(&m[b][column].abs()));
        let Some(best) = best.filter(|&b| m[b][column].abs() > 1e-9 * scale) else {
            continue;
        };
        m.swap(row, best);
        let pivot = m[row].clone();
        for (r, other) in m.iter_mut().enumerate() {
            if r != row {
                let k = other[column] / pivot[column];
                for (cell, p) in other.iter_mut().zip(&pivot) {
                    *cell -= k * p;
                }
            }
        }
        pivots.push((row, column));
        row += 1;
    }
    let mut solution = vec![0.0; n];
    for (r, c) in pivots {
        solution[c] = m[r][n] / m[r][c];
    }
    solution
}

/// Bins per octave of sizes.
const BINS: f64 = 8.0;
/// Bins that are raked together: half an octave.
const JOINED: usize = 4;

/// Sizes of the session's connections that have data.
fn sizes(session: &Session) -> impl Iterator<Item = f64> {
    session.connections().filter_map(|c| {
        let [up, down] = c.exchange.bytes();
        let bytes = up as f64 + down as f64;
        (bytes > 0.0).then_some(bytes)
    })
}

/// The size class used for raking.
fn class_of(bytes: f64) -> usize {
    bin_of(bytes) / JOINED
}

fn bin_of(bytes: f64) -> usize {
    (libm::log2(bytes) * BINS) as usize
}

/// Number of connections, and their bytes, by size bin.
#[derive(Debug)]
struct Sizes([Vec<f64>; 2]);

impl Default for Sizes {
    fn default() -> Sizes {
        // Both directions of a connection together are up to 2^65 bytes.
        let bins = 66 * BINS as usize;
        Sizes([vec![0.0; bins], vec![0.0; bins]])
    }
}

impl Sizes {
    fn add(&mut self, session: &Session) {
        for bytes in sizes(session) {
            let bin = bin_of(bytes);
            self.0[0][bin] += session.weight;
            self.0[1][bin] += session.weight * bytes;
        }
    }

    /// Wasserstein distance of the logarithms, octaves, to four decimals: of connections, and of bytes by
    /// the size of their connection.
    fn distance(&self, other: &Sizes) -> [f64; 2] {
        [0, 1].map(|k| {
            let total = |s: &[f64]| s.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            let (a, b) = (&self.0[k], &other.0[k]);
            let (all_a, all_b) = (total(a), total(b));
            let mut apart = 0.0;
            let mut sum = 0.0;
            for (x, y) in a.iter().zip(b) {
                apart += x / all_a - y / all_b;
                sum += apart.abs() / BINS;
            }
            (sum * 1e4).round() / 1e4
        })
    }
}

impl Model {
    /// The model with at most `budget` items in its sessions; see [`Thinner`]. Unchanged if it already
    /// fits.
    pub fn thinned(&self, budget: usize, seed: u64) -> Model {
        let mut thinner = Thinner::new(budget, seed);
        for s in &self.sessions {
            thinner.push(s.clone());
        }
        let (sessions, thinning) = thinner.finish();
        let mut m = Model {
            sessions,
            ..self.clone()
        };
        m.provenance.thinning = thinning.or(m.provenance.thinning);
        m
    }
}

// The heap's maximum is dropped first: the lowest priority, and the latest among equals.
impl<N> Ord for Held<N> {
    fn cmp(&self, other: &Held<N>) -> Ordering {
        other
            .priority
            .total_cmp(&self.priority)
            .then(self.order.cmp(&other.order))
    }
}
impl<N> PartialOrd for Held<N> {
    fn partial_cmp(&self, other: &Held<N>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<N> PartialEq for Held<N> {
    fn eq(&self, other: &Held<N>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<N> Eq for Held<N> {}

#[cfg(test)]
mod tests;
