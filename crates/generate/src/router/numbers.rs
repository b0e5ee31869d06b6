//! Computes the results of a run from the counters.

use serde::Serialize;
use swell_base::{Dur, Time};

use super::{Sample, Seen};

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Numbers {
    /// Offered load in bit/s, link-layer headers included.
    pub offered: f64,
    /// Standard deviation over intervals.
    pub offered_sd: f64,
    /// Forwarded rate in bit/s, link-layer headers included.
    pub forwarded: f64,
    /// Standard deviation over intervals.
    pub forwarded_sd: f64,
    /// Packets forwarded per second.
    pub packets: f64,
    /// Share of the packets that were lost.
    pub loss: f64,
    /// Standard deviation over intervals.
    pub loss_sd: f64,
    /// Mean length of a run of lost packets.
    pub run_mean: f64,
    /// Length of the longest run of lost packets.
    pub run_max: f64,
    /// Share of lost packets among those that follow a lost packet.
    pub after_loss: f64,
    /// Share of the router's processor that was spent on forwarding.
    pub busy: f64,
    /// Standard deviation over intervals.
    pub busy_sd: f64,
    /// Microseconds of that processor per packet, in both directions.
    pub us_per_packet: f64,
    /// 99th percentile of the lateness of packets or transfers, in seconds.
    pub late: f64,
    /// Share of its packets that the generator did not send.
    pub short: f64,
    /// Packets lost since the beginning.
    pub lost: f64,
    /// Of these, packets for which the processor was too busy.
    pub not_taken: f64,
    /// Packets that left the router but that the sink was too slow to take.
    pub sink_missed: f64,
    /// Mean length of an interval in seconds.
    pub every: f64,
    /// Bit/s forwarded in each interval.
    pub rates: Vec<f64>,
    /// Share lost in each interval.
    pub losses: Vec<f64>,
    /// Share of the processor that was spent on forwarding in each interval.
    pub busies: Vec<f64>,
}

impl Seen {
    /// The results without everything before `settle`; `None` if nothing is left.
    pub fn numbers(&self, settle: Dur) -> Option<Numbers> {
        let settled = Time::ZERO + settle;
        let counts: Vec<&Sample> = self.samples.iter().filter(|c| c.at >= settled).collect();
        let (first, last) = (counts.first()?, counts.last()?);
        let between = |a: &Sample, b: &Sample| Interval::between(self.samples.first(), a, b);
        let pairs = counts.windows(2);
        let intervals: Vec<Interval> = pairs.map(|pair| between(pair[0], pair[1])).collect();
        if intervals.is_empty() {
            return None;
        }
        let whole = between(first, last);
        let over = |f: fn(&Interval) -> f64| -> Vec<f64> { intervals.iter().map(f).collect() };
        let sd = |values: &[f64]| deviation(values);
        let (rates, losses, busies) = (over(|i| i.forwarded), over(|i| i.loss), over(|i| i.busy));
        // Packets that arrived between the first and the last of these readings.
        let came = |c: &Sample| usize::try_from(c.offered.packets).unwrap_or(usize::MAX);
        let lost = self.lost.get(came(first)..came(last).min(self.lost.len()));
        let runs = Runs::of(lost.unwrap_or_default());
        let emitted = self.emitted.unwrap_or_default();
        let unsent = emitted.refused + emitted.missed;
        let late = self
            .played
            .as_ref()
            .map_or(emitted.late.p99, |p| p.late.p99);
        Some(Numbers {
            offered: whole.offered,
            offered_sd: sd(&over(|i| i.offered)),
            forwarded: whole.forwarded,
            forwarded_sd: sd(&rates),
            packets: whole.packets,
            loss: whole.loss,
            loss_sd: sd(&losses),
            run_mean: runs.mean(),
            run_max: runs.longest as f64,
            after_loss: runs.after_loss(),
            busy: whole.busy,
            busy_sd: sd(&busies),
            us_per_packet: whole.busy * 1e6 / whole.both_ways,
            late: late.as_secs_f64(),
            short: unsent as f64 / (emitted.packets + unsent).max(1) as f64,
            lost: (last.queue_drops + last.not_taken) as f64,
            not_taken: last.not_taken as f64,
            sink_missed: last.sink_missed as f64,
            every: whole.span / intervals.len() as f64,
            rates,
            losses,
            busies,
        })
    }
}

