//! Expressions over the flow records of a link's exporter, and over the model learnt from them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rhai::Engine;
use swell_base::Dur;
use swell_experiment::exporter::BIN;
use swell_experiment::observe::{Exported, TrueFlow};
use swell_learn::FlowLearner;
use swell_stats::{Ecdf, Octave, energies};
use swell_traffic::flowlevel::{FlowModel, Law, Options};

use super::script;

/// Number of vanishing moments of the wavelet.
const MOMENTS: usize = 3;

type Answer<T> = Result<T, Box<rhai::EvalAltResult>>;

/// The records of a run's link, if they are kept.
#[derive(Clone, Default)]
pub(super) struct Records(Option<Arc<Kept>>);

struct Kept {
    exported: Arc<Exported>,
    /// Length of the run, seconds.
    seconds: f64,
    /// Models by the length of their intervals: several measures ask for the same one.
    models: Mutex<BTreeMap<u64, Option<Arc<FlowModel>>>>,
    octaves: Mutex<Option<Arc<Vec<Octave>>>>,
}

impl Records {
    pub(super) fn new(exported: Option<Arc<Exported>>, seconds: f64) -> Records {
        Records(exported.map(|exported| {
            Arc::new(Kept {
                exported,
                seconds,
                models: Mutex::default(),
                octaves: Mutex::default(),
            })
        }))
    }

    fn kept(&self) -> Answer<&Kept> {
        match &self.0 {
            Some(kept) => Ok(kept),
            None => script::wrong(
                "flow records are not kept: write keep = { records = {} } under [run] of the experiment",
            ),
        }
    }

    /// The flow-level model with intervals of `seconds`.
    fn learnt(&self, seconds: f64) -> Answer<Learnt> {
        let kept = self.kept()?;
        if !(0.001..=1e9).contains(&seconds) {
            return script::wrong("an interval is a millisecond at least");
        }
        let mut models = kept.models.lock().unwrap_or_else(PoisonError::into_inner);
        let model = models.entry(seconds.to_bits()).or_insert_with(|| {
            let mut learner = FlowLearner::new(Options {
                interval: Dur::from_secs_f64(seconds),
                ..Options::default()
            });
            let records = &kept.exported.records;
            records.iter().for_each(|r| learner.push(r));
            learner
                .finish("records", Default::default())
                .ok()
                .map(Arc::new)
        });
        Ok(Learnt(model.clone()))
    }

    /// Wavelet energy of the bytes of both directions, in octaves (log2), at the timescale nearest to `seconds`; NaN if
    /// there is none.
    fn energy(&self, seconds: f64) -> Answer<f64> {
        let kept = self.kept()?;
        let mut known = kept.octaves.lock().unwrap_or_else(PoisonError::into_inner);
        let octaves = known.get_or_insert_with(|| {
            let bins = (kept.seconds / BIN.as_secs_f64()).round() as usize;
            let counts = kept.exported.bytes.iter().map(|&n| f64::from(n));
            let counts: Vec<f64> = counts.chain(std::iter::repeat(0.0)).take(bins).collect();
            Arc::new(energies(&counts, MOMENTS))
        });
        let off = |o: &&Octave| (o.timescale(BIN).as_secs_f64() / seconds).log2().abs();
        let nearest = octaves.iter().min_by(|a, b| off(a).total_cmp(&off(b)));
        let near = nearest.filter(|o| off(o) <= 0.5);
        Ok(near.map_or(f64::NAN, Octave::y))
    }

    /// Start and end times of flows, both by their records and by their packets.
    fn times(&self, payload: bool, sweep: f64) -> Answer<Times> {
        let exported = &self.kept()?.exported;
        let sweep = Dur::from_secs_f64(sweep.clamp(0.0, 1e6));
        Ok(Times(Arc::new(matched(exported, payload, sweep))))
    }
}

/// A flow-level model; without one, all numbers are NaN.
#[derive(Clone)]
struct Learnt(Option<Arc<FlowModel>>);

impl Learnt {
    fn number(&self, of: impl Fn(&FlowModel) -> Option<f64>) -> f64 {
        self.0.as_ref().and_then(|m| of(m)).unwrap_or(f64::NAN)
    }

