//! From what was counted at a router to the numbers of a run.

use swell_base::{Dur, Time};
use swell_stats::{mean, sd};

/// What was counted by some time, from the beginning on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// When.
    pub at: Time,
    /// Packets sent to the router, and their bytes.
    pub offered: [u64; 2],
    /// Packets that left it on the output line, and their bytes.
    pub forwarded: [u64; 2],
    /// Packets that left it the other way.
    pub back: u64,
    /// Packets that it dropped: its queue was full, or its processor busy.
    pub dropped: [u64; 2],
    /// Packets that left it and that the sink had no time for.
    pub sink_missed: u64,
    /// Seconds that its processor had spent forwarding, where that is known.
    pub busy: Option<f64>,
}

/// What was seen in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raw {
    /// At the beginning and at each look.
    pub counts: Vec<Count>,
    /// Whether each packet was lost, in the order in which they reached the router; empty where that is not known.
    pub lost: Vec<bool>,
    /// Share of its packets that a generator did not send.
    pub short: f64,
    /// By how much one packet or transfer in a hundred was late at least, seconds.
    pub late: f64,
}

/// Intervals that are kept at most.
pub const INTERVALS: usize = 24;

macro_rules! numbers {
    ($($scalar:literal,)* ; $($rate:literal $loss:literal $busy:literal,)*) => {
        /// Rates in bit/s, headers of the link layer counted: what was offered and forwarded, mean and standard deviation
        /// over intervals. Packets forwarded per second. Shares of packets lost, over the run and its deviation over
        /// intervals; mean and largest length of a run of lost packets, and the share lost of those behind a lost one.
        /// Share of the router's processor that forwarding took, its deviation, and microseconds of it per packet, both
        /// ways. Lateness and shortfall of the generator. Packets lost in all, those that the processor dropped,
        /// and those that the sink had no time for. Then by
        /// interval: rate forwarded, share lost, share of the processor.
        pub const NUMBERS: &[&str] = &[$($scalar,)* $($rate,)* $($loss,)* $($busy,)*];
        pub(super) const RATES: [&str; INTERVALS] = [$($rate,)*];
        pub(super) const LOSSES: [&str; INTERVALS] = [$($loss,)*];
        pub(super) const BUSY: [&str; INTERVALS] = [$($busy,)*];
    };
}

numbers! {
    "offered", "offered_sd", "forwarded", "forwarded_sd", "packets", "loss", "loss_sd", "run_mean", "run_max",
    "after_loss", "busy", "busy_sd", "us_per_packet", "late", "short", "lost", "not_taken", "sink_missed", "every",;
    "rate_0" "loss_0" "busy_0", "rate_1" "loss_1" "busy_1", "rate_2" "loss_2" "busy_2",
    "rate_3" "loss_3" "busy_3", "rate_4" "loss_4" "busy_4", "rate_5" "loss_5" "busy_5",
    "rate_6" "loss_6" "busy_6", "rate_7" "loss_7" "busy_7", "rate_8" "loss_8" "busy_8",
    "rate_9" "loss_9" "busy_9", "rate_10" "loss_10" "busy_10", "rate_11" "loss_11" "busy_11",
    "rate_12" "loss_12" "busy_12", "rate_13" "loss_13" "busy_13", "rate_14" "loss_14" "busy_14",
    "rate_15" "loss_15" "busy_15", "rate_16" "loss_16" "busy_16", "rate_17" "loss_17" "busy_17",
    "rate_18" "loss_18" "busy_18", "rate_19" "loss_19" "busy_19", "rate_20" "loss_20" "busy_20",
    "rate_21" "loss_21" "busy_21", "rate_22" "loss_22" "busy_22", "rate_23" "loss_23" "busy_23",
}

/// The numbers of a run, without what happened before `settle`.
pub fn numbers(raw: &Raw, settle: Dur) -> Vec<f64> {
    let settled = Time::ZERO + settle;
    let counts: Vec<&Count> = raw.counts.iter().filter(|c| c.at >= settled).collect();
    let intervals: Vec<Interval> = counts
        .windows(2)
        .map(|pair| Interval::between(pair[0], pair[1]))
        .collect();
    let (Some(first), Some(last)) = (counts.first(), counts.last()) else {
        return vec![f64::NAN; NUMBERS.len()];
    };
    if intervals.is_empty() {
        return vec![f64::NAN; NUMBERS.len()];
    }
    let whole = Interval::between(first, last);
    let over = |f: fn(&Interval) -> f64| -> Vec<f64> { intervals.iter().map(f).collect() };
    let deviation = |values: &[f64]| sd(values).unwrap_or(f64::NAN);
    let (rates, losses, busy) = (over(|i| i.forwarded), over(|i| i.loss), over(|i| i.busy));
    // Of the packets that came between the first and the last of these looks.
    let came = |c: &Count| usize::try_from(c.offered[0]).unwrap_or(usize::MAX);
    let lost = raw.lost.get(came(first)..came(last).min(raw.lost.len()));
    let runs = Runs::of(lost.unwrap_or_default());
    let mut out = vec![
        whole.offered,
        deviation(&over(|i| i.offered)),
        whole.forwarded,
        deviation(&rates),
        whole.packets,
        whole.loss,
        deviation(&losses),
        runs.mean(),
        runs.longest as f64,
        runs.after_loss(),
        whole.busy,
        deviation(&busy),
        whole.busy * 1e6 / whole.both_ways,
        raw.late,
        raw.short,
        (last.dropped[0] + last.dropped[1]) as f64,
        last.dropped[1] as f64,
        last.sink_missed as f64,
        mean(&over(|i| i.span)).unwrap_or(f64::NAN),
    ];
    for series in [&rates, &losses, &busy] {
        let padded = series.iter().copied().chain(std::iter::repeat(f64::NAN));
        out.extend(padded.take(INTERVALS));
    }
    out
}

