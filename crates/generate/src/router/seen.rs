//! The results of a run: counters, lost packets, and the numbers computed from them.

use swell_base::{Code, Dur, Time, Warning};
use swell_host::Late;

use super::losses::Marks;

/// Values of the counters at some time. Bytes include link-layer headers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time since the beginning.
    pub at: Time,
    /// Packets that the source sent to the router.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that left the router for the sink.
    pub forwarded: u64,
    /// Their bytes.
    pub forwarded_bytes: u64,
    /// Packets that left the router for the source, such as acknowledgements.
    pub back: u64,
    /// Packets dropped because the queue of the rate limit was full.
    pub queue_drops: u64,
    /// Packets dropped because the router's processor was too busy: more than `net.core.netdev_max_backlog` packets
    /// were waiting for it.
    pub not_taken: u64,
    /// Packets that left the router but that the sink was too slow to take.
    pub sink_missed: u64,
    /// Time in which the router's processor was idle, in programs, or given to other machines by the hypervisor:
    /// hundredths of a second since boot (`USER_HZ`).
    pub elsewhere: Option<u64>,
}

impl Sample {
    /// Packets that the router dropped.
    pub fn dropped(&self) -> u64 {
        self.queue_drops + self.not_taken
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Counters at the beginning and at each reading.
    pub samples: Vec<Sample>,
    /// Counters when the last packet had come out or was lost.
    pub end: Sample,
    /// For each packet towards the sink, whether it was lost; in the order in which packets reached the router. Empty if
    /// that is not known.
    pub lost: Vec<bool>,
    /// How late packets or transfers began.
    pub late: Late,
    /// Share of its packets that the generator did not send.
    pub short: f64,
    /// Warnings about the results.
    pub doubts: Vec<Warning>,
}

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// The beginning of the interval that it is about, since the beginning of the run.
    pub at: Time,
}

impl Seen {
    /// Compares the packets on both sides of the router. What is lost must agree with the counters; if not, the taps
    /// missed some.
    pub(super) fn compare(&mut self, into: &Marks, out: &Marks) {
        let missed = into.missed + out.missed;
        if missed > 0 {
            self.doubts.push(Warning::warning(
                Code::TapOverflown,
                format!(
                    "{missed} packets were not seen by a tap, or were too many: runs of losses are not reported; a shorter span has fewer"
                ),
            ));
            return;
        }
        let lost = into.lost(out);
        let known = lost.iter().filter(|l| **l).count() as u64;
        let begin = self.samples.first().copied().unwrap_or_default();
        let all = |s: &Sample| s.dropped() + s.sink_missed;
        let counted = all(&self.end).saturating_sub(all(&begin));
        if known.abs_diff(counted) > counted / 100 + 2 {
            self.doubts.push(Warning::warning(
                Code::LossesNotTold,
                format!("{known} packets did not come out, and {counted} were counted as lost: runs of losses are not reported"),
            ));
            return;
        }
        self.lost = lost;
    }

    /// The numbers of the run without everything before `settle`. For each interval: `seconds`, the bytes offered and
    /// forwarded (`offered_bytes`, `forwarded_bytes`; link-layer headers included) and their rates (`offered`, `forwarded`;
    /// bit/s), the packets forwarded (`packets`), that left for the source (`back`) and were dropped (`dropped`; of these,
    /// because the processor was too busy, `not_taken`) or missed by the sink (`sink_missed`), the share of packets lost
    /// (`loss`), and the time and share of the router's processor that was spent on forwarding (`busy_seconds`, `busy`).
    /// The last interval is shorter if the run was stopped in it.
    ///
    /// Of the whole: mean and maximum length of runs of lost packets (`run_mean`, `run_max`), the share lost of those that
    /// follow a lost packet (`after_loss`), the 99th percentile of the lateness of packets or transfers in seconds
    /// (`late`), and the share of its packets that the generator did not send (`short`). What is not known is left out.
    pub fn numbers(&self, settle: Dur) -> Vec<Number> {
        let settled = Time::ZERO + settle;
        let counts: Vec<&Sample> = self.samples.iter().filter(|c| c.at >= settled).collect();
        let length = |pair: &[&Sample]| pair[1].at.since(pair[0].at);
        let mut lengths: Vec<Dur> = counts.windows(2).map(length).collect();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() / 2).copied();
        // Deviations count each interval alike. Rates over the little that is left at the end, or behind a late reading, are
        // those of a few packets.
        let mut numbers: Vec<Number> = counts
            .windows(2)
            .filter(|pair| Some(length(pair) * 2) >= usual)
            .flat_map(|pair| interval(pair[0], pair[1]))
            .collect();
        let (Some(first), Some(last)) = (counts.first(), counts.last()) else {
            return numbers;
        };
        let mut whole = vec![("late", self.late.p99.as_secs_f64()), ("short", self.short)];
        // Packets that arrived between the first and the last of these readings.
        let begin = self.samples.first().map_or(0, |s| s.offered);
        let came = |s: &Sample| usize::try_from(s.offered - begin).unwrap_or(usize::MAX);
        if !self.lost.is_empty() {
            let lost = self.lost.get(came(first)..came(last).min(self.lost.len()));
            let runs = Runs::of(lost.unwrap_or_default());
            whole.push(("run_max", runs.longest as f64));
            whole.push(("run_mean", runs.mean()));
            whole.push(("after_loss", runs.after_loss()));
        }
        let at = first.at;
        let known = whole.into_iter().filter(|(_, value)| !value.is_nan());
        numbers.extend(known.map(|(name, value)| Number { name, value, at }));
        numbers
    }
}