    fn values(&self, of: impl Fn(&FlowModel) -> Option<Law>, unit: f64) -> Values {
        Values {
            law: self.0.as_ref().and_then(|m| of(m)).map(Arc::new),
            unit,
        }
    }

    /// The share of all sessions that the server of this rank has; ranks start at 1.
    fn popularity(&self, rank: f64) -> f64 {
        self.number(|m| {
            let all = &m.tcp.destinations;
            let mut left = rank;
            let found = all.ranks.iter().find(|(_, hosts)| {
                left -= *hosts as f64;
                left <= 0.0
            });
            Some(found.map_or(0.0, |r| r.0 as f64) / all.total().max(1) as f64)
        })
    }
}

/// A learnt distribution.
#[derive(Clone)]
struct Values {
    law: Option<Arc<Law>>,
    /// The unit of the law's values.
    unit: f64,
}

impl Values {
    fn number(&self, of: impl Fn(&Law) -> f64) -> f64 {
        self.law.as_ref().map_or(f64::NAN, |l| of(l)) * self.unit
    }
}

/// A flow's start and end in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Timed {
    hosts: [IpAddr; 2],
    /// Start and end according to its records.
    said: [i64; 2],
    /// Start and end according to its packets.
    was: [i64; 2],
}

#[derive(Clone)]
struct Times(Arc<Vec<Timed>>);

impl Times {
    /// How late records are, in seconds, at the start (0) or the end (1) of flows.
    fn late(&self, which: usize) -> Late {
        let off = |f: &Timed| (f.said[which] - f.was[which]) as f64 / 1e9;
        Late(Arc::new(Ecdf::new(self.0.iter().map(off).collect())))
    }
}

#[derive(Clone)]
struct Late(Arc<Ecdf>);

/// Matches flows with their records. Flows without a record in the cache are left out; with `payload`, so are flows
/// without payload. `sweep` models a cache whose entries hold no time of their last packet. Such a cache is swept
/// periodically, and entries used since the last sweep are stamped with the time of the sweep.
fn matched(exported: &Exported, payload: bool, sweep: Dur) -> Vec<Timed> {
    let mut index: BTreeMap<[(IpAddr, u16); 2], Vec<[i64; 2]>> = BTreeMap::new();
    for r in &exported.records {
        let ends = [(r.src, r.src_port), (r.dst, r.dst_port)];
        index.entry(ends).or_default().push([r.first, r.last]);
    }
    let timed = |flow: &TrueFlow| {
        let was = if payload { flow.payload? } else { flow.packets };
        // Ports may be reused: the records of this flow lie within its packets.
        let [from, to] = flow.packets;
        let own = index.get(&flow.ends)?.iter();
        let mut own = own.filter(|r| r[0] >= from && r[1] <= to).peekable();
        own.peek()?;
        let said = own.fold([i64::MAX, i64::MIN], |s, r| {
            [s[0].min(r[0]), s[1].max(r[1])]
        });
        Some(Timed {
            hosts: [flow.ends[0].0, flow.ends[1].0],
            said: [said[0], stamped(said[1], sweep)],
            was,
        })
    };
    exported.flows.iter().filter_map(timed).collect()
}

/// The time stamped as the end of a flow: the first sweep after its last packet.
fn stamped(last: i64, sweep: Dur) -> i64 {
    match i64::try_from(sweep.as_nanos()) {
        Ok(period) if period > 0 => (last.div_euclid(period) + 1) * period,
        _ => last,
    }
}

/// Sessions by their lifetimes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sessions {
    count: u64,
    /// Sum of session lifetimes, first start to last end, in seconds. Spread proportionally over intervals, as in the
    /// paper, this equals the active sessions of each interval times its length.
    lifetimes: f64,
}