/// What happened between two looks: rates per second, shares.
struct Interval {
    span: f64,
    offered: f64,
    forwarded: f64,
    packets: f64,
    both_ways: f64,
    loss: f64,
    busy: f64,
}

impl Interval {
    fn between(a: &Count, b: &Count) -> Interval {
        let span = b.at.since(a.at).as_secs_f64();
        let more = |x: u64, y: u64| y.saturating_sub(x) as f64;
        let dropped: f64 = (0..2).map(|i| more(a.dropped[i], b.dropped[i])).sum();
        let packets = more(a.forwarded[0], b.forwarded[0]);
        let gone = packets + dropped;
        let busy = a.busy.zip(b.busy).map_or(f64::NAN, |(x, y)| (y - x) / span);
        Interval {
            span,
            offered: more(a.offered[1], b.offered[1]) * 8.0 / span,
            forwarded: more(a.forwarded[1], b.forwarded[1]) * 8.0 / span,
            packets: packets / span,
            both_ways: (packets + more(a.back, b.back)) / span,
            loss: if gone > 0.0 { dropped / gone } else { 0.0 },
            busy,
        }
    }
}

/// Losses that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Packets lost.
    pub lost: u64,
    /// Runs of them.
    pub runs: u64,
    /// The longest.
    pub longest: u64,
    /// Lost packets that have one behind them.
    pub followed: u64,
}

impl Runs {
    /// Of packets in their order, whether each was lost.
    pub fn of(lost: &[bool]) -> Runs {
        let mut runs = Runs::default();
        for run in lost.chunk_by(|a, b| a == b).filter(|run| run[0]) {
            let length = run.len() as u64;
            runs.lost += length;
            runs.runs += 1;
            runs.longest = runs.longest.max(length);
        }
        runs.followed = runs.lost - u64::from(lost.last() == Some(&true));
        runs
    }

    /// Mean length of a run; not a number without any.
    pub fn mean(&self) -> f64 {
        self.lost as f64 / self.runs as f64
    }

    /// The share lost of the packets behind a lost one: what the loss process remembers (E. Gilbert's model, Bell System
    /// Technical Journal 39, 1960). Where losses are independent it is the share lost of all.
    pub fn after_loss(&self) -> f64 {
        (self.lost - self.runs) as f64 / self.followed as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_by_hand() {
        let lost = |text: &str| -> Vec<bool> { text.chars().map(|c| c == 'x').collect() };
        let runs = Runs::of(&lost(".xx..x.xxx"));
        assert_eq!(
            runs,
            Runs {
                lost: 6,
                runs: 3,
                longest: 3,
                followed: 5
            }
        );
        assert_eq!((runs.mean(), runs.after_loss()), (2.0, 0.6));
        assert!(Runs::of(&lost("....")).mean().is_nan());
    }

    #[test]
    fn independent_losses_remember_nothing() {
        let mut stream = swell_base::Stream::new(1, "losses");
        let lost: Vec<bool> = (0..400_000).map(|_| stream.below(20) == 0).collect();
        let runs = Runs::of(&lost);
        assert!(
            (runs.after_loss() - 0.05).abs() < 0.005,
            "{}",
            runs.after_loss()
        );
        assert!((runs.mean() - 1.0 / 0.95).abs() < 0.01);
    }

    #[test]
    fn rates_losses_and_the_processor_between_looks() {
        let count = |s: u64, packets: u64, dropped: u64| Count {
            at: Time::ZERO + Dur::from_secs(s),
            offered: [packets + dropped, 1_000 * (packets + dropped)],
            forwarded: [packets, 1_000 * packets],
            back: packets / 2,
            dropped: [dropped, 0],
            sink_missed: 0,
            busy: Some(s as f64 * 0.3),
        };
        let raw = Raw {
            counts: vec![
                count(0, 0, 0),
                count(1, 77, 50),
                count(2, 177, 50),
                count(3, 477, 150),
            ],
            ..Raw::default()
        };
        // The first 127 packets do not count.
        let mut lost = vec![false; 627];
        for i in [126, 127, 300, 301, 626] {
            lost[i] = true;
        }
        let raw = Raw { lost, ..raw };
        let found = numbers(&raw, Dur::from_secs(1));
        let get = |name| found[NUMBERS.iter().position(|n| *n == name).unwrap()];
        assert_eq!(get("forwarded"), 400.0 * 8_000.0 / 2.0);
        assert_eq!((get("rate_0"), get("rate_1")), (800_000.0, 2_400_000.0));
        assert!(get("rate_2").is_nan());
        assert_eq!(get("loss"), 0.2);
        assert_eq!((get("loss_0"), get("loss_1")), (0.0, 0.25));
        assert_eq!((get("run_mean"), get("run_max")), (4.0 / 3.0, 2.0));
        assert!((get("busy") - 0.3).abs() < 1e-12);
        // 300 packets a second both ways in 0.3 seconds each.
        assert!(
            (get("us_per_packet") - 0.3e6 / 300.0).abs() < 0.5,
            "{}",
            get("us_per_packet")
        );
        assert!(numbers(&raw, Dur::from_secs(3)).iter().all(|x| x.is_nan()));
    }
}
