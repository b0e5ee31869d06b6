//! Proportional integral controller, enhanced (PIE).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, DropReason, Dur, Findings, Packet, Rate, Stream, Time};

use super::keys::{self, Keys};
use super::store::{Bound, Stamped, mark};
use super::{Backlog, Outlet, Qdisc};

/// PIE, RFC 8033.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Pie")]
pub struct PieConfig {
    /// Target delay (section 4.2, QDELAY_REF: 15 ms).
    pub target: Dur,
    /// Interval between updates of the drop probability (section 4.2, T_UPDATE: 15 ms).
    pub update: Dur,
    /// Duration of a burst within which no packet is dropped (section 4.4, MAX_BURST: 150 ms).
    pub max_burst: Dur,
    /// Gain on the deviation from the target, per second (section 4.2: 1/8).
    pub alpha: f64,
    /// Gain on the change of delay since the last update, per second (section 4.2: 1 + 1/4).
    pub beta: f64,
    /// Mean packet size. No packet is dropped while at most two such packets wait (section 4.1, MEAN_PKTSIZE).
    pub mean_packet: Bytes,
    /// How the delay is measured.
    pub delay: PieDelay,
    /// Whether drops are spaced evenly (section 5.4).
    pub derandomize: bool,
    /// Whether the probability grows by at most 2 % per update once it has reached 10 % (section 5.5).
    pub capped: bool,
    /// Mark packets of ECN-capable senders instead of dropping them (section 5.1).
    pub ecn: bool,
    /// Above this probability packets are dropped even if their sender is ECN-capable (section 5.1: 10 %).
    pub mark_below: f64,
}

impl Default for PieConfig {
    fn default() -> Self {
        PieConfig {
            target: Dur::from_millis(15),
            update: Dur::from_millis(15),
            max_burst: Dur::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            mean_packet: Bytes(1500),
            delay: PieDelay::Timestamps,
            derandomize: true,
            capped: true,
            ecn: false,
            mark_below: 0.1,
        }
    }
}

/// How PIE measures the delay (RFC 8033 sections 4.3 and 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PieDelay {
    /// The waiting time of the packet that was dequeued last; zero if the queue is empty.
    #[default]
    Timestamps,
    /// Little's law: backlog over departure rate. The rate is measured over 16 KiB at a time and averaged with weight
    /// 1/8.
    DepartureRate,
}

/// Minimum update interval. A shorter one would dominate the cost of a run.
const SHORTEST_UPDATE: Dur = Dur::from_micros(100);

impl Keys for PieConfig {
    type Config = PieConfig;
    type Queue = Pie;
    const LABEL: &'static str = "PIE";

    fn check(&self, at: &str, found: &mut Findings) {
        let key = |name: &str| format!("{at}.{name}");
        if self.update < SHORTEST_UPDATE {
            found.add(
                key("update"),
                format!(
                    "a probability computed every {} leaves no time for packets",
                    self.update
                ),
                "write 100us or more; 15ms is usual",
            );
        }
        found.factor(key("alpha"), self.alpha, true);
        found.factor(key("beta"), self.beta, true);
        found.probability(key("mark_below"), self.mark_below);
        keys::packet(key("mean_packet"), self.mean_packet, found);
    }

    fn config(&self, _: Rate) -> PieConfig {
        *self
    }

    fn queue(config: &PieConfig, outlet: &Outlet, rng: Stream) -> Pie {
        Pie::new(config, outlet, rng)
    }
}

/// Bytes over which the departure rate is measured (RFC 8033 section 5.2, DQ_THRESHOLD).
const MEASURED: u64 = 1 << 14;

/// A queue managed by PIE.
#[derive(Clone, Debug)]
pub struct Pie {
    config: PieConfig,
    bound: Bound,
    rng: Stream,
    queue: Stamped,
    probability: f64,
    /// Sum of probabilities since the last drop.
    accumulated: f64,
    /// Delay at the previous update.
    delay_old: Dur,
    /// Waiting time of the packet that was dequeued last.
    last_wait: Dur,
    burst_allowance: Dur,
    next_update: Time,
    /// Departure rate in bytes per second; 0 = unknown.
    departure_rate: f64,
    /// Start of the current measurement, and the bytes sent since.
    measuring: Option<(Time, u64)>,
    marked: u64,
}

impl Pie {
    /// The discipline for the link `outlet`, drawing from `rng`.
    pub fn new(config: &PieConfig, outlet: &Outlet, rng: Stream) -> Pie {
        Pie {
            config: PieConfig {
                update: config.update.max(Dur::from_nanos(1)),
                ..*config
            },
            bound: Bound::new(outlet.limit, outlet.rate),
            rng,
            queue: Stamped::default(),
            probability: 0.0,
            accumulated: 0.0,
            delay_old: Dur::ZERO,
            last_wait: Dur::ZERO,
            burst_allowance: config.max_burst,
            next_update: Time::ZERO + config.update,
            departure_rate: 0.0,
            measuring: None,
            marked: 0,
        }
    }