/// Counts sessions as Sommers & Barford first did: the connections of a host pair, from the earliest start to the
/// latest end. A pause of more than `gap` seconds between two connections ends a session.
fn sessions(flows: &[Timed], gap: f64, times: impl Fn(&Timed) -> [i64; 2]) -> Sessions {
    let mut pairs: BTreeMap<[IpAddr; 2], Vec<[i64; 2]>> = BTreeMap::new();
    for flow in flows {
        let mut pair = flow.hosts;
        pair.sort_unstable();
        pairs.entry(pair).or_default().push(times(flow));
    }
    let gap = (gap * 1e9) as i64;
    let (mut count, mut nanos) = (0u64, 0i64);
    for spans in pairs.values_mut() {
        spans.sort_unstable();
        let mut spans = spans.iter();
        let Some(&first) = spans.next() else { continue };
        let (mut begin, mut start, mut end) = (first[0], first[0], first[1]);
        for &[next, last] in spans {
            if next - start > gap {
                count += 1;
                nanos += end - begin;
                (begin, end) = (next, last);
            }
            start = next;
            end = end.max(last);
        }
        count += 1;
        nanos += end - begin;
    }
    Sessions {
        count,
        lifetimes: nanos as f64 / 1e9,
    }
}

/// Registers the types with the expression engine.
pub(super) fn register(engine: &mut Engine) {
    fn number(x: Option<f64>) -> f64 {
        x.unwrap_or(f64::NAN)
    }
    engine
        .register_type_with_name::<Records>("records")
        .register_fn("learnt", |r: Records, seconds: f64| r.learnt(seconds))
        .register_fn("learnt", |r: Records, seconds: i64| {
            r.learnt(seconds as f64)
        })
        .register_fn("energy", |r: Records, seconds: f64| r.energy(seconds))
        .register_fn("times", |r: Records, payload: bool, sweep: f64| {
            r.times(payload, sweep)
        })
        .register_get("count", |r: &mut Records| {
            Ok::<f64, Box<rhai::EvalAltResult>>(r.kept()?.exported.records.len() as f64)
        });
    engine
        .register_type_with_name::<Learnt>("flow model")
        .register_get("connections", |m: &mut Learnt| {
            m.number(|m| Some(m.tcp.down.count() as f64))
        })
        .register_get("sizes", |m: &mut Learnt| {
            m.values(|m| m.tcp.down.law(), 1.0)
        })
        .register_get("gaps", |m: &mut Learnt| m.values(FlowModel::gap_law, 1e-6))
        .register_get("bytes", |m: &mut Learnt| {
            let sum = |of: &FlowModel| of.tcp.intervals.iter().map(|i| i.bytes).sum::<u64>();
            m.number(|model| Some(sum(model) as f64))
        })
        .register_get("session_bytes", |m: &mut Learnt| {
            m.number(FlowModel::session_bytes)
        })
        .register_fn("popularity", |m: Learnt, rank: f64| m.popularity(rank))
        .register_fn("connections_in", |m: Learnt, interval: f64| {
            m.number(|model| {
                let found = model.tcp.intervals.get(interval as usize);
                found.map(|i| i.connections as f64)
            })
        });
    engine
        .register_type_with_name::<Values>("distribution")
        .register_get("mean", |v: &mut Values| v.number(Law::mean))
        .register_fn("quantile", |v: Values, p: f64| v.number(|l| l.quantile(p)));
    let all = |gap: f64, t: &Times, packets: bool| {
        sessions(&t.0, gap, |f| if packets { f.was } else { f.said })
    };
    engine
        .register_type_with_name::<Times>("flow times")
        .register_get("count", |t: &mut Times| t.0.len() as f64)
        .register_get("begin", |t: &mut Times| t.late(0))
        .register_get("end", |t: &mut Times| t.late(1))
        .register_fn("sessions", move |t: Times, gap: f64, packets: bool| {
            all(gap, &t, packets).count as f64
        })
        .register_fn("lifetimes", move |t: Times, gap: f64, packets: bool| {
            all(gap, &t, packets).lifetimes
        });
    engine
        .register_type_with_name::<Late>("lateness")
        .register_get("mean", |l: &mut Late| number(l.0.mean()))
        .register_get("sd", |l: &mut Late| number(l.0.sd()))
        .register_fn("quantile", |l: Late, p: f64| number(l.0.quantile(p)));
}

#[cfg(test)]
#[path = "tests/records.rs"]
mod tests;
