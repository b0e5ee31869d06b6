//! Events in eight bytes each, because the event queue moves many of them.

use swell_base::{End, Ranked};
use swell_path::SlotId;

use crate::index::{ACCESS, LinkIndex};

/// An event in one word: its rank in the highest bits, then its subject, and its kind in the lowest bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake(u64);

/// Where a packet arrives after it has crossed a link with an event of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrives {
    /// At the first queue of its way.
    First,
    /// At this queue.
    Queue(LinkIndex),
    /// At the end of its way.
    Host,
}

/// A decoded [`Wake`].
pub(crate) enum Due {
    /// A packet arrives.
    Packet(SlotId, Arrives),
    /// A link may have work to do.
    Link(LinkIndex),
    /// A timer of a TCP endpoint expires.
    Tcp { flow: u32, end: End },
    /// A timer of a workload expires.
    Work { workload: u32, token: u64 },
    /// The last packets of a closed flow have had time to arrive.
    Reap(u32),
}

impl Wake {
    /// The rank of [wake-ups of links](Self::link).
    pub const RANK_OF_LINKS: u32 = rank::OTHER;

    #[inline]
    const fn new(rank: u32, about: u32, kind: u64) -> Wake {
        Wake((rank as u64) << RANK_AT | (about as u64) << ABOUT_AT | kind)
    }
    /// A packet reaches the end of its way. `bare`: it is a pure ACK.
    #[inline]
    pub fn at_host(place: SlotId, bare: bool) -> Wake {
        let rank = if bare { rank::BARE } else { rank::OTHER };
        Wake::new(rank, place.number(), kind::AT_HOST)
    }
    /// A packet reaches the first queue of its way over an access link. `serial` is the serial number of that link;
    /// `before` counts the packets that it carried back to back before this one.
    #[inline]
    pub fn at_first(place: SlotId, serial: u16, before: u32) -> Wake {
        let order = (before.min(MOST_BEFORE) << LINK_BITS) | u32::from(serial);
        Wake::new(rank::AT_QUEUE + order, place.number(), kind::AT_FIRST)
    }
    /// A packet reaches a queue from the previous queue of its way.
    #[inline]
    pub fn at_queue(place: SlotId, queue: LinkIndex) -> Wake {
        Wake::new(rank::AT_QUEUE + queue, place.number(), kind::AT_QUEUE)
    }
    #[inline]
    pub fn link(index: LinkIndex) -> Wake {
        Wake::new(rank::OTHER, index, kind::LINK)
    }
    #[inline]
    pub fn tcp(flow: u32, end: End) -> Wake {
        Wake::new(rank::TIMER, flow, kind::TCP + end as u64)
    }
    #[inline]
    pub fn reap(flow: u32) -> Wake {
        Wake::new(rank::OTHER, flow, kind::REAP)
    }
    /// Whether this is the arrival of a packet at a queue.
    #[inline]
    pub fn is_at_queue(self) -> bool {
        matches!(self.kind(), kind::AT_FIRST | kind::AT_QUEUE)
    }
    #[inline]
    fn kind(self) -> u64 {
        self.0 % (1 << ABOUT_AT)
    }
    #[inline]
    fn about(self) -> u32 {
        (self.0 >> ABOUT_AT) as u32
    }
    /// The packet that arrives and where, if this is the arrival of a packet.
    #[inline]
    fn of_packet(self) -> Option<(SlotId, Arrives)> {
        let at = match self.kind() {
            kind::AT_HOST => Arrives::Host,
            kind::AT_FIRST => Arrives::First,
            kind::AT_QUEUE => Arrives::Queue(self.rank() - rank::AT_QUEUE),
            _ => return None,
        };
        Some((SlotId::numbered(self.about()), at))
    }
}

const ABOUT_AT: u32 = 4;
const _: () = assert!(ACCESS <= 1 << LINK_BITS);
const RANK_AT: u32 = 32 + ABOUT_AT;