/// The numbers of the interval between two readings.
fn interval(a: &Sample, b: &Sample) -> impl Iterator<Item = Number> {
    let seconds = b.at.since(a.at).as_secs_f64();
    let more = |of: fn(&Sample) -> u64| of(b).saturating_sub(of(a)) as f64;
    let (packets, dropped) = (more(|s| s.forwarded), more(Sample::dropped));
    let [offered, forwarded] = [more(|s| s.offered_bytes), more(|s| s.forwarded_bytes)];
    let gone = packets + dropped;
    let known = a.elsewhere.zip(b.elsewhere);
    let spent = known.map(|(from, to)| seconds - to.saturating_sub(from) as f64 / 100.0);
    let at = a.at;
    let all = [
        ("seconds", seconds),
        ("offered_bytes", offered),
        ("forwarded_bytes", forwarded),
        ("offered", offered * 8.0 / seconds),
        ("forwarded", forwarded * 8.0 / seconds),
        ("packets", packets),
        ("back", more(|s| s.back)),
        ("dropped", dropped),
        ("not_taken", more(|s| s.not_taken)),
        ("sink_missed", more(|s| s.sink_missed)),
        ("loss", if gone > 0.0 { dropped / gone } else { 0.0 }),
    ];
    let busy = spent.map(|time| [("busy_seconds", time), ("busy", time / seconds)]);
    let all = all.into_iter().chain(busy.into_iter().flatten());
    all.map(move |(name, value)| Number { name, value, at })
}

/// Runs of consecutive losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Runs {
    /// Packets lost.
    lost: u64,
    /// Number of runs.
    runs: u64,
    /// Length of the longest run.
    longest: u64,
    /// Lost packets that another packet follows.
    followed: u64,
}

