//! The view that expressions have of a run: its result tables as numbers.

use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, ImmutableString};
use swell_base::Direction;
use swell_experiment::observe::{
    Bin, Flow, Observations, Outcome, Request, RoundTrip, Scale, Synchrony, Wait, WindowGap,
};
use swell_stats::{Ecdf, KaplanMeier, Observation};

use super::part::Part;
use super::records::Records;
use super::script;
use super::values::{self, CDF, Measures, Values};

/// The largest packet without headers of the link layer, bytes.
const PACKET: f64 = 1500.0;

/// The tables of a run.
#[derive(Clone)]
pub(super) struct Tables {
    pub up: DirectionView,
    pub down: DirectionView,
    pub requests: Requests,
    pub flows: Flows,
    pub measures: Measures,
    pub records: Records,
}

/// Facts about a run that its tables do not hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// Length of the warm-up, seconds.
    pub warmup: f64,
    /// Length of the run, warm-up included, seconds.
    pub seconds: f64,
    /// Width of the bins, seconds.
    pub width: f64,
    /// One-way propagation delay of the bottleneck up and down, seconds.
    pub delays: [f64; 2],
    /// Whether waiting times are kept.
    pub waits: bool,
    /// Whether loss synchrony is kept.
    pub synchrony: bool,
    /// Whether round trips of packets are kept.
    pub rtts: bool,
    /// Whether gaps between windows are kept.
    pub gaps: bool,
    /// Whether flow records are kept.
    pub records: bool,
}

impl Tables {
    /// The tables of a run.
    pub(super) fn new(observed: Observations, facts: &Facts) -> Tables {
        let exported = observed.exported.into_iter().next();
        let records = facts.records.then(|| exported.unwrap_or_default());
        let records = Records::new(records, facts.seconds);
        let [mut up, mut down] = [Vec::new(), Vec::new()];
        for bin in observed.bins {
            if bin.direction == Direction::Up {
                &mut up
            } else {
                &mut down
            }
            .push(bin);
        }
        let rate = |d: Direction| {
            let link = observed.links.iter().find(|l| l.direction == d);
            link.map_or(f64::NAN, |l| l.rate)
        };
        let waits = facts.waits.then(|| Arc::new(observed.waits));
        let scales = Arc::new(observed.scales);
        let rtts = facts.rtts.then(|| Arc::new(observed.rtts));
        let gaps = facts.gaps.then(|| Arc::new(observed.gaps));
        let synchrony = |d: Direction| {
            let found = observed.synchrony.iter().find(|s| s.direction == d);
            facts
                .synchrony
                .then(|| found.cloned().unwrap_or_else(nothing))
        };
        let way = |d: Direction, bins| DirectionView {
            bins: Arc::new(bins),
            width: facts.width,
            from: facts.warmup,
            warmup: facts.warmup,
            to: facts.seconds,
            part: Part::default(),
            end: facts.seconds,
            rate: rate(d),
            delay: facts.delays[d],
            direction: d,
            waits: waits.clone(),
            synchrony: synchrony(d),
            rtts: rtts.clone(),
            gaps: gaps.clone(),
            scales: Arc::clone(&scales),
        };
        Tables {
            up: way(Direction::Up, up),
            down: way(Direction::Down, down),
            requests: Requests {
                rows: Arc::new(observed.requests),
            },
            flows: Flows(Arc::new(observed.flows)),
            measures: Measures::new(observed.measures, facts.warmup),
            records,
        }
    }
}

