//! Schedules a model: starts of transfers and of datagram sources, in time order.
//!
//! ```
//! use swell_base::{Dur, Time};
//! use swell_traffic::flowlevel::*;
//! # let mut c = Configurator::new(Options::default());
//! # for i in 0..200i64 {
//! #     let seen = Uniflow { packets: 10, bytes: 10_000, flags: Some(0x1b), first: i * 1_000_000_000, last: i * 1_000_000_000 };
//! #     c.add(&Record { source: 1, destination: 2, source_port: 80, destination_port: 2_000 + i as u16, protocol: 6,
//! #         header: 40, forward: seen, reverse: None, continues: false, sampling: 1.0 });
//! # }
//! # let model = c.finish("one", Default::default())?;
//! let plan = Plan::new(&model, &Playback { load: 2.0, ..Playback::default() })?;
//! let mut player = Player::new(plan, 7, Share::ALL);
//! // A driver waits until `poll_at`, or simulates until then, and takes what is due.
//! while let Some(at) = player.poll_at().filter(|&at| at < Time::from_secs_f64(60.0)) {
//!     while let Some(due) = player.pop(at) {
//!         match due {
//!             Due::Transfer(t) => println!("{} {} -> {}: {} B up, {} B down", t.at, t.source, t.destination, t.up, t.down),
//!             Due::Datagrams(source) => assert!(source.pace(7).all(|exchange| exchange.at < source.until)),
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **When a transfer is due.** A transfer is due one gap after the *scheduled start* of the previous one
//! in its session. The gap is drawn from the model. Neither the duration of a transfer nor a late start
//! delays the next one. So a session may have several transfers in progress ("the connection initiation
//! schedule [..] is made independent of network feedback", section 4.1, footnote 4, of the paper; "an
//! active session may be multiplexing multiple concurrent connections", section 4.2). Only the duration of
//! each transfer responds to the network.
//!
//! **How many sessions.** Each interval has the number of sessions that the model was tuned to, times
//! [`Playback::load`]. Rounding remainders are carried to the next interval. A session that continues into
//! the next interval keeps its gaps, but its source and destination are drawn anew ("we choose a source
//! and destination address for each active session at the start of each interval", section 4.1). When an
//! interval needs fewer sessions, the surplus ones start no more transfers. Transfers in progress are
//! never cut.
//!
//! A session begins with the residual life of a gap, as if it had always been active. Otherwise every
//! session would begin with a transfer, and intervals with a peak. The parts of the first and last
//! interval that the records did not cover are skipped. Under [`Profile::Harpoon`] sessions behave as in
//! the released program. They begin with up to a second of jitter, then a whole gap, and end after the
//! length of an interval.
//!
//! **How values are drawn.** Gaps, sizes up and sizes down are stratified ([`super::Stratified`]) over as
//! many draws as an interval has transfers. Each transfer is a draw from its distribution. All transfers
//! of an interval together follow it more closely than independent draws would. Without this, a few
//! heavy-tailed sizes would decide the volume of an interval. Under the released program's profile, draws
//! are independent.
//!
//! **Rates.** A file that took ten seconds or more in the records is played at most at the rate of such a file
//! ([`Transfer::limits`]), however fast the network is. Its rate does not depend on load, sizes or compression. Others
//! are as fast as TCP and the network allow. If both files of a connection have a limit, they share the time of the larger
//! one, because the second one begins when the first one is over.
//!
//! **Hosts** are ranks, 0 the most popular. If a pool has fewer addresses than the model has hosts, use
//! the rank modulo the size of the pool.

use swell_base::{Code, Dur, Time, Warning};

use super::law::Law;
use super::model::{ENOUGH, FlowModel, Popularity, Profile};
use super::playback::Playback;

mod arrivals;
mod files;
mod player;
mod rates;
mod rounds;
mod share;
mod udp;

pub use player::{Due, Player, Transfer};
pub use share::Share;
pub use udp::{Burst, Exchange, Pacer, UdpSource, randomly};

use rates::FileRates;
use rounds::{Rounds, whole};
use udp::UdpPlan;

/// Maximum number of sessions, or of datagram sources of a kind, active at once.
const MAX_SESSIONS: u64 = 1 << 20;
/// Maximum number of datagram sources that arrive individually in one round of all intervals.
const MAX_ARRIVALS: u64 = 1 << 31;
/// The quantile of the observed rates that is taken for the network's rate of large files. Slower
/// transfers may have paused, so their rate says nothing about the network.
const FAST: f64 = 0.999;
/// Minimum length of an interval.
const SHORTEST: Dur = Dur::from_millis(1);

