//! How the loop waits between two looks at its hosts.

use swell_base::Dur;

/// With `Precise`, the last part of a wait is spent spinning. A wake-up takes 12 to 17 us on a virtual machine, so
/// spinning for longer than this would waste power.
const SPIN: Dur = Dur::from_micros(50);

/// What a wake-up may cost, against how exact it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Wakes for every packet that arrives and for every one that is due.
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