/// One direction of the bottleneck, restricted to an interval of time.
#[derive(Clone)]
pub(super) struct DirectionView {
    bins: Arc<Vec<Bin>>,
    pub width: f64,
    from: f64,
    warmup: f64,
    to: f64,
    part: Part,
    /// The end of the run.
    end: f64,
    pub rate: f64,
    /// Propagation, seconds.
    pub delay: f64,
    /// Which direction.
    pub direction: Direction,
    /// Waiting times in both directions, if they are kept.
    waits: Option<Arc<Vec<Wait>>>,
    /// Loss synchrony, if it is kept.
    synchrony: Option<Synchrony>,
    /// Round trips of the foreground's packets sent either way, if they are kept.
    rtts: Option<Arc<Vec<RoundTrip>>>,
    /// Gaps between windows of the foreground sent either way, if they are kept.
    gaps: Option<Arc<Vec<WindowGap>>>,
    /// Wavelet energies of both directions.
    scales: Arc<Vec<Scale>>,
}

/// Synchrony of a run without drops and acknowledgements.
fn nothing() -> Synchrony {
    Synchrony {
        link: "".into(),
        direction: Direction::Up,
        flows: 0,
        events: 0,
        share: f64::NAN,
        independent: f64::NAN,
        acks: 0,
        compressed: 0,
    }
}

impl DirectionView {
    /// The bins that begin in [`from`, `to`). Bin times are sums of widths, so a tolerance of 1e-9 s absorbs rounding.
    pub(super) fn bins(&self) -> impl Iterator<Item = &Bin> {
        let inside = |b: &&Bin| b.time >= self.from - 1e-9 && b.time < self.to - 1e-9;
        let inside = move |b: &&Bin| inside(b) && self.part.holds(b.time + 1e-9);
        self.bins.iter().filter(inside)
    }

    pub(super) fn sum(&self, f: impl Fn(&Bin) -> f64) -> f64 {
        self.bins().map(f).sum()
    }

    /// Whether it is the whole run after the warm-up. Some tables are known of that only.
    fn is_whole(&self) -> bool {
        self.from == self.warmup && self.to == self.end && self.part == Part::default()
    }

    fn before(&self, seconds: f64) -> DirectionView {
        DirectionView {
            to: seconds.min(self.to),
            ..self.clone()
        }
    }

    fn after(&self, seconds: f64) -> DirectionView {
        DirectionView {
            from: seconds.max(0.0),
            ..self.clone()
        }
    }

    fn in_period(&self, part: Part) -> DirectionView {
        DirectionView {
            part,
            ..self.clone()
        }
    }

