//! Detects that packets were recorded at two points of their path, up to a second apart.
//!
//! Examples are captures of both ends of a connection in one file, and those on all interfaces of a router that queues
//! packets. A copy then comes as long after its packet as a retransmission does. So the numbers of packets have to tell
//! them apart, and the copies of what one host sends to another have to come in the order of their packets: chance makes
//! equal numbers in any order.
//!
//! If the file says that the points are two interfaces, [`Interfaces`](crate::interfaces::Interfaces) leaves out those of
//! one. Otherwise the first of equal packets is used, as its sender sent it. The round trips to both ends together
//! are then true, and each has its share by the direction in which it passes between the points.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::Packet;
use crate::evidence::{LEAST, SHARE, WITHIN, is_marked, print};
use crate::identified::Told;

/// Longest time between a packet and its copy, nanoseconds.
const LONGEST: u64 = 1_000_000_000;
/// Most packets between a packet and its copy: before a counter of 16 bits returns to the same number, and before a host
/// that draws identifications may repeat one.
const BETWEEN: u32 = 1 << 15;
/// Buckets of the table of recent packets, and packets in each: 1.5 MB, with room for twice as many as may lie between.
const BUCKETS: usize = 1 << 13;
const DEEP: usize = 8;
/// Of packets that an identification tells apart, one in ten must be a copy, and so many at least.
const SURELY: Evidence = Evidence {
    share: [1, SHARE],
    copies: 16,
};
/// Of TCP packets with data, two in five if nothing tells copies from retransmissions. So many at least, as a server that
/// does not answer is sent a request several times.
const DATA: Evidence = Evidence {
    share: [2, 5],
    copies: 64,
};
/// Whether there are still copies is decided anew after so many packets that tell. Half the share is then enough.
const REVIEWED: u32 = 1 << 10;
/// One copy in so many may be in another order than its packet.
const DISORDER: u32 = 5;
/// Pairs of hosts whose latest copy is remembered.
const PAIRS: usize = 1 << 10;
/// Number of recent copies whose delays show where others are, …
const RECENT: usize = 64;
/// … and the fewest that do.
const FEW: usize = 16;

/// A recent packet. A fingerprint of 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    print: u64,
    time: i64,
    number: u32,
    interface: u32,
}

/// What an examined packet is a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Original {
    pub time: i64,
    pub interface: u32,
}

/// Packets that their numbers tell apart, and copies among them.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    seen: u32,
    copies: u32,
    /// Those of the copies that do not come in the order of their packets.
    disorder: u32,
}

/// What shows that there are copies: a share of the packets, and a number.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    share: [u32; 2],
    copies: u32,
}

impl Share {
    fn shows(&self, evidence: Evidence) -> bool {
        let [part, of] = evidence.share;
        self.copies >= evidence.copies
            && self.copies * of >= self.seen * part
            && self.disorder * DISORDER <= self.copies
    }
}

/// Finds copies that come later than a router takes.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// Whether the capture holds such copies.
    pub(crate) systematic: bool,
    /// The share of copies that showed it, and the time of the first packet afterwards.
    shown: [u32; 2],
    since: Option<i64>,
    /// Packets since the last review.
    review: Share,
    recent: Vec<[Seen; DEEP]>,
    number: u32,
    surely: Share,
    data: Share,
    /// TCP packets with data that nothing else tells apart, and those that came again. Of the whole trace.
    doubtful: Share,
    /// Pair of hosts and time of the packet whose copy came last.
    latest: Vec<(u64, i64)>,
    /// Delays of recent copies, nanoseconds.
    delays: Vec<u64>,
    turn: usize,
    /// Shortest and longest delay of a copy.
    around: [u64; 2],
    /// The longest delay of a copy that was left out.
    pub(crate) longest: u64,
}

impl Apart {
    /// Examines a packet that stands for so many. Returns the packet of which it is a copy, whatever the interface.
    pub(crate) fn examine(&mut self, p: &Packet, told: Told, of: u32) -> Option<Original> {
        let original = self.find(p, told, [0, LONGEST]);
        self.keep(p, told, of);
        if told == Told::No {
            return original;
        }
        let same = original.filter(|o| o.interface == p.interface);
        let delay = same.map_or(0, |o| o.time.abs_diff(p.time));
        let late = delay > WITHIN;
        let disorder = late && !self.in_order(p, p.time - delay as i64);
        let share = match told {
            Told::Surely => &mut self.surely,
            _ => &mut self.data,
        };
        share.seen += 1;
        share.copies += u32::from(late);
        share.disorder += u32::from(disorder);
        if late {
            self.delay(delay);
        }
        original
    }

    /// Number of packets examined since the last decision.
    pub(crate) fn examined(&self) -> u32 {
        self.surely.seen + self.data.seen
    }

