//! Hosts that are told of acknowledgements late, several at a time.
//!
//! With thousands of connections nearly every packet finds its connection in main memory. What an acknowledgement
//! makes a host send comes onto a trunk no earlier than the host's own link needs to carry it there. Where such
//! packets are all that can come of it, the world may leave them lying until the first of them could make a
//! difference elsewhere, and tell the host of all that came by then at once, each at its own instant: the
//! connection is fetched from memory once for all of them. This is the lookahead of conservative parallel simulation
//! (R. M. Fujimoto, "Parallel discrete event simulation", Communications of the ACM 33(10), 1990), used to have
//! things at hand.
//!
//! For that while the present lies in the past: whatever is queued before the [front](crate::links::Links::front)
//! is about that one host, and happens before anything else does. Hosts are late for bare acknowledgements alone,
//! and only while data waits to be sent that they cannot be of: then the application has nothing to be told. The two
//! links are the connection's own, so that nobody else's packets are among its own. Before anything else
//! happens to that end it is brought up to date ([`World::catch_up`]), and so is every host at the end of
//! [`World::advance`].
//!
//! What happens is the same, down to the order of what happens at one nanosecond: [events](crate::wake::Wake) that are
//! about one end of a connection are ranked by what they are. One thing could be told apart: when an acknowledgement
//! of one connection makes a workload do something to another at the very nanosecond at which the other is
//! acknowledged something too, the other is told of that first.

use swell_base::Dur;

use crate::flow::{Flow, LinkIndex, Transport};
use crate::links::Links;
use crate::world::World;

/// Whether and when the two ends of a flow are told late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lateness(u8);

impl Lateness {
    /// Of a flow whose ends may be late or not.
    pub fn possible(ends: [bool; 2]) -> Lateness {
        Lateness(u8::from(ends[0]) | u8::from(ends[1]) << 1)
    }

    #[inline]
    fn may_be(self, end: u8) -> bool {
        self.0 >> (end & 1) & 1 != 0
    }

    /// An end is late at present.
    #[inline]
    pub fn is(self, end: u8) -> bool {
        self.0 >> (end & 1) & 4 != 0
    }
}

/// Leaves that lead to hosts that are late at present, a bit for each: hosts become late and punctual again all the
/// time.
#[derive(Debug, Default)]
pub(crate) struct Lates(Vec<u64>);

impl Lates {
    /// Whether a leaf is one of them from now on; whether it was.
    #[inline]
    pub fn set(&mut self, leaf: LinkIndex, late: bool) -> bool {
        let (word, bit) = (leaf as usize / 64, leaf % 64);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let before = self.0[word];
        self.0[word] = before & !(1 << bit) | u64::from(late) << bit;
        before >> bit & 1 != 0
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = LinkIndex> {
        (0..).step_by(64).zip(&self.0).flat_map(|(first, &word)| {
            let rest = std::iter::successors(Some(word), |&left| Some(left & left.wrapping_sub(1)));
            rest.take_while(|&left| left != 0)
                .map(move |left| first + left.trailing_zeros())
        })
    }
}

impl Flow {
    /// To be called when an end has sent what it had to send: it is late from now on while data waits there.
    #[inline(always)]
    pub fn settle_lateness(&mut self, end: u8, backlogged: bool, links: &mut Links) {
        if self.late.may_be(end) && backlogged != self.late.is(end) {
            self.turn_lateness(end, links);
        }
    }

    #[inline(never)]
    fn turn_lateness(&mut self, end: u8, links: &mut Links) {
        let e = usize::from(end & 1);
        self.late.0 ^= 4 << e;
        let (to, onto) = (self.last[e ^ 1], self.first[e]);
        let lag = if self.late.is(end) {
            links.lag_of(to, onto)
        } else {
            0
        };
        links.set_lag(to, lag);
    }

    /// Neither end is late any more, nor will be.
    pub fn end_lateness(&mut self, links: &mut Links) {
        for end in 0..2 {
            self.settle_lateness(end, false, links);
        }
        self.late = Lateness::default();
    }
}

impl World {
    /// No host of a connection that is opened from now on will be late. What happens is the same, and takes more time
    /// where there are thousands: for checks.
    pub fn be_punctual(&mut self) {
        self.links.punctual = true;
    }

    /// Tells an end, if it is late, of everything that reached it by now, and lets everything happen that comes
    /// of it. To be called before anything else happens to it.
    #[inline]
    pub(crate) fn catch_up(&mut self, index: u32, end: u8) {
        if let Some(flow) = self.flows[index as usize].as_deref()
            && flow.late.is(end)
        {
            let to = flow.last[usize::from(end & 1) ^ 1];
            if self.links.hurry(to, self.links.now) {
                self.make_up(to);
            }
        }
    }

    /// The same of every end there is. Nothing else is due.
    pub(crate) fn catch_up_all(&mut self) {
        let now = self.links.now;
        if self.links.hurry_all(now) {
            self.run(now);
            self.links.now = now;
        }
    }

    /// Lets everything happen that is queued before the present, and tells the host behind `to` of what reaches it in
    /// the present. What a workload or an endpoint has yet to react to waits until then: it may be in the midst of
    /// several actions.
    #[inline(never)]
    fn make_up(&mut self, to: LinkIndex) {
        let now = self.links.now;
        let at_work =
            !(self.touched.is_empty() && self.inbox.is_empty() && self.actions.is_empty());
        let present = at_work.then(|| {
            let actions = std::mem::take(&mut self.actions);
            (
                std::mem::take(&mut self.touched),
                std::mem::take(&mut self.inbox),
                actions,
            )
        });
        self.run(now - Dur::from_nanos(1));
        self.links.now = now;
        self.late_due(to);
        self.links.now = now;
        if let Some(present) = present {
            (self.touched, self.inbox, self.actions) = present;
        }
    }
}

/// Whether the two ends of a TCP connection may be late: each has a link of its own from the trunk and onto it.
pub(crate) fn possible(flow: &Flow, own: [bool; 2], links: &Links) -> Lateness {
    let Transport::Tcp(_) = flow.transport else {
        return Lateness::default();
    };
    let may = |e: usize| {
        own[e]
            && !flow.probed
            && !links.punctual
            && links.lag_of(flow.last[e ^ 1], flow.first[e]) > 0
    };
    Lateness::possible([may(0), may(1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use swell_base::Stream;

    /// The oracle: a set.
    #[test]
    fn leaves_are_late_or_not() {
        let mut rng = Stream::new(5, "lates");
        let (mut lates, mut set) = (Lates::default(), BTreeSet::new());
        for _ in 0..2_000 {
            let leaf = rng.below(500) as LinkIndex;
            let was = if rng.chance(0.5) {
                assert_eq!(lates.set(leaf, true), !set.insert(leaf));
                true
            } else {
                assert_eq!(lates.set(leaf, false), set.remove(&leaf));
                false
            };
            assert_eq!(lates.set(leaf, was), was, "it is what it was made");
            assert!(lates.iter().eq(set.iter().copied()));
        }
        assert!(set.len() > 100);
    }
}