    /// Loss synchrony, which is recorded from the end of the warm-up on; otherwise why it is missing.
    fn synchrony(&self) -> Result<&Synchrony, &'static str> {
        match &self.synchrony {
            None => Err(
                "losses of single flows are not kept: write keep = { synchrony = true } under [run] of the experiment",
            ),
            Some(_) if !self.is_whole() => Err(
                "how connections lose together is known of the whole run after the warm-up only",
            ),
            Some(synchrony) => Ok(synchrony),
        }
    }

    /// Round trips of the foreground's packets that were sent this way; otherwise why they are missing.
    fn rtts(&self) -> Result<Values, &'static str> {
        let Some(rows) = &self.rtts else {
            return Err(
                "round trips are not kept: write keep = { rtts = true } under [run] of the experiment",
            );
        };
        let own = rows.iter().filter(|r| self.shows(r.direction, r.at));
        Ok(Values::new(own.map(|r| r.rtt).collect()))
    }

    /// Gaps between windows of the foreground that were sent this way; otherwise why they are missing.
    fn gaps(&self) -> Result<Values, &'static str> {
        let Some(rows) = &self.gaps else {
            return Err(
                "gaps between windows are not kept: write keep = { gaps = true } under [run] of the experiment",
            );
        };
        let own = rows.iter().filter(|g| self.shows(g.direction, g.at));
        Ok(Values::new(own.map(|g| g.gap).collect()))
    }

    /// Whether something sent in this direction at this time is part of the view.
    fn shows(&self, direction: Direction, at: f64) -> bool {
        direction == self.direction && at >= self.from && at < self.to && self.part.holds(at)
    }

    /// The waiting times of both directions, recorded from the end of the warm-up on; otherwise why they are missing.
    pub(super) fn waits(&self) -> Result<&[Wait], &'static str> {
        match &self.waits {
            None => Err(
                "waits are not kept: write keep = { waits = true } under [run] of the experiment",
            ),
            Some(_) if !self.is_whole() => {
                Err("waits are known of the whole run after the warm-up only")
            }
            Some(waits) => Ok(waits),
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        if self.part != Part::default() {
            return self.bins().count() as f64 * self.width;
        }
        let first = self.bins().next();
        first.map_or(0.0, |b| self.to - b.time)
    }

    /// Coefficient of variation of the arrivals per whole bin, drops included.
    fn cov(&self) -> f64 {
        let whole = |b: &&Bin| b.time + self.width <= self.to + 1e-9;
        let counts: Vec<f64> = self.bins().filter(whole).map(arrived).collect();
        swell_stats::cov(&counts).unwrap_or(f64::NAN)
    }

    fn queue(&self) -> f64 {
        let seen = |b: &Bin| {
            if b.queue_mean.is_nan() {
                0.0
            } else {
                b.queue_mean * arrived(b)
            }
        };
        self.sum(seen) / self.sum(arrived)
    }

    /// Wavelet energy of all arriving bytes or of the background's, in octaves (log2), at the timescale nearest to
    /// `seconds`. NaN if nothing arrived.
    pub(super) fn energy(&self, background: bool, seconds: f64) -> Result<f64, &'static str> {
        if !self.is_whole() {
            return Err("energies are known of the whole run after the warm-up only");
        }
        let traffic = if background { "background" } else { "all" };
        let mine = (self.scales.iter()).filter(|s| {
            (s.direction, &*s.traffic, &*s.quantity) == (self.direction, traffic, "bytes")
        });
        let off = |s: &&Scale| (s.timescale / seconds).log2().abs();
        let nearest = mine.min_by(|a, b| off(a).total_cmp(&off(b)));
        // More than half an octave away is another timescale.
        let near = nearest.filter(|s| off(s) <= 0.5);
        Ok(near.map_or(f64::NAN, |s| s.energy.log2()))
    }

    fn register(engine: &mut Engine) {
        type D = DirectionView;
        fn both<T: Into<f64>>(of: [T; 2]) -> f64 {
            let [a, b] = of.map(Into::into);
            a + b
        }
        fn bytes(of: [u64; 2]) -> f64 {
            (of[0] + of[1]) as f64
        }
        engine
            .register_type_with_name::<D>("direction")
            .register_fn("before", |d: D, seconds: f64| d.before(seconds))
            .register_fn("before", |d: D, seconds: i64| d.before(seconds as f64))
            .register_fn("after", |d: D, seconds: f64| d.after(seconds))
            .register_fn("after", |d: D, seconds: i64| d.after(seconds as f64))
            .register_fn("in_period", |d: D, period: f64, from: f64, to: f64| {
                Part::new(period, from, to).map(|part| d.in_period(part))
            })
            .register_get("seconds", |d: &mut D| d.seconds())
            .register_get("rate", |d: &mut D| d.rate)
            .register_get("arrived", |d: &mut D| d.sum(arrived))
            .register_get("arrived_foreground", |d: &mut D| {
                d.sum(|b| f64::from(b.arrived_packets[0]))
            })
            .register_get("arrived_background", |d: &mut D| {
                d.sum(|b| f64::from(b.arrived_packets[1]))
            })
            .register_get("arrived_bytes", |d: &mut D| d.sum(|b| bytes(b.arrived)))
            .register_get("dropped", |d: &mut D| d.sum(|b| both(b.dropped)))
            .register_get("dropped_foreground", |d: &mut D| {
                d.sum(|b| f64::from(b.dropped[0]))
            })
            .register_get("dropped_background", |d: &mut D| {
                d.sum(|b| f64::from(b.dropped[1]))
            })
            .register_get("departed_bytes", |d: &mut D| d.sum(|b| bytes(b.departed)))
            .register_get("departed_bytes_foreground", |d: &mut D| {
                d.sum(|b| b.departed[0] as f64)
            })
            .register_get("departed_bytes_background", |d: &mut D| {
                d.sum(|b| b.departed[1] as f64)
            })
            .register_get("loss", |d: &mut D| {
                ratio(d.sum(|b| both(b.dropped)), d.sum(arrived))
            })
            .register_get("utilisation", |d: &mut D| {
                let (used, able) = (d.sum(|b| bytes(b.departed)) * 8.0, d.rate * d.seconds());
                // A packet counts whole where it has left, also if it began to leave before the first bin. So a full
                // link may have sent up to a packet more than it could.
                let full = used > able && used - able <= PACKET * 8.0;
                if full { 1.0 } else { used / able }
            })
            .register_get("cov", |d: &mut D| d.cov())
            .register_get("queue", |d: &mut D| d.queue())
            .register_get("queue_max", |d: &mut D| {
                d.bins().map(|b| b.queue_max).max().unwrap_or(0) as f64
            })
            .register_get("synchrony", |d: &mut D| together(d, |s| s.share))
            .register_get("synchrony_alone", |d: &mut D| {
                together(d, |s| s.independent)
            })
            .register_get("compressed", |d: &mut D| {
                together(d, |s| ratio(s.compressed as f64, s.acks as f64))
            })
            .register_get("rtts", |d: &mut D| d.rtts().or_else(script::wrong))
            .register_get("gaps", |d: &mut D| d.gaps().or_else(script::wrong))
            .register_fn("energy", |d: D, seconds: f64| energy(&d, false, seconds))
            .register_fn("energy", |d: D, seconds: i64| {
                energy(&d, false, seconds as f64)
            });
    }
}

