//! Random early detection (RED).

mod config;
mod keys;

use std::collections::VecDeque;

use swell_base::{DropReason, Packet, Rate, Stream, Time};

use super::store::{Bound, mark};
use super::{Backlog, Outlet, Qdisc};
pub use config::{
    RedAdaptive, RedConfig, RedDialect, RedMeasure, RedSpacing, RedThresholds, RedVictim,
    RedWeight, RedWeightRule,
};
pub use keys::{RedKeys, RedSet};

/// Random early detection: arriving packets are dropped or marked with a probability that grows with the average queue.
#[derive(Clone, Debug)]
pub struct Red {
    config: RedConfig,
    rate: Rate,
    overhead: u64,
    bound: Bound,
    rng: Stream,
    waiting: VecDeque<Packet>,
    backlog: Backlog,
    /// Thresholds, in the unit of `average`.
    min: f64,
    max: f64,
    weight: f64,
    /// Packets of mean size that the link can send per second.
    packet_rate: f64,
    /// Average queue in packets or bytes, as `config.measure` says.
    average: f64,
    max_p: f64,
    /// Smallest value of `max_p` under adaptation.
    floor: f64,
    /// Packets and bytes since the last drop or mark.
    count: i64,
    count_bytes: i64,
    /// Whether the last arrival found the average above the lower threshold (ns-2 `old`).
    above: bool,
    /// When the transmission of the last dequeued packet ends.
    busy_until: Time,
    adapted: Time,
    marked: u64,
}

/// Decision of early detection about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Chosen at random: the packet is dropped, or marked if that is allowed.
    Chosen {
        may_mark: bool,
    },
    /// The average is too high: the packet is dropped even if its sender supports ECN.
    Forced,
}

impl Red {
    /// The discipline for the link `outlet`, drawing from `rng`.
    pub fn new(config: &RedConfig, outlet: &Outlet, rng: Stream) -> Red {
        // Without a rate packets never wait, so no parameter matters.
        let rate = outlet.rate.unwrap_or(Rate::from_bps(1));
        let mean = f64::from(config.mean_packet.max(1));
        let packet_rate = rate.bps() as f64 / (8.0 * mean);
        let (min, max) = config.thresholds.packets(packet_rate);
        let unit = match config.measure {
            RedMeasure::Packets => 1.0,
            RedMeasure::Bytes => mean,
        };
        Red {
            config: *config,
            rate,
            overhead: u64::from(outlet.overhead),
            bound: Bound::new(outlet.limit, outlet.rate),
            rng,
            waiting: VecDeque::new(),
            backlog: Backlog::default(),
            min: min * unit,
            max: max * unit,
            weight: config.weight.value(packet_rate, outlet.delay),
            packet_rate,
            average: 0.0,
            max_p: config.max_p,
            floor: config.adaptive.map_or(0.0, |a| a.floor(rate)),
            // In the paper the count is -1 while the average is low, so that the first packet above the threshold has
            // count 0. In ns-2 it starts at 0.
            count: match config.dialect {
                RedDialect::Paper => -1,
                RedDialect::Ns2 => 0,
            },
            count_bytes: 0,
            above: false,
            busy_until: Time::ZERO,
            adapted: Time::ZERO,
            marked: 0,
        }
    }

    /// The average queue, in packets or in bytes as [`RedConfig::measure`] says.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Whether the average is above the lower threshold.
    pub fn is_above(&self) -> bool {
        self.average > self.min
    }

    /// The packets that wait, the next one first.
    pub fn waiting(&self) -> &VecDeque<Packet> {
        &self.waiting
    }

    /// Removes the waiting packet with this index.
    pub fn remove(&mut self, index: usize) -> Option<Packet> {
        let packet = self.waiting.remove(index)?;
        self.backlog.remove(packet.size);
        Some(packet)
    }

    /// The current drop probability at the upper threshold, which adaptation may change.
    pub fn max_p(&self) -> f64 {
        self.max_p
    }

    /// The averaging weight.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Current queue length, in the unit of the average.
    fn length(&self) -> f64 {
        match self.config.measure {
            RedMeasure::Packets => self.backlog.packets as f64,
            RedMeasure::Bytes => self.backlog.bytes as f64,
        }
    }