/// Why a model cannot be played with these settings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A factor out of range.
    #[error("{what} {value} is not between 0.000001 and 1000000")]
    Factor {
        /// Name of the factor.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// `durations` out of range.
    #[error("durations {0} is not between 0 and 1000000")]
    Durations(f64),
    /// No such interval.
    #[error("there is no interval {first}: the model has {intervals}, counted from 0")]
    First {
        /// The requested interval.
        first: usize,
        /// Number of intervals.
        intervals: usize,
    },
    /// Nothing would ever be sent.
    #[error("no interval from {first} on has sessions at this load: raise it, or begin earlier")]
    Silent {
        /// The first interval.
        first: usize,
    },
    /// Too many sessions.
    #[error("{sessions} sessions at once are more than {MAX_SESSIONS}: lower the load")]
    Sessions {
        /// The largest number of sessions at once.
        sessions: u64,
    },
    /// Too many datagram sources.
    #[error("{sources} datagram sources are more than {MAX_ARRIVALS}: lower the load")]
    Arrivals {
        /// Number of sources of one kind.
        sources: u64,
    },
    /// Intervals too short.
    #[error("an interval would last {0}, less than {SHORTEST}: lower the compression")]
    Interval(Dur),
}

/// A model prepared for playback: distributions, and the number of active sessions over time. The same for
/// every player.
#[derive(Clone, Debug)]
pub struct Plan {
    profile: Profile,
    rounds: Rounds,
    /// Sessions of each interval, from the first played one.
    sessions: Vec<u64>,
    gaps: Option<Law>,
    up: Option<Law>,
    down: Option<Law>,
    /// Target volume of each interval in bytes, both directions, with unscaled sizes.
    volumes: Vec<f64>,
    /// Expected seconds that a large file takes per byte of its size in the model.
    pace: f64,
    /// Rates of files up and down.
    rates: [FileRates; 2],
    playback: Playback,
    sources: Ranks,
    destinations: Ranks,
    udp: Vec<UdpPlan>,
}

impl Plan {
    /// Prepares `model` for playback as `playback` says.
    ///
    /// # Errors
    /// If a factor is out of range, or there is nothing to play.
    pub fn new(model: &FlowModel, playback: &Playback) -> Result<Plan, PlanError> {
        for (what, value) in [
            ("load", playback.load),
            ("compression", playback.compression),
            ("sizes", playback.sizes),
            ("gaps", playback.gaps),
        ] {
            if !(1e-6..=1e6).contains(&value) {
                return Err(PlanError::Factor { what, value });
            }
        }
        if !(0.0..=1e6).contains(&playback.durations) {
            return Err(PlanError::Durations(playback.durations));
        }
        let intervals = &model.tcp.intervals;
        let first = playback.first;
        if first >= intervals.len() {
            let intervals = intervals.len();
            return Err(PlanError::First { first, intervals });
        }
        let interval = model.interval.scale(1.0 / playback.compression);
        if interval < SHORTEST {
            return Err(PlanError::Interval(interval));
        }
        let [lead, tail] = model.edges().map(|e| e.scale(1.0 / playback.compression));
        let lead = if first == 0 { lead } else { Dur::ZERO };
        let gaps = model.gap_law();
        let wanted = intervals[first..].iter().map(|i| match gaps {
            Some(_) => i.sessions as f64 * playback.load,
            None => 0.0,
        });
        let mut plan = Plan {
            profile: model.profile,
            rounds: Rounds {
                intervals: (intervals.len() - first) as u64,
                interval,
                edges: [lead, tail],
                cycle: playback.cycle,
            },
            sessions: whole(wanted),
            gaps,
            up: model.tcp.up.law().filter(|l| l.mean() > 0.0),
            down: model.tcp.down.law(),
            volumes: Vec::new(),
            pace: Law::of(&model.tcp.rates).map_or(0.0, |l| {
                playback.durations * playback.sizes / l.quantile(FAST).max(1.0)
            }),
            rates: match model.profile {
                Profile::Fixed => model.tcp.rates_by_size.each_ref().map(FileRates::new),
                Profile::Harpoon => Default::default(),
            },
            playback: *playback,
            sources: Ranks::new(&model.tcp.sources),
            destinations: Ranks::new(&model.tcp.destinations),
            udp: Vec::new(),
        };
        plan.volumes = plan.volumes_of(model);
        let udp = |u| UdpPlan::new(u, model, playback, plan.round());
        plan.udp = model.udp.iter().map(udp).collect();
        let counts = || std::iter::once(&plan.sessions).chain(plan.udp.iter().map(UdpPlan::slots));
        let most = counts().flatten().copied().max().unwrap_or(0);
        if most > MAX_SESSIONS {
            return Err(PlanError::Sessions { sessions: most });
        }
        let arrivals = plan.udp.iter().map(|u| u.arrivals.all()).max().unwrap_or(0);
        if arrivals > MAX_ARRIVALS {
            return Err(PlanError::Arrivals { sources: arrivals });
        }
        if most == 0 && plan.udp.iter().all(UdpPlan::is_silent) {
            return Err(PlanError::Silent { first });
        }
        Ok(plan)
    }

    /// Number of intervals before the end, or in a cycle.
    pub fn intervals(&self) -> usize {
        self.sessions.len()
    }

    /// Total duration; `None` if it cycles endlessly.
    pub fn length(&self) -> Option<Dur> {
        (!self.rounds.cycle).then(|| self.round())
    }

    /// TCP sessions active at `at`, counted from the start of playback.
    pub fn sessions(&self, at: Time) -> u64 {
        self.rounds.of(&self.sessions, self.index(at))
    }