fn together(
    way: &DirectionView,
    number: fn(&Synchrony) -> f64,
) -> Result<f64, Box<rhai::EvalAltResult>> {
    let known = way.synchrony().map(number);
    known.or_else(script::wrong)
}

pub(super) fn energy(
    way: &DirectionView,
    background: bool,
    seconds: f64,
) -> Result<f64, Box<rhai::EvalAltResult>> {
    way.energy(background, seconds).or_else(script::wrong)
}

fn arrived(bin: &Bin) -> f64 {
    f64::from(bin.arrived_packets[0]) + f64::from(bin.arrived_packets[1])
}

/// `part / whole`, or zero if `whole` is zero.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The requests of the foreground. Unfinished requests are right-censored at the time observed, failed ones never
/// complete. Percentiles are Kaplan-Meier estimates, as in the verdict of a run.
#[derive(Clone)]
pub(super) struct Requests {
    rows: Arc<Vec<Request>>,
}

impl Requests {
    fn all(&self) -> KaplanMeier {
        let times = self.rows.iter().map(|r| match r.outcome {
            Outcome::Done => Observation::complete(r.last_byte - r.start),
            Outcome::Unfinished => Observation::at_least(r.observed_until - r.start),
            Outcome::Failed => Observation::at_least(f64::INFINITY),
        });
        KaplanMeier::new(times)
    }

    /// The requests that begin in a part of each period.
    fn in_period(&self, part: Part) -> Requests {
        let own = self.rows.iter().filter(|r| part.holds(r.start));
        Requests {
            rows: Arc::new(own.cloned().collect()),
        }
    }

    /// The times of the finished requests.
    fn times(&self) -> Vec<f64> {
        let done = self.rows.iter().filter(|q| q.outcome == Outcome::Done);
        done.map(|q| q.last_byte - q.start).collect()
    }

    fn quantile(&self, p: f64) -> f64 {
        self.all().quantile(p.clamp(0.0, 1.0)).unwrap_or(f64::NAN)
    }

    /// The share of requests that took at most `seconds`: one minus the Kaplan-Meier survival.
    fn within(&self, seconds: f64) -> f64 {
        if self.rows.is_empty() {
            return f64::NAN;
        }
        self.all().cdf(seconds)
    }