impl Runs {
    /// The runs in a sequence of packets, given whether each packet was lost.
    fn of(lost: &[bool]) -> Runs {
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

    /// Mean length of a run; NaN if there is none.
    fn mean(&self) -> f64 {
        self.lost as f64 / self.runs as f64
    }

    /// Share of lost packets among those that follow a lost packet. It measures the memory of the loss process (E.
    /// Gilbert's model, Bell System Technical Journal 39, 1960). If losses are independent, it equals the overall
    /// loss rate.
    fn after_loss(&self) -> f64 {
        (self.lost - self.runs) as f64 / self.followed as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_by_hand() {
        let lost: Vec<bool> = ".xx..x.xxx".chars().map(|c| c == 'x').collect();
        let runs = Runs::of(&lost);
        assert_eq!(
            (runs.lost, runs.runs, runs.longest, runs.followed),
            (6, 3, 3, 5)
        );
        assert_eq!((runs.mean(), runs.after_loss()), (2.0, 0.6));
        assert!(Runs::of(&[false; 4]).mean().is_nan());
    }

    #[test]
    fn independent_losses_remember_nothing() {
        let mut stream = swell_base::Stream::new(1, "losses");
        let lost: Vec<bool> = (0..400_000).map(|_| stream.below(20) == 0).collect();
        let runs = Runs::of(&lost);
        let after = runs.after_loss();
        assert!((after - 0.05).abs() < 0.005, "{after}");
        assert!((runs.mean() - 1.0 / 0.95).abs() < 0.01);
    }

    /// Counters after `s` seconds. The processor is elsewhere for seven tenths of each second.
    fn count(s: u64, packets: u64, dropped: u64) -> Sample {
        Sample {
            at: Time::ZERO + Dur::from_secs(s),
            offered: packets + dropped,
            offered_bytes: 1_000 * (packets + dropped),
            forwarded: packets,
            forwarded_bytes: 1_000 * packets,
            back: packets / 2,
            queue_drops: dropped,
            elsewhere: Some(70 * s),
            ..Sample::default()
        }
    }

    #[test]
    fn numbers_between_readings() {
        let all = [(0, 0, 0), (1, 77, 50), (2, 177, 50), (3, 477, 150)];
        // The first 127 packets are before the settling time.
        let mut lost = vec![false; 627];
        for i in [126, 127, 300, 301, 626] {
            lost[i] = true;
        }
        let seen = Seen {
            samples: all
                .map(|(s, packets, dropped)| count(s, packets, dropped))
                .to_vec(),
            lost,
            ..Seen::default()
        };
        let numbers = seen.numbers(Dur::from_secs(1));
        let of = |name: &str| -> Vec<f64> {
            let own = numbers.iter().filter(|n| n.name == name);
            own.map(|n| n.value).collect()
        };
        assert_eq!(of("forwarded"), [800_000.0, 2_400_000.0]);
        assert_eq!(of("offered"), [800_000.0, 3_200_000.0]);
        assert_eq!(of("offered_bytes"), [100_000.0, 400_000.0]);
        assert_eq!(of("forwarded_bytes"), [100_000.0, 300_000.0]);
        assert_eq!(
            (of("dropped"), of("loss")),
            (vec![0.0, 100.0], vec![0.0, 0.25])
        );
        assert_eq!(
            (of("packets"), of("back")),
            (vec![100.0, 300.0], vec![50.0, 150.0])
        );
        assert_eq!(
            (of("run_mean"), of("run_max")),
            (vec![4.0 / 3.0], vec![2.0])
        );
        assert!(of("busy").iter().all(|share| (share - 0.3).abs() < 1e-12));
        assert!(
            numbers
                .iter()
                .all(|n| n.at >= Time::ZERO + Dur::from_secs(1))
        );
        // Nothing is an interval after the last reading.
        assert!(
            seen.numbers(Dur::from_secs(3))
                .iter()
                .all(|n| n.name != "seconds")
        );
    }

    /// The generator ended just after a reading, in which a packet came.
    #[test]
    fn the_rest_of_an_interval_has_no_rate() {
        let mut seen = Seen {
            samples: (0..4).map(|s| count(s, 100 * s, 0)).collect(),
            ..Seen::default()
        };
        let rates = |of: &Seen| -> Vec<f64> {
            let all = of.numbers(Dur::ZERO).into_iter();
            all.filter(|n| n.name == "forwarded")
                .map(|n| n.value)
                .collect()
        };
        let whole = rates(&seen);
        assert_eq!(whole, [800_000.0; 3]);
        let last = Sample {
            at: Time::ZERO + Dur::from_micros(3_000_040),
            ..count(3, 301, 0)
        };
        seen.samples.push(last);
        assert_eq!(rates(&seen), whole);
        // Half of one has.
        seen.samples.pop();
        let half = Sample {
            at: Time::ZERO + Dur::from_millis(3_500),
            ..count(3, 350, 0)
        };
        seen.samples.push(half);
        assert_eq!(rates(&seen), [800_000.0; 4]);
    }

    #[test]
    fn losses_must_agree_with_the_counters() {
        let mut seen = Seen {
            samples: vec![count(0, 0, 0)],
            end: count(1, 2, 8),
            ..Seen::default()
        };
        let marks = |numbers: std::ops::Range<u64>| {
            let mut marks = Marks::default();
            numbers.for_each(|n| marks.add(n));
            marks
        };
        seen.compare(&marks(0..10), &marks(0..2));
        assert_eq!(seen.lost.iter().filter(|l| **l).count(), 8);
        let mut overflown = marks(0..10);
        overflown.missed = 1;
        for (into, out, code) in [
            (marks(0..10), marks(0..9), Code::LossesNotTold),
            (overflown, marks(0..2), Code::TapOverflown),
        ] {
            let mut other = Seen {
                lost: Vec::new(),
                ..seen.clone()
            };
            other.compare(&into, &out);
            assert_eq!((other.lost.len(), &other.doubts[0].code), (0, &code));
        }
    }
}
