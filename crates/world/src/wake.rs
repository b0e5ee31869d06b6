//! What is due at an instant, in eight bytes: the event queue moves a lot of them.

use crate::flow::LinkIndex;

/// Something due, as a word: the kind in the two lowest bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake(u64);

/// The same, opened.
pub(crate) enum Due {
    /// A link's next departure.
    Link(LinkIndex),
    /// A timer of an endpoint.
    Tcp { flow: u32, end: u8 },
    /// A timer of a workload.
    Work { workload: u32, token: u64 },
    /// The last packets of a flow have had time to arrive.
    Reap(u32),
}

impl Wake {
    #[inline]
    pub fn link(index: LinkIndex) -> Wake {
        Wake(u64::from(index) << 2)
    }
    #[inline]
    pub fn tcp(flow: u32, end: u8) -> Wake {
        Wake(u64::from(flow) << 3 | u64::from(end) << 2 | 1)
    }
    #[inline]
    pub fn reap(flow: u32) -> Wake {
        Wake(u64::from(flow) << 2 | 2)
    }
    /// The link that it is about, if it is about one.
    #[inline]
    pub fn of_link(self) -> Option<LinkIndex> {
        (self.0 & 3 == 0).then_some((self.0 >> 2) as LinkIndex)
    }
}

/// Workloads and tokens below these fit a word and need no place in [`Timers`].
const SMALL_WORKLOAD: u32 = 1 << 20;
const SMALL_TOKEN: u64 = 1 << 40;

/// Timers of workloads that are set and do not fit a word: their wake-ups name a place here.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    set: Vec<(u32, u64)>,
    free: Vec<u32>,
}

impl Timers {
    /// The wake-up of a new timer.
    #[inline]
    pub fn set(&mut self, workload: u32, token: u64) -> Wake {
        if workload < SMALL_WORKLOAD && token < SMALL_TOKEN {
            return Wake(token << 23 | u64::from(workload) << 3 | 3);
        }
        Wake(u64::from(self.place(workload, token)) << 3 | 7)
    }

    fn place(&mut self, workload: u32, token: u64) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.set[place as usize] = (workload, token);
                place
            }
            None => {
                self.set.push((workload, token));
                self.set.len() as u32 - 1
            }
        }
    }

    /// What a wake-up is about; a timer is thereby spent.
    #[inline]
    pub fn open(&mut self, wake: Wake) -> Due {
        if wake.0 & 7 == 7 {
            self.free.push((wake.0 >> 3) as u32);
        }
        self.look(wake)
    }

    /// What a wake-up is about.
    #[inline]
    pub fn look(&self, wake: Wake) -> Due {
        let index = (wake.0 >> 2) as u32;
        match wake.0 & 3 {
            0 => Due::Link(index),
            1 => Due::Tcp {
                flow: (wake.0 >> 3) as u32,
                end: (index & 1) as u8,
            },
            2 => Due::Reap(index),
            _ if wake.0 & 4 == 0 => Due::Work {
                workload: (wake.0 >> 3) as u32 % SMALL_WORKLOAD,
                token: wake.0 >> 23,
            },
            _ => {
                let (workload, token) = self.set[(wake.0 >> 3) as usize];
                Due::Work { workload, token }
            }
        }
    }
}