    /// Updates the average for an arrival at `now`. After an idle period, it assumes as many arrivals to an empty
    /// queue as the link could have sent packets. Sources: Floyd & Jacobson 1993, section 4 and fig. 2; ns-2
    /// `REDQueue::estimator`, which uses whole packets and adds one for the arriving packet.
    pub fn estimate(&mut self, now: Time) {
        let keep = 1.0 - self.weight;
        if self.backlog.packets > 0 {
            self.average = self.average * keep + self.weight * self.length();
        } else {
            let missed = self.packet_rate * now.since(self.busy_until).as_secs_f64();
            let m = match self.config.dialect {
                RedDialect::Paper => missed,
                RedDialect::Ns2 => missed.floor() + 1.0,
            };
            self.average *= libm::pow(keep, m);
        }
        self.adapt(now);
    }

    /// Adaptive RED: keeps the average near the middle between the thresholds (Floyd, Gummadi & Shenker 2001).
    /// Evaluated when packets arrive.
    fn adapt(&mut self, now: Time) {
        let Some(a) = self.config.adaptive else {
            return;
        };
        if now.since(self.adapted) <= a.interval {
            return;
        }
        let part = 0.4 * (self.max - self.min);
        let mut changed = true;
        if self.average < self.min + part && self.max_p > self.floor {
            self.max_p *= a.decrease;
        } else if self.average > self.max - part && self.max_p < a.ceiling {
            self.max_p += a.increase.min(0.25 * self.max_p);
        } else {
            changed = false;
        }
        // ns-2 evaluates at every arrival until it has changed something.
        if changed || self.config.dialect == RedDialect::Paper {
            self.adapted = now;
        }
    }

    /// Probability by the average alone (p_b of the paper), for averages of at least `min`.
    fn base(&self) -> f64 {
        let p = if self.average < self.max {
            // Equal thresholds have a width of zero, which must not divide.
            let width = (self.max - self.min).max(f64::MIN_POSITIVE);
            self.max_p * (self.average - self.min) / width
        } else if self.config.gentle {
            // From max_p at the upper threshold to 1 at twice that (Floyd 2000, "gentle"). ns-2 computes this line
            // once, from the initial max_p.
            let from = match self.config.dialect {
                RedDialect::Paper => self.max_p,
                RedDialect::Ns2 => self.config.max_p,
            };
            from + (1.0 - from) * (self.average - self.max) / self.max
        } else {
            1.0
        };
        p.min(1.0)
    }

    /// Spaces drops: converts the probability by the average (p_b) to the probability for this packet (p_a).
    fn spaced(&self, base: f64, size: u16) -> f64 {
        let mean = f64::from(self.config.mean_packet.max(1));
        let share = if self.config.by_size {
            f64::from(size) / mean
        } else {
            1.0
        };
        let (p, count, after) = match self.config.dialect {
            // Section 4: the size scales p_b before spacing.
            RedDialect::Paper => ((base * share).min(1.0), self.count.max(0) as f64, 1.0),
            // ns-2 `modify_p`: the count is in whole mean packets, and the size scales the result.
            RedDialect::Ns2 if self.config.by_size => {
                let whole = self.count_bytes / i64::from(self.config.mean_packet.max(1));
                (base, whole as f64, share)
            }
            RedDialect::Ns2 => (base, self.count as f64, 1.0),
        };
        let x = count * p;
        let p = match self.config.spacing {
            RedSpacing::Geometric => p,
            RedSpacing::Uniform if x < 1.0 => p / (1.0 - x),
            RedSpacing::Wait if x < 1.0 => 0.0,
            RedSpacing::Wait if x < 2.0 => p / (2.0 - x),
            RedSpacing::Uniform | RedSpacing::Wait => 1.0,
        };
        if p < 1.0 { (p * after).min(1.0) } else { 1.0 }
    }

