//! How the loop waits between two polls of its hosts.

use swell_base::{Dur, Time};

/// With `Precise`, the last part of a wait is spent spinning. A wake-up takes 12 to 17 us on a virtual machine, so
/// spinning for longer than this would waste power.
const SPIN: Dur = Dur::from_micros(50);

/// The trade-off between the cost of wake-ups and their precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Wakes for every packet that arrives and for every packet that is due. If many departures are close together,
    /// one wake-up serves several ([`Gathering`]).
    #[default]
    Prompt,
    /// Spins for the last microseconds of every wait.
    Precise,
    /// After a poll that found packets, waits at least this long (wall-clock time) before the next poll, like the
    /// interrupt moderation of network cards. Packets are stamped and released late by up to this much each.
    Coalesced(Dur),
}

impl Pace {
    /// The longest such wait. A run in which too many packets are later than this is marked.
    pub const MOST: Dur = Dur::from_millis(1);

    /// The part of a wait that is spent spinning.
    pub(super) fn spin(self) -> Dur {
        match self {
            Pace::Precise => SPIN,
            Pace::Prompt | Pace::Coalesced(_) => Dur::ZERO,
        }
    }

    /// How long devices are not read after a poll that found packets.
    pub(super) fn rest(self) -> Option<Dur> {
        match self {
            Pace::Coalesced(rest) => Some(rest.min(Pace::MOST)),
            Pace::Prompt | Pace::Precise => None,
        }
    }
}

/// Number of departures whose lateness is evaluated together.
const WINDOW: usize = 128;
/// Longest wait of a departure for others to share its wake-up.
const LONGEST: Dur = Dur::from_micros(50);
/// Target of the median lateness, with a margin for delays after the loop has released a packet.
const MEDIAN: Dur = Dur::from_micros(25);
/// Increment of the wait while the median is well below its target.
const STEP: Dur = Dur::from_micros(2);

/// How long the loop waits after a departure is due, so that one wake-up serves several departures.
///
/// It waits only if at least a quarter of all departures follow the previous one so closely that this saves wake-ups.
/// The wait is limited so that the measured median lateness stays below its target.
#[derive(Debug)]
pub(super) struct Gathering {
    most: Dur,
    wait: Dur,
    last: Time,
    close: usize,
    late: Vec<Dur>,
}

impl Gathering {
    /// For a network whose one-way delay is at least `crossing`. The wait is at most `crossing`/200: a tenth of the
    /// lateness that could change a result.
    pub fn new(pace: Pace, crossing: Dur) -> Gathering {
        Gathering {
            most: match pace {
                Pace::Prompt => LONGEST.min(crossing / 200),
                Pace::Precise | Pace::Coalesced(_) => Dur::ZERO,
            },
            wait: Dur::ZERO,
            last: Time::ZERO,
            close: 0,
            late: Vec::with_capacity(WINDOW),
        }
    }

    /// Lowers the shortest time in which a packet crosses the network.
    pub fn crosses_in(&mut self, crossing: Dur) {
        self.most = self.most.min(crossing / 200);
        self.wait = self.wait.min(self.most);
    }

    /// How long to wait after the next departure is due.
    pub fn wait(&self) -> Dur {
        self.wait
    }

    /// A packet that was due at `at` left later by `late` (wall-clock time).
    pub fn left(&mut self, at: Time, late: Dur) {
        if self.most == Dur::ZERO {
            return;
        }
        let gap = at.since(self.last);
        self.close += usize::from(gap > Dur::ZERO && gap <= LONGEST);
        self.last = at;
        self.late.push(late);
        if self.late.len() < WINDOW {
            return;
        }
        let (_, median, _) = self.late.select_nth_unstable(WINDOW / 2);
        self.wait = match *median {
            _ if self.close < WINDOW / 4 => Dur::ZERO,
            median if median > MEDIAN => self.wait.saturating_sub(median - MEDIAN),
            median if median + STEP * 2 < MEDIAN => (self.wait + STEP).min(self.most),
            _ => self.wait,
        };
        self.late.clear();
        self.close = 0;
    }
}

/// Number of sleeps that are evaluated together.
const SLEEPS: usize = 64;
/// Longest time by which a sleep is shortened.
const EARLIEST: Dur = Dur::from_micros(50);

/// How late sleeps end. The timer's interrupt and the switch to the thread take 10 to 20 us on a virtual machine.
///
/// A sleep is shortened by what nine in ten sleeps are late by at least. So it ends shortly after the instant that is
/// meant. One in ten ends before, by a few microseconds that are spent spinning: less than another sleep would cost.
#[derive(Debug, Default)]
pub(super) struct Oversleep {
    late: Vec<Dur>,
    least: Dur,
}