    /// Expected number of transfers that start in interval `index`, if the generator keeps its schedule.
    pub fn expected(&self, index: u64) -> f64 {
        let Some(gaps) = self.gaps.as_ref().filter(|_| self.down.is_some()) else {
            return 0.0;
        };
        let each =
            self.rounds.lasts(index).as_nanos() as f64 / 1e3 / (gaps.mean() * self.playback.gaps);
        self.rounds.of(&self.sessions, index) as f64 * each
    }

    /// A note if intervals have too few transfers for their volumes, although the model's own intervals may have enough:
    /// compression divides them.
    pub fn few(&self) -> Option<Warning> {
        let mut begun: Vec<f64> = (0..self.sessions.len() as u64)
            .map(|index| self.expected(index))
            .filter(|&n| n > 0.0)
            .collect();
        begun.sort_by(f64::total_cmp);
        let middling = *begun.get(begun.len() / 2)?;
        let all: f64 = begun.iter().sum();
        (middling < ENOUGH as f64).then(|| {
            Warning::note(
                Code::FewPerInterval,
                format!(
                    "played like this, a middling interval has {middling:.1} connections, and all intervals together \
                     {all:.0}: chance decides which files are among so few, and the volume of single intervals is more \
                     than 5 % off where there are fewer than {ENOUGH}; a lower compression or a higher load has more"
                ),
            )
        })
    }

    /// Expected number of transfers of all intervals.
    pub fn transfers(&self) -> f64 {
        (0..self.sessions.len() as u64)
            .map(|index| self.expected(index))
            .sum()
    }

    /// Number of datagram sources of all intervals: those that arrive one by one, and those active at once in each.
    pub fn sources(&self) -> f64 {
        let of = |u: &UdpPlan| u.arrivals.all() as f64 + u.slots().iter().sum::<u64>() as f64;
        self.udp.iter().map(of).sum()
    }

    /// Whether some files have a limit on their rate ([`Transfer::limits`]).
    pub fn is_limited(&self) -> bool {
        self.rates.iter().any(|r| !r.is_empty())
    }

    /// Seconds within which every file with a limit on its rate is sent, if the network does not delay it; 0 if none has
    /// a limit.
    pub fn longest(&self) -> f64 {
        let laws = [&self.up, &self.down].into_iter().zip(&self.rates);
        let longest = laws.filter_map(|(law, rates)| Some(rates.longest(law.as_ref()?)));
        longest.fold(0.0, f64::max) * self.playback.sizes
    }

    /// Expected seconds of a file with `size` bytes in the model and this limit on its rate.
    fn takes(&self, size: f64, limit: Option<f64>) -> f64 {
        let slow = limit.map_or(0.0, |rate| size * self.playback.sizes / rate);
        slow.max(size * self.pace)
    }

    /// The bytes of the model's intervals, scaled to the playback's sessions and times. If the model's
    /// sessions were not tuned to these bytes (set by hand, or by the released program), the expected
    /// bytes of the sessions.
    fn volumes_of(&self, model: &FlowModel) -> Vec<f64> {
        if !model.is_tuned() {
            let one: f64 = [&self.up, &self.down]
                .into_iter()
                .flatten()
                .map(Law::mean)
                .sum();
            return (0..self.sessions.len() as u64)
                .map(|i| self.expected(i) * one)
                .collect();
        }
        let p = &self.playback;
        let factor = p.load / (p.compression * p.gaps);
        model.tcp.intervals[p.first..]
            .iter()
            .map(|i| i.bytes as f64 * factor)
            .collect()
    }

    /// The interval at time `at`. In a cycle, numbers continue from round to round.
    pub fn index(&self, at: Time) -> u64 {
        self.rounds.index(at)
    }

    /// Time to play all intervals once; not zero.
    pub fn round(&self) -> Dur {
        self.rounds.length()
    }
}

/// A popularity prepared for drawing by bisection.
#[derive(Clone, Debug, Default)]
struct Ranks {
    /// Cumulative choices including these ranks, first rank, choices per rank.
    steps: Vec<(f64, u64, f64)>,
    total: f64,
    hosts: u64,
}

impl Ranks {
    fn new(popularity: &Popularity) -> Ranks {
        let mut ranks = Ranks::default();
        for &(count, n) in &popularity.ranks {
            ranks.total += count as f64 * n as f64;
            ranks.steps.push((ranks.total, ranks.hosts, count as f64));
            ranks.hosts = ranks.hosts.saturating_add(n);
        }
        ranks
    }

    /// The rank that a uniform `u` in 0..1 chooses; 0 if there are none.
    fn choose(&self, u: f64) -> u64 {
        let at = u * self.total;
        let i = self.steps.partition_point(|s| s.0 <= at);
        let Some(&(_, first, count)) = self.steps.get(i) else {
            return self.hosts.saturating_sub(1);
        };
        let before = i.checked_sub(1).map_or(0.0, |j| self.steps[j].0);
        let within = ((at - before) / count) as u64;
        first
            .saturating_add(within)
            .min(self.hosts.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests;