mod kind {
    pub(super) const AT_HOST: u64 = 0;
    pub(super) const AT_FIRST: u64 = 1;
    pub(super) const AT_QUEUE: u64 = 2;
    pub(super) const LINK: u64 = 3;
    /// This value for the client, the next for the server.
    pub(super) const TCP: u64 = 4;
    pub(super) const REAP: u64 = 6;
    /// A workload timer that fits in a word.
    pub(super) const WORK: u64 = 7;
    /// A workload timer stored in [`Timers`](super::Timers).
    pub(super) const PLACED_WORK: u64 = 8;
}

mod rank {
    pub(super) const BARE: u32 = 0;
    pub(super) const OTHER: u32 = 1;
    pub(super) const TIMER: u32 = 2;
    pub(super) const WORK: u32 = 3;
    /// Lowest rank of packets that reach queues; they use all higher ranks.
    pub(super) const AT_QUEUE: u32 = 4;
}

/// Orders the events at one instant independently of when they were queued. Pure ACKs arrive first, then other
/// packets; then endpoint timers expire, then workload timers.
///
/// Queues of shared links have no events, because each has a single next deadline
/// ([`Links::next_due`](crate::links::Links::next_due)). Packets that reach hosts directly from a shared link come
/// after packets that reach other hosts at the same instant. They are ordered by queue number.
///
/// Packets that reach queues come last, in an order of their own. They are ordered by the number of packets that
/// their access link carried back to back before them, fewest first: that host was the last to begin sending. With
/// packets of one size, ns-2 has the same order, because it schedules an arrival when the transmission begins. A
/// packet from another queue counts as having no packet before it. Ties go to the access link that was added first.
impl Ranked for Wake {
    #[inline]
    fn rank(&self) -> u32 {
        (self.0 >> RANK_AT) as u32
    }
}

const LINK_BITS: u32 = u16::BITS;
const MOST_BEFORE: u32 = (1 << (u64::BITS - RANK_AT - LINK_BITS)) - 2;

/// Timers with workload and token below these values fit in a word and need no entry in [`Timers`].
const SMALL_WORKLOAD: u32 = 1 << 20;
const SMALL_TOKEN: u64 = 1 << 12;

/// Pending workload timers that do not fit in a word. Their wake-ups hold an index into this table.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    set: Vec<(u32, u64)>,
    free: Vec<u32>,
}

impl Timers {
    /// Sets a timer and returns its wake-up.
    #[inline]
    pub fn set(&mut self, workload: u32, token: u64) -> Wake {
        if workload < SMALL_WORKLOAD && token < SMALL_TOKEN {
            let about = token as u32 * SMALL_WORKLOAD + workload;
            return Wake::new(rank::WORK, about, kind::WORK);
        }
        Wake::new(rank::WORK, self.place(workload, token), kind::PLACED_WORK)
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

    /// Decodes a wake-up when it is due, and releases the entry of a timer.
    #[inline]
    pub fn open(&mut self, wake: Wake) -> Due {
        if wake.kind() == kind::PLACED_WORK {
            self.free.push(wake.about());
        }
        self.look(wake)
    }

    /// Decodes a wake-up.
    #[inline]
    pub fn look(&self, wake: Wake) -> Due {
        if let Some((place, at)) = wake.of_packet() {
            return Due::Packet(place, at);
        }
        let about = wake.about();
        match wake.kind() {
            kind::LINK => Due::Link(about),
            kind::REAP => Due::Reap(about),
            kind::WORK => Due::Work {
                workload: about % SMALL_WORKLOAD,
                token: u64::from(about / SMALL_WORKLOAD),
            },
            kind::PLACED_WORK => {
                let (workload, token) = self.set[about as usize];
                Due::Work { workload, token }
            }
            tcp => Due::Tcp {
                flow: about,
                end: End::of(tcp != kind::TCP),
            },
        }
    }
}