/// Standard deviation; NaN for fewer than two values.
fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (squares / (n - 1.0)).sqrt()
}

/// Changes between two readings: rates per second, and shares.
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
    /// The interval between two readings of a run whose first reading is `begin`.
    fn between(begin: Option<&Sample>, a: &Sample, b: &Sample) -> Interval {
        let span = b.at.since(a.at).as_secs_f64();
        let more = |x: u64, y: u64| y.saturating_sub(x) as f64;
        let dropped = more(a.queue_drops + a.not_taken, b.queue_drops + b.not_taken);
        let packets = more(a.forwarded.packets, b.forwarded.packets);
        let gone = packets + dropped;
        // Seconds that the processor had spent on forwarding.
        let spent = |s: &Sample| {
            let since = s.at.since(Time::ZERO);
            let share = s.processor?.interrupts(&begin?.processor?, since);
            Some(share * since.as_secs_f64())
        };
        let busy = spent(a)
            .zip(spent(b))
            .map_or(f64::NAN, |(x, y)| (y - x) / span);
        Interval {
            span,
            offered: more(a.offered.bytes, b.offered.bytes) * 8.0 / span,
            forwarded: more(a.forwarded.bytes, b.forwarded.bytes) * 8.0 / span,
            packets: packets / span,
            both_ways: (packets + more(a.back.packets, b.back.packets)) / span,
            loss: if gone > 0.0 { dropped / gone } else { 0.0 },
            busy,
        }
    }
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
    use super::super::{Count, Processor};
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
        let count = |s: u64, packets: u64, dropped: u64| Sample {
            at: Time::ZERO + Dur::from_secs(s),
            offered: Count {
                packets: packets + dropped,
                bytes: 1_000 * (packets + dropped),
            },
            forwarded: Count {
                packets,
                bytes: 1_000 * packets,
            },
            back: Count {
                packets: packets / 2,
                bytes: 0,
            },
            queue_drops: dropped,
            // Idle for seven tenths of each second.
            processor: Some(Processor {
                idle: 70 * s,
                ..Processor::default()
            }),
            ..Sample::default()
        };
        let raw = Seen {
            samples: vec![
                count(0, 0, 0),
                count(1, 77, 50),
                count(2, 177, 50),
                count(3, 477, 150),
            ],
            ..Seen::default()
        };
        // The first 127 packets are before the settling time.
        let mut lost = vec![false; 627];
        for i in [126, 127, 300, 301, 626] {
            lost[i] = true;
        }
        let raw = Seen { lost, ..raw };
        let found = raw.numbers(Dur::from_secs(1)).unwrap();
        assert_eq!(found.forwarded, 400.0 * 8_000.0 / 2.0);
        assert_eq!(found.rates, [800_000.0, 2_400_000.0]);
        let sd = 1_600_000.0 / 2f64.sqrt();
        assert!((found.forwarded_sd / sd - 1.0).abs() < 1e-12);
        assert_eq!(found.loss, 0.2);
        assert_eq!(found.losses, [0.0, 0.25]);
        assert_eq!((found.run_mean, found.run_max), (4.0 / 3.0, 2.0));
        assert!((found.busy - 0.3).abs() < 1e-12);
        // 300 packets per second in both directions, in 0.3 seconds of processor time each.
        let each = found.us_per_packet;
        assert!((each - 0.3e6 / 300.0).abs() < 0.5, "{each}");
        assert_eq!(raw.numbers(Dur::from_secs(3)), None);
    }
}