    /// Decides whether what was examined shows that the capture holds copies.
    pub(crate) fn decide(&mut self) {
        let shown = [(self.surely, SURELY), (self.data, DATA)];
        if let Some((_, by)) = shown.into_iter().find(|(share, by)| share.shows(*by)) {
            (self.systematic, self.shown, self.since) = (true, by.share, None);
        }
        self.doubtful.seen += self.data.seen;
        self.doubtful.copies += self.data.copies;
        (self.surely, self.data) = (Share::default(), Share::default());
    }

    /// Forgets the packets that were examined, before they are read again.
    pub(crate) fn start(&mut self) {
        self.recent.clear();
    }

    /// Whether the packet is a copy, in a capture that holds such.
    pub(crate) fn is_copy(&mut self, p: &Packet, told: Told) -> bool {
        let usual = match told {
            Told::Surely if self.delays.len() < FEW => [0, LONGEST],
            Told::Surely => [0, self.around[1]],
            _ => self.around,
        };
        let found = self.find(p, told, usual);
        self.review(p, told, found.is_some());
        // One that tells may have several copies. Others may be two packets, so each has one.
        if found.is_none() || told == Told::Surely {
            self.keep(p, told, 1);
        }
        let Some(original) = found else {
            return false;
        };
        let delay = original.time.abs_diff(p.time);
        if told == Told::Surely {
            self.delay(delay);
        }
        self.longest = self.longest.max(delay);
        true
    }

    /// Decides anew whether there are copies, now and then.
    fn review(&mut self, p: &Packet, told: Told, copy: bool) {
        // Until a second has passed, copies may be those of packets that were not kept.
        let since = *self.since.get_or_insert(p.time);
        if told == Told::No || since.abs_diff(p.time) < LONGEST {
            return;
        }
        self.review.seen += 1;
        self.review.copies += u32::from(copy);
        if self.review.seen == REVIEWED {
            let [part, of] = self.shown;
            self.systematic = 2 * self.review.copies * of >= self.review.seen * part;
            self.review = Share::default();
        }
    }

    /// The share of TCP packets with data that came again although none were left out, of those that nothing else tells
    /// apart.
    pub(crate) fn came_again(&self) -> Option<f64> {
        let d = &self.doubtful;
        let many = d.copies >= LEAST && d.copies >= d.seen / SHARE;
        (many && self.longest == 0).then(|| f64::from(d.copies) / f64::from(d.seen))
    }

    /// Takes an equal packet from the recent ones, with a delay from the shortest to the longest.
    fn find(&mut self, p: &Packet, told: Told, [shortest, longest]: [u64; 2]) -> Option<Original> {
        if self.recent.is_empty() || !is_marked(p) {
            return None;
        }
        let print = print(p, told);
        let (number, longest) = (self.number, longest.min(LONGEST));
        let equal = |s: &&mut Seen| {
            let delay = s.time.abs_diff(p.time);
            s.print == print
                && number.wrapping_sub(s.number) <= BETWEEN
                && (shortest..=longest).contains(&delay)
        };
        let seen = bucket(&mut self.recent, print).iter_mut().find(equal)?;
        let Seen {
            time, interface, ..
        } = std::mem::take(seen);
        Some(Original { time, interface })
    }

    /// Keeps a packet in the place of the one read first of its bucket.
    fn keep(&mut self, p: &Packet, told: Told, of: u32) {
        self.recent.resize(BUCKETS, [Seen::default(); DEEP]);
        self.number = self.number.wrapping_add(of);
        let seen = Seen {
            print: print(p, told),
            time: p.time,
            number: self.number,
            interface: p.interface,
        };
        let number = self.number;
        let age = |s: &&mut Seen| match s.print {
            0 => u32::MAX,
            _ => number.wrapping_sub(s.number),
        };
        if let Some(oldest) = bucket(&mut self.recent, seen.print)
            .iter_mut()
            .max_by_key(age)
        {
            *oldest = seen;
        }
    }

    /// Whether a copy's packet came after that of the copy before.
    fn in_order(&mut self, p: &Packet, original: i64) -> bool {
        self.latest.resize(PAIRS, (0, 0));
        let pair = FixedState::with_seed(3).hash_one((p.src, p.dst)) | 1;
        let latest = &mut self.latest[(pair >> 32) as usize % PAIRS];
        let (of, before) = std::mem::replace(latest, (pair, original));
        of != pair || before <= original
    }

    /// Takes the delay of a copy into account.
    fn delay(&mut self, delay: u64) {
        match self.delays.get_mut(self.turn) {
            Some(old) => *old = delay,
            None => self.delays.push(delay),
        }
        self.turn = (self.turn + 1) % RECENT;
        // Queues grow and shrink within some packets. Sorting at each would cost more than it gives.
        if self.turn.is_multiple_of(16) || self.delays.len() < FEW {
            let mut sorted = self.delays.clone();
            sorted.sort_unstable();
            let at = |share: usize| sorted[(sorted.len() - 1) * share / 10];
            self.around = [at(1) / 2, 2 * at(9) + WITHIN];
        }
    }
}

fn bucket(recent: &mut [[Seen; DEEP]], print: u64) -> &mut [Seen; DEEP] {
    &mut recent[(print >> 32) as usize % BUCKETS]
}