    /// The distribution function as [seconds, share].
    fn cdf(&self) -> Array {
        let point = |x: f64, y: f64| -> Dynamic { vec![Dynamic::from(x), Dynamic::from(y)].into() };
        let steps = self.all().steps();
        // Lists in expressions are limited in length.
        let every = steps.len().div_ceil(CDF).max(1);
        let last = steps.len().saturating_sub(1);
        let shown = steps.iter().enumerate();
        let shown = shown.filter(|(i, _)| i % every == 0 || *i == last);
        shown.map(|(_, s)| point(s.value, s.cdf)).collect()
    }

    fn count(&self, outcome: Outcome) -> f64 {
        self.rows.iter().filter(|r| r.outcome == outcome).count() as f64
    }

    fn register(engine: &mut Engine) {
        type R = Requests;
        engine
            .register_type_with_name::<R>("requests")
            .register_get("count", |r: &mut R| r.rows.len() as f64)
            .register_get("done", |r: &mut R| r.count(Outcome::Done))
            .register_get("unfinished", |r: &mut R| r.count(Outcome::Unfinished))
            .register_get("failed", |r: &mut R| r.count(Outcome::Failed))
            .register_get("bytes", |r: &mut R| {
                r.rows.iter().map(|q| q.bytes).sum::<u64>() as f64
            })
            .register_get("retransmissions", |r: &mut R| {
                r.rows
                    .iter()
                    .map(|q| f64::from(q.retransmissions))
                    .sum::<f64>()
            })
            .register_get("mean", |r: &mut R| {
                swell_stats::mean(&r.times()).unwrap_or(f64::NAN)
            })
            .register_get("sd", |r: &mut R| {
                Ecdf::new(r.times()).sd().unwrap_or(f64::NAN)
            })
            .register_fn("in_period", |r: R, period: f64, from: f64, to: f64| {
                Part::new(period, from, to).map(|part| r.in_period(part))
            })
            .register_get("cdf", |r: &mut R| r.cdf())
            .register_get("median", |r: &mut R| r.quantile(0.5))
            .register_get("p95", |r: &mut R| r.quantile(0.95))
            .register_fn("quantile", |r: R, p: f64| r.quantile(p))
            .register_fn("within", |r: R, seconds: f64| r.within(seconds))
            .register_fn("within", |r: R, seconds: i64| r.within(seconds as f64));
    }
}

/// Connections and datagram flows of the background, and of foregrounds at packet level.
#[derive(Clone)]
pub(super) struct Flows(Arc<Vec<Flow>>);

impl Flows {
    fn of(&self, class: &str) -> Flows {
        let mine = self.0.iter().filter(|f| f.class == class);
        Flows(Arc::new(mine.cloned().collect()))
    }

    fn register(engine: &mut Engine) {
        type F = Flows;
        engine
            .register_type_with_name::<F>("flows")
            .register_fn("of", |f: F, class: ImmutableString| f.of(&class))
            .register_get("count", |f: &mut F| f.0.len() as f64)
            .register_get("up", |f: &mut F| {
                f.0.iter().map(|x| x.up).sum::<u64>() as f64
            })
            .register_get("down", |f: &mut F| {
                f.0.iter().map(|x| x.down).sum::<u64>() as f64
            })
            .register_get("retransmissions", |f: &mut F| {
                f.0.iter()
                    .map(|x| f64::from(x.retransmissions))
                    .sum::<f64>()
            })
            .register_get("rtt", |f: &mut F| {
                let known: Vec<f64> = f.0.iter().map(|x| x.rtt).filter(|x| !x.is_nan()).collect();
                swell_stats::mean(&known).unwrap_or(f64::NAN)
            });
    }
}

/// Registers the types with the expression engine.
pub(super) fn register(engine: &mut Engine) {
    DirectionView::register(engine);
    Requests::register(engine);
    Flows::register(engine);
    values::register(engine);
}

#[cfg(test)]
#[path = "tests/tables.rs"]
mod tests;
