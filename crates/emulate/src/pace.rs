//! How the loop waits between two looks at its hosts.

use swell_base::{Dur, Time};

/// With `Precise`, the last part of a wait is spent spinning. A wake-up takes 12 to 17 us on a virtual machine, so
/// spinning for longer than this would waste power.
const SPIN: Dur = Dur::from_micros(50);

/// What a wake-up may cost, against how exact it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Wakes for every packet that arrives and for every one that is due; where many leave close together, for several at
    /// once ([`Gathering`]).
    #[default]
    Prompt,
    /// Watches the clock for the last microseconds of every wait.
    Precise,
    /// After a look that found something to do, looks again no earlier than this later (of the wall's
    /// time), as network cards moderate their interrupts. Packets are stamped and let out late by up
    /// to this each.
    Coalesced(Dur),
}

impl Pace {
    /// The longest that packets may be made to wait: a run in which that many are later is marked.
    pub const MOST: Dur = Dur::from_millis(1);

    /// The part of a wait that is spent spinning.
    pub(super) fn spin(self) -> Dur {
        match self {
            Pace::Precise => SPIN,
            Pace::Prompt | Pace::Coalesced(_) => Dur::ZERO,
        }
    }

    /// How long devices are not read after a look that found packets.
    pub(super) fn rest(self) -> Option<Dur> {
        match self {
            Pace::Coalesced(rest) => Some(rest.min(Pace::MOST)),
            Pace::Prompt | Pace::Precise => None,
        }
    }
}

/// Departures whose lateness is judged together.
const WINDOW: usize = 128;
/// The loop never waits longer for a departure to have company.
const LONGEST: Dur = Dur::from_micros(50);
/// The median lateness is held below this, with room for what comes after the loop has let a packet go.
const MEDIAN: Dur = Dur::from_micros(25);
/// By so much the wait grows while the median is well below.
const STEP: Dur = Dur::from_micros(2);

/// How long the loop waits after a departure is due, so that one wake-up serves several.
///
/// It waits only where a quarter of all departures follow the one before so soon that this saves wake-ups, and only as far
/// as the median of the measured lateness allows.
#[derive(Debug)]
pub(super) struct Gathering {
    most: Dur,
    wait: Dur,
    last: Time,
    close: usize,
    late: Vec<Dur>,
}

impl Gathering {
    /// For a network that takes at least `crossing` one way. The wait is at most a two-hundredth of that: a tenth of what
    /// could change a result.
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

    /// From now on a packet may cross the network in so short a time.
    pub fn crosses_in(&mut self, crossing: Dur) {
        self.most = self.most.min(crossing / 200);
        self.wait = self.wait.min(self.most);
    }

    /// How long to wait after the next departure is due.
    pub fn wait(&self) -> Dur {
        self.wait
    }

    /// A packet that was due at `at` left `late`, in the wall's time.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets packets with these distances out, each wake-up `wake` late: median lateness and wake-ups per packet of the
    /// second half.
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

    /// Exponential distances with this mean.
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
        // Where wake-ups take long there is no room, and none on short ways.
        play(&mut gathering, poisson(40_000.0), 60_000);
        assert_eq!(gathering.wait(), Dur::ZERO);
        let mut short = Gathering::new(Pace::Prompt, Dur::from_micros(400));
        play(&mut short, poisson(20_000.0), 2_000);
        assert!(short.wait() <= Dur::from_micros(2));
    }
}