    /// Early detection as in the paper (Floyd & Jacobson 1993, fig. 2).
    fn judge_paper(&mut self, packet: &Packet) -> Verdict {
        if self.average < self.min {
            self.count = -1;
            return Verdict::Pass;
        }
        let base = self.base();
        let all = if self.config.gentle { 2.0 } else { 1.0 };
        if self.average >= self.max * all {
            self.count = 0;
            return Verdict::Forced;
        }
        self.count += 1;
        let p = self.spaced(base, packet.size);
        if self.rng.chance(p) {
            self.count = 0;
            return self.chosen(base);
        }
        Verdict::Pass
    }

    /// Early detection as in ns-2.35 (queue/red.cc, `REDQueue::enque` and `drop_early`). It never drops from a queue
    /// of one packet (in byte mode: of one byte). It also spares the first packet that finds the average above the
    /// threshold.
    fn judge_ns2(&mut self, packet: &Packet) -> Verdict {
        let size = i64::from(packet.size);
        self.count += 1;
        self.count_bytes += size;
        if self.average < self.min || self.length() <= 1.0 {
            self.above = false;
            return Verdict::Pass;
        }
        let all = if self.config.gentle { 2.0 } else { 1.0 };
        if self.config.mark_below.is_none() && self.average >= self.max * all {
            self.start_count();
            return Verdict::Forced;
        }
        if !self.above {
            self.above = true;
            self.count = 1;
            self.count_bytes = size;
            return Verdict::Pass;
        }
        let base = self.base();
        let p = self.spaced(base, packet.size);
        // `chance` is not used here: a probability of 1 must always drop, and 0 never.
        if p > 0.0 && self.rng.uniform() <= p {
            self.start_count();
            return self.chosen(base);
        }
        Verdict::Pass
    }

    /// The verdict for a packet chosen with the average-based probability `base`.
    fn chosen(&self, base: f64) -> Verdict {
        let gently = self.config.mark_below.is_none_or(|most| base <= most);
        Verdict::Chosen {
            may_mark: self.config.ecn && gently,
        }
    }

    fn start_count(&mut self) {
        self.count = 0;
        self.count_bytes = 0;
    }

    /// Accepts or refuses a packet by the average, as [`Qdisc::enqueue`] does after [`Red::estimate`].
    ///
    /// # Errors
    /// If the packet is dropped, with the reason.
    pub fn admit(
        &mut self,
        mut packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        let verdict = match self.config.dialect {
            RedDialect::Paper => self.judge_paper(&packet),
            RedDialect::Ns2 => self.judge_ns2(&packet),
        };
        if self.bound.refuses(self.backlog, &packet) {
            self.start_count();
            return self.force(packet, DropReason::QueueFull, dropped);
        }
        match verdict {
            Verdict::Pass => {}
            Verdict::Chosen { may_mark } => {
                if !(may_mark && mark(&mut packet)) {
                    return Err(DropReason::Aqm);
                }
                self.marked += 1;
            }
            Verdict::Forced => return self.force(packet, DropReason::Aqm, dropped),
        }
        self.accept(packet);
        Ok(())
    }

    fn accept(&mut self, packet: Packet) {
        self.backlog.add(packet.size);
        self.waiting.push_back(packet);
    }

    /// Drops `packet` or another packet, because the queue is full or the average is too high.
    fn force(
        &mut self,
        packet: Packet,
        reason: DropReason,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        let index = match self.config.victim {
            RedVictim::Arriving => return Err(reason),
            // ns-2 drops the second packet in the queue, if there is one besides the arriving packet.
            RedVictim::Front => self.waiting.len().min(1),
            RedVictim::Random => self.rng.below(self.waiting.len() as u64 + 1) as usize,
        };
        match self.remove(index) {
            None => Err(reason),
            Some(victim) => {
                // The victim may be smaller than the arriving packet, which then still does not fit.
                if reason == DropReason::QueueFull && self.bound.refuses(self.backlog, &packet) {
                    dropped(victim, reason);
                    return Err(reason);
                }
                self.accept(packet);
                dropped(victim, reason);
                Ok(())
            }
        }
    }
}

impl Qdisc for Red {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        self.estimate(now);
        self.admit(packet, dropped)
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.backlog.remove(packet.size);
        let bytes = swell_base::Bytes(u64::from(packet.size) + self.overhead);
        self.busy_until = now + self.rate.transmit(bytes);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}