    /// The current drop probability.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Does all updates due by `now`. The queue does not change between two calls, so this is equivalent to a timer.
    fn advance(&mut self, now: Time) {
        while self.next_update <= now {
            if self.resting() {
                // All state is at rest, so later updates change nothing: skip them.
                let step = self.config.update.as_nanos();
                let steps = now.since(self.next_update).as_nanos() / step;
                self.next_update += Dur::from_nanos(steps * step);
            }
            self.update();
            self.next_update += self.config.update;
        }
    }

    fn resting(&self) -> bool {
        self.queue.backlog().packets == 0
            && self.probability == 0.0
            && self.delay_old == Dur::ZERO
            && self.burst_allowance == self.config.max_burst
    }

    fn current_delay(&self) -> Dur {
        let backlog = self.queue.backlog();
        match self.config.delay {
            _ if backlog.packets == 0 => Dur::ZERO,
            PieDelay::Timestamps => self.last_wait,
            PieDelay::DepartureRate if self.departure_rate == 0.0 => Dur::ZERO,
            PieDelay::DepartureRate => {
                Dur::from_secs_f64(backlog.bytes as f64 / self.departure_rate)
            }
        }
    }

    /// RFC 8033 section 4.2 and appendix A, `calculate_drop_prob`.
    fn update(&mut self) {
        let c = &self.config;
        let delay = self.current_delay();
        let (now, old) = (delay.as_secs_f64(), self.delay_old.as_secs_f64());
        let mut step = c.alpha * (now - c.target.as_secs_f64()) + c.beta * (now - old);
        // The step is scaled to the size of the probability, so that the control loop stays stable.
        step /= match self.probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        if c.capped && self.probability >= 0.1 && step > 0.02 {
            step = 0.02;
        }
        self.probability += step;
        if delay == Dur::ZERO && self.delay_old == Dur::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);

        // Section 4.4.
        self.burst_allowance -= c.update;
        let half = c.target / 2;
        if self.probability == 0.0 && delay < half && self.delay_old < half {
            self.burst_allowance = c.max_burst;
        }
        self.delay_old = delay;
    }

    /// Whether to drop or mark an arriving packet (RFC 8033 sections 4.1 and 5.4, appendix A, `drop_early`).
    fn chooses(&mut self) -> bool {
        let c = &self.config;
        if self.burst_allowance > Dur::ZERO
            || self.delay_old < c.target / 2 && self.probability < 0.2
            || self.queue.backlog().bytes <= 2 * c.mean_packet.0
        {
            return false;
        }
        if !c.derandomize {
            return self.rng.chance(self.probability);
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        let chosen = if self.accumulated < 0.85 {
            false
        } else {
            self.accumulated >= 8.5 || self.rng.chance(self.probability)
        };
        if chosen {
            self.accumulated = 0.0;
        }
        chosen
    }

    /// Measures the departure rate (RFC 8033 section 5.2). Bytes count when their transmission ends, that is when the
    /// next packet is dequeued. The RFC counts bytes when they are dequeued, which overestimates the rate by a tenth
    /// over 16 KiB of full packets.
    fn measure(&mut self, now: Time, packet: &Packet, before: Backlog) {
        if let Some((start, bytes)) = self.measuring
            && bytes >= MEASURED
        {
            let seconds = now.since(start).as_secs_f64();
            if seconds > 0.0 {
                let rate = bytes as f64 / seconds;
                self.departure_rate = if self.departure_rate == 0.0 {
                    rate
                } else {
                    self.departure_rate * 0.875 + rate * 0.125
                };
            }
            self.measuring = None;
        }
        if self.measuring.is_none() && before.bytes >= MEASURED {
            self.measuring = Some((now, 0));
        }
        if let Some((_, bytes)) = &mut self.measuring {
            *bytes += u64::from(packet.size);
        }
        if before.packets == 1 {
            // The link may become idle now, and idle time must not lower the rate.
            self.measuring = None;
        }
    }
}

impl Qdisc for Pie {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: Packet,
        _: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        self.advance(now);
        if self.bound.refuses(self.queue.backlog(), &packet) {
            self.accumulated = 0.0;
            return Err(DropReason::QueueFull);
        }
        if self.chooses() {
            let gently = self.config.ecn && self.probability <= self.config.mark_below;
            if !(gently && mark(&mut packet)) {
                return Err(DropReason::Aqm);
            }
            self.marked += 1;
        }
        self.queue.push(now, packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        self.advance(now);
        let before = self.queue.backlog();
        let (came, packet) = self.queue.pop()?;
        self.last_wait = now.since(came);
        if self.config.delay == PieDelay::DepartureRate {
            self.measure(now, &packet, before);
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}