impl Oversleep {
    /// How much earlier than meant a sleep of `span` (wall-clock time) should end. At least half of it is slept, because
    /// a loop that spins between packets that follow one another closely takes a whole processor.
    pub fn early(&self, span: Dur) -> Dur {
        self.least.min(span / 2)
    }

    /// A sleep ended later than asked for by `late`.
    pub fn slept(&mut self, late: Dur) {
        self.late.push(late);
        if self.late.len() < SLEEPS {
            return;
        }
        let (_, tenth, _) = self.late.select_nth_unstable(SLEEPS / 10);
        self.least = (*tenth).min(EARLIEST);
        self.late.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_shortened_by_what_most_of_them_are_late_by() {
        let mut oversleep = Oversleep::default();
        let us = Dur::from_micros;
        let mut sleeps = |late: &dyn Fn(usize) -> u64| {
            (0..SLEEPS).for_each(|i| oversleep.slept(us(late(i))));
            [1000, 20].map(|span| oversleep.early(us(span)))
        };
        assert_eq!(sleeps(&|i| 12 + i as u64 % 10), [us(12), us(10)]);
        // A few stalls, and a few sleeps that happened to be exact, change nothing.
        let odd = |i| match i % 16 {
            0 => 3000,
            1 => 1,
            _ => 15,
        };
        assert_eq!(sleeps(&odd), [us(15), us(10)]);
        assert_eq!(sleeps(&|_| 4000), [EARLIEST, us(10)]);
        assert_eq!(sleeps(&|_| 2), [us(2), us(2)]);
    }

    /// Simulates departures with these gaps, where each wake-up is late by `wake`. Returns the median lateness and
    /// the wake-ups per packet in the second half.
    fn play(gathering: &mut Gathering, gaps: impl Iterator<Item = u64>, wake: u64) -> (Dur, f64) {
        let mut at = 0;
        let due: Vec<u64> = gaps
            .map(|gap| {
                at += gap;
                at
            })
            .collect();
        let (mut late, mut wakes, mut k) = (Vec::new(), 0, 0);
        while k < due.len() {
            let now = due[k] + gathering.wait().as_nanos() + wake;
            wakes += u64::from(k >= due.len() / 2);
            while k < due.len() && due[k] <= now {
                let by = Dur::from_nanos(now - due[k]);
                gathering.left(Time::ZERO + Dur::from_nanos(due[k]), by);
                if k >= due.len() / 2 {
                    late.push(by);
                }
                k += 1;
            }
        }
        late.sort_unstable();
        (late[late.len() / 2], wakes as f64 / late.len() as f64)
    }

    /// Exponentially distributed gaps with this mean.
    fn poisson(mean: f64) -> impl Iterator<Item = u64> {
        let mut state = 1u64;
        (0..40_000).map(move |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let u = ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            (-u.ln() * mean) as u64
        })
    }

    const FAR: Dur = Dur::from_millis(20);

    #[test]
    fn many_packets_share_a_wake_up_as_far_as_the_median_allows() {
        for (mean, wake, fewer) in [(20_000.0, 8_000, 0.65), (50_000.0, 8_000, 0.85)] {
            let prompt = &mut Gathering::new(Pace::Precise, FAR);
            let (_, alone) = play(prompt, poisson(mean), wake);
            let (median, together) =
                play(&mut Gathering::new(Pace::Prompt, FAR), poisson(mean), wake);
            assert!(median < Dur::from_micros(28), "{mean}: {median:?}");
            assert!(together < alone * fewer, "{mean}: {together} of {alone}");
        }
    }

    #[test]
    fn nobody_waits_for_company_that_does_not_come() {
        let mut gathering = Gathering::new(Pace::Prompt, FAR);
        let (median, _) = play(&mut gathering, (0..2000).map(|_| 100_000), 8_000);
        assert_eq!((gathering.wait(), median), (Dur::ZERO, Dur::from_micros(8)));
        // No wait if wake-ups are slow, and almost none if the network is short.
        play(&mut gathering, poisson(40_000.0), 60_000);
        assert_eq!(gathering.wait(), Dur::ZERO);
        let mut short = Gathering::new(Pace::Prompt, Dur::from_micros(400));
        play(&mut short, poisson(20_000.0), 2_000);
        assert!(short.wait() <= Dur::from_micros(2));
    }
}
