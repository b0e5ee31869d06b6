//! Hosts: the side of the tap that each is on, and measurements of its path.

use std::net::IpAddr;

use swell_base::Stream;

use swell_capture::Packet;

use crate::addresses::private;
use crate::index::Index;
use crate::sides::{Basis, Evidence, Network, neighbourhood};

mod measured;
mod openers;
mod witness;

use openers::{Opening, Opens};

pub(crate) use measured::{Measured, PACE_BIN, Peak, Reservoir, Sample};
#[cfg(doc)]
pub(crate) use witness::NOBODY;

#[derive(Clone, Debug)]
struct Host {
    /// Union-find parent, and whether this host is on the opposite side from it.
    parent: u32,
    opposite: bool,
    /// For roots: hosts in the component, whether the root is inside, and whether that is decided.
    size: u32,
    inside: bool,
    decided: bool,
    /// Whether the host is inside, if known independently of its component.
    fixed: Option<bool>,
    opening: Opening,
    /// Whether it counts as a host that opens connections, once sides are decided.
    opens: bool,
    /// Whether TCP or UDP packets from it or to it were seen.
    flows: bool,
    /// Whether it was seen with another host, and not only as the sender to group addresses.
    paired: bool,
    /// Whether nothing told its side when it first sent.
    guessed: bool,
    private: bool,
    /// Packets from the host and to it that have passed.
    passed: [u32; 2],
    measured: Option<Box<Measured>>,
}

/// All hosts seen.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// Index by address. IPv4 is separate because most hosts use it and its keys are shorter.
    v4: Index<u32>,
    v6: Index<u128>,
    hosts: Vec<Host>,
    /// Stand-ins for a host in one session each, by session and host.
    stand_ins: Index<(u64, u32)>,
    rng: Stream,
    /// Networks that are inside; all other hosts are outside.
    inside: Vec<Network>,
    pub(crate) evidence: Evidence,
    /// By host, until sides are decided.
    neighbourhoods: Vec<u64>,
    /// Pairs of hosts that exchanged packets other than TCP and UDP, until sides are decided.
    beside: Vec<(u32, u32)>,
    decided: bool,
    /// Whether private hosts are inside, if they are all on one side.
    private_inside: Option<bool>,
    /// Number of unconnected host groups whose sides were decided by a vote each, and the number of hosts
    /// in them.
    voted: (u64, u64),
    /// Number of hosts whose sides are told apart, if nothing says which side is inside.
    unoriented: u64,
    /// The same for hosts that were not among those voted for, and the bytes that they sent.
    guesses: (u64, u64),
    guessed: u64,
    /// Flows between two hosts that other flows place on the same side.
    pub(crate) conflicts: u64,
    /// Hosts whose side was corrected after some of their traffic had been counted.
    pub(crate) turned: u64,
}

impl Hosts {
    pub(crate) fn new(inside: Vec<Network>) -> Hosts {
        let mut evidence = Evidence::default();
        if !inside.is_empty() {
            evidence.basis = Basis::Given;
        }
        Hosts {
            inside,
            evidence,
            neighbourhoods: Vec::new(),
            beside: Vec::new(),
            decided: false,
            private_inside: None,
            voted: (0, 0),
            unoriented: 0,
            guesses: (0, 0),
            guessed: 0,
            v4: Index::new(),
            v6: Index::new(),
            hosts: Vec::new(),
            stand_ins: Index::new(),
            rng: Stream::new(0, "learn-reservoir"),
            conflicts: 0,
            turned: 0,
        }
    }

    /// The index of the host with this address; a new one if it was not seen before.
    pub(crate) fn id(&mut self, address: IpAddr) -> u32 {
        let next = self.hosts.len() as u32;
        let id = match address {
            IpAddr::V4(a) => self.v4.get_or_insert(a.to_bits(), next),
            IpAddr::V6(a) => self.v6.get_or_insert(a.to_bits(), next),
        };
        if id == next {
            let given = !self.inside.is_empty();
            let fixed = given.then(|| self.inside.iter().any(|n| n.contains(address)));
            if !self.decided {
                self.neighbourhoods.push(neighbourhood(address));
            }
            self.hosts.push(Host {
                fixed,
                parent: id,
                opposite: false,
                size: 1,
                inside: false,
                decided: false,
                opening: Opening::No,
                opens: false,
                flows: false,
                paired: false,
                guessed: false,
                private: private(address),
                passed: [0; 2],
                measured: None,
            });
        }
        id
    }

    /// A stand-in for a host in the session with this number. It has its own measurements.
    pub(crate) fn apart(&mut self, session: u64, host: u32) -> u32 {
        let next = self.hosts.len() as u32;
        let id = self.stand_ins.get_or_insert((session, host), next);
        if id == next {
            let inside = self.inside(host, true);
            let h = &self.hosts[host as usize];
            let (opening, opens, private) = (h.opening, h.opens, h.private);
            self.hosts.push(Host {
                parent: id,
                opposite: false,
                size: 1,
                inside,
                decided: true,
                fixed: Some(inside),
                opening,
                opens,
                flows: true,
                paired: true,
                guessed: false,
                private,
                passed: [0; 2],
                measured: None,
            });
        }
        id
    }

    /// Records what a TCP or UDP packet from `a` to `b` says about sides: they are on opposite ones.
    pub(crate) fn flow(&mut self, p: &Packet, a: u32, b: u32) {
        self.see(p, a, b);
        self.across(a, b);
        for id in [a, b] {
            self.hosts[id as usize].flows = true;
        }
    }

    /// Records what a packet of another protocol says about sides: ICMP, ESP, a tunnel, a fragment. A
    /// router sends ICMP messages to hosts on either side, so hosts with flows tell more than their peers.
    pub(crate) fn other(&mut self, p: &Packet, a: u32, b: u32) {
        self.see(p, a, b);
        if self.decided {
            if !(self.placed(a) || self.placed(b)) {
                self.join(a, b, true);
            }
        } else {
            let pair = (a.min(b), a.max(b));
            if self.beside.last() != Some(&pair) {
                self.beside.push(pair);
            }
        }
    }

    /// Whether the side of a host is known.
    fn placed(&mut self, id: u32) -> bool {
        let h = &self.hosts[id as usize];
        let (known, root) = (h.flows || h.fixed.is_some(), self.find(id).0);
        known || self.hosts[root as usize].decided
    }

    /// Joins pairs of hosts that have exchanged no TCP or UDP packets with anyone.
    fn join_beside(&mut self) {
        let mut pairs = std::mem::take(&mut self.beside);
        pairs.sort_unstable();
        pairs.dedup();
        for (a, b) in pairs {
            let known = [a, b].map(|id| self.hosts[id as usize].flows);
            if known == [false; 2] {
                self.join(a, b, true);
            }
        }
    }

    /// Whether a host that sends to a multicast or broadcast address is inside. Unless it is known, it is
    /// taken to be.
    pub(crate) fn sender(&mut self, id: u32) -> bool {
        if !self.placed(id) && !self.hosts[id as usize].private {
            self.guess(id, 1);
        }
        self.inside(id, true)
    }

    fn guess(&mut self, id: u32, hosts: u64) {
        self.hosts[id as usize].guessed = true;
        self.guesses = (self.guesses.0 + 1, self.guesses.1 + hosts);
    }

    /// Counts bytes that this host sent, if its side is a guess.
    pub(crate) fn sent(&mut self, id: u32, bytes: u32) {
        if self.hosts[id as usize].guessed {
            self.guessed += u64::from(bytes);
        }
    }

    /// Number of unconnected host groups whose sides were decided by a vote each, and of hosts in them.
    /// Hosts that only send to groups count if they send more than one in a hundred of all bytes.
    pub(crate) fn voted(&self, bytes: u64) -> (u64, u64) {
        let many = self.guessed > bytes / 100;
        let (groups, hosts) = if many { self.guesses } else { (0, 0) };
        let unoriented = u64::from(self.unoriented > 0);
        (
            self.voted.0 + groups + unoriented,
            self.voted.1 + hosts + self.unoriented,
        )
    }

    /// Whether a packet from one host to another goes from inside to outside. `None` if they are on the
    /// same side. Of two hosts, one with flows tells the side of the other.
    pub(crate) fn outward(&mut self, from: u32, to: u32) -> Option<bool> {
        let mut tells = [from, to].map(|id| self.hosts[id as usize].flows);
        if tells == [false; 2] {
            // Of a pair without flows, the one that is placed does.
            tells = [from, to].map(|id| self.placed(id));
        }
        if tells[0] != tells[1] {
            return Some(match tells[0] {
                true => self.inside(from, true),
                false => !self.inside(to, false),
            });
        }
        // A pair of which nothing is known: a private host is inside.
        let [near, far] = [from, to].map(|id| self.hosts[id as usize].private);
        if far && !near {
            self.inside(to, true);
        } else if !self.placed(from) && !near {
            self.guess(from, 2);
            self.hosts[to as usize].guessed = true;
        }
        let inside = self.inside(from, true);
        (inside != self.inside(to, false)).then_some(inside)
    }

    /// Counts a packet from `from` to `to`. Returns how many have passed from the one and to the other so
    /// far.
    pub(crate) fn passed(&mut self, from: u32, to: u32) -> [u32; 2] {
        [(from, 0), (to, 1)].map(|(host, way)| {
            let n = &mut self.hosts[host as usize].passed[way];
            *n = n.wrapping_add(1);
            *n
        })
    }

    /// Root of the host's component, and whether the host is on the opposite side from it.
    fn find(&mut self, id: u32) -> (u32, bool) {
        let mut root = id;
        let mut opposite = false;
        while self.hosts[root as usize].parent != root {
            let h = &self.hosts[root as usize];
            opposite ^= h.opposite;
            root = h.parent;
        }
        // Path compression: all hosts on the way point to the root.
        let (mut at, mut parity) = (id, opposite);
        while at != root {
            let h = &mut self.hosts[at as usize];
            let (parent, step) = (h.parent, h.opposite);
            (h.parent, h.opposite) = (root, parity);
            (at, parity) = (parent, parity ^ step);
        }
        (root, opposite)
    }

    /// Records what a packet from `a` to `b` says about sides, before or after they are decided. Neither
    /// address is multicast or broadcast.
    pub(crate) fn see(&mut self, p: &Packet, a: u32, b: u32) {
        for id in [a, b] {
            self.hosts[id as usize].paired = true;
        }
        if !self.decided {
            return self.evidence.see(p, a, b);
        }
        for (id, side) in [a, b].into_iter().zip(self.evidence.tell(p)) {
            let fixed = &mut self.hosts[id as usize].fixed;
            *fixed = fixed.or(side);
        }
        if let Some(side) = self.evidence.tell_near(p) {
            let (root, opposite) = self.find(a);
            let h = &mut self.hosts[root as usize];
            if !h.decided {
                (h.inside, h.decided) = (side ^ opposite, true);
            }
        }
        // Of a private and a public host, the private one is on the side of the other private hosts.
        let private = [a, b].map(|id| self.hosts[id as usize].private);
        if let Some(inside) = self.private_inside
            && private[0] != private[1]
        {
            for (id, own) in [a, b].into_iter().zip(private) {
                self.hosts[id as usize].fixed.get_or_insert(own == inside);
            }
        }
    }

    /// Records what a packet from `a` to a multicast or broadcast address says about the side of `a`, before or
    /// after sides are decided.
    pub(crate) fn see_sender(&mut self, p: &Packet, a: u32) {
        if !self.decided {
            return self.evidence.see_sender(p, a);
        }
        let side = self.evidence.tell(p)[0];
        let fixed = &mut self.hosts[a as usize].fixed;
        *fixed = fixed.or(side);
    }

    /// Notes that a packet of a flow went from `a` to `b`, so they are on opposite sides.
    pub(crate) fn across(&mut self, a: u32, b: u32) {
        let known = [a, b].map(|id| self.hosts[id as usize].fixed);
        if let [Some(a_inside), Some(b_inside)] = known {
            self.conflicts += u64::from(a_inside == b_inside);
        } else {
            self.join(a, b, true);
        }
    }

    /// Merges the components of two hosts that are on opposite sides, or on the same side.
    fn join(&mut self, a: u32, b: u32, across: bool) {
        let ((ra, pa), (rb, pb)) = (self.find(a), self.find(b));
        if ra == rb {
            self.conflicts += u64::from((pa == pb) == across);
            return;
        }
        let (root, child) = if self.hosts[ra as usize].size >= self.hosts[rb as usize].size {
            (ra, rb)
        } else {
            (rb, ra)
        };
        let opposite = (pa == pb) == across;
        let [r, c] = [root, child].map(|i| {
            let h = &self.hosts[i as usize];
            (h.decided, h.inside, h.size)
        });
        if c.0 {
            if !r.0 {
                self.hosts[root as usize].inside = c.1 ^ opposite;
                self.hosts[root as usize].decided = true;
            } else if c.1 != r.1 ^ opposite {
                self.turned += u64::from(c.2);
            }
        }
        let h = &mut self.hosts[child as usize];
        (h.parent, h.opposite) = (root, opposite);
        self.hosts[root as usize].size += c.2;
    }

    /// Decides which side each host seen so far is on.
    ///
    /// Evidence that divides all hosts comes first ([`Evidence`]). Of its two sides, the one with more
    /// hosts that open TCP connections is inside, unless it tells that, too. Other components follow their hosts that have such
    /// evidence. Failing that, the side with more openers is inside, then the side with more private
    /// addresses, then that of the first host seen. Nothing happens if they are decided.
    pub(crate) fn decide(&mut self) {
        if self.decided {
            return;
        }
        self.join_beside();
        let far = self.openers();
        (self.hosts.iter_mut()).for_each(|h| h.opens = h.opening >= far);
        if self.evidence.basis != Basis::Given
            && let Some(sides) = self.evidence.divide()
        {
            let sign = |side: bool| if side { 1i64 } else { -1 };
            let vote = |of: &dyn Fn(&Host) -> bool| -> i64 {
                let told = self.hosts.iter().zip(&sides);
                told.filter_map(|(h, s)| s.filter(|_| of(h)).map(sign))
                    .sum()
            };
            let named = self.evidence.basis == Basis::Named;
            let opens = Opens {
                sum: vote(&|h| h.opens),
                all: self.hosts.iter().filter(|h| h.opens).count() as i64,
            };
            let private = vote(&|h| h.private);
            let inside = match (opens.sum, private) {
                _ if named => true,
                (0, private) => private >= 0,
                (openers, _) => openers > 0,
            };
            // A router to the outside has many hosts behind it.
            let unknown = match opens.all {
                0 => private == 0,
                _ => opens.contested(private),
            };
            if unknown && !named && !self.evidence.one_router {
                self.unoriented = sides.iter().flatten().count() as u64;
            }
            for (h, side) in self.hosts.iter_mut().zip(sides) {
                h.fixed = side.map(|s| s == inside);
            }
            self.evidence.orient(inside);
        }
        if self.evidence.basis != Basis::Given {
            self.tie();
        }
        self.vote();
        self.evidence.forget();
        self.decided = true;
        self.neighbourhoods = Vec::new();
    }

    /// Merges components whose hosts are neighbours, or private. Such hosts are on one side, unless some
    /// of them exchange packets across the tap.
    fn tie(&mut self) {
        let all = self.hosts.len() as u32;
        let mut kin: Vec<(u64, u32)> = Vec::new();
        for id in (0..all).filter(|&id| self.hosts[id as usize].paired) {
            kin.push((self.neighbourhoods[id as usize], id));
            if self.hosts[id as usize].private {
                kin.push((u64::MAX, id));
            }
        }
        kin.sort_unstable();
        let mut together: Vec<(u32, u32)> = Vec::new();
        for group in kin.chunk_by(|a, b| a.0 == b.0) {
            let mut by_root: Vec<(u32, bool)> =
                group.iter().map(|&(_, id)| self.find(id)).collect();
            by_root.sort_unstable();
            by_root.dedup();
            // If a component has such hosts on both sides of the tap, neighbourhood means nothing in this
            // trace.
            if by_root.windows(2).all(|w| w[0].0 != w[1].0) {
                together.extend(group.windows(2).map(|w| (w[0].1, w[1].1)));
            }
        }
        for (a, b) in together {
            // Merges by neighbourhood may already contradict those by private addresses.
            if self.find(a).0 != self.find(b).0 {
                self.join(a, b, false);
            }
        }
    }

    fn vote(&mut self) {
        #[derive(Clone, Default)]
        struct Votes {
            fixed: i64,
            opens: Opens,
            private: i64,
            /// By hop count: votes for the near side.
            near: i64,
            first: Option<bool>,
            hosts: u64,
        }
        let sign = |yes: bool| if yes { 1i64 } else { -1 };
        let nearer = self.evidence.nearer();
        let (near, sides) = nearer.unwrap_or_default();
        let of = |h: &Host, side: &Option<bool>, what: bool| {
            side.filter(|_| what && h.fixed.is_none()).map_or(0, sign)
        };
        let known = || self.hosts.iter().zip(&sides);
        let near_inside = match known().map(|(h, s)| of(h, s, h.opens)).sum::<i64>() {
            0 => known().map(|(h, s)| of(h, s, h.private)).sum::<i64>() >= 0,
            openers => openers > 0,
        };
        // Per root: hosts on the root's side minus those on the opposite side.
        let mut votes = vec![Votes::default(); self.hosts.len()];
        for id in 0..self.hosts.len() as u32 {
            let (root, opposite) = self.find(id);
            let h = &self.hosts[id as usize];
            let vote = &mut votes[root as usize];
            let own = sign(!opposite);
            vote.fixed += h.fixed.map_or(0, |inside| sign(inside) * own);
            vote.opens.add(h.opens, own);
            vote.private += i64::from(h.private) * own;
            let side = sides.get(id as usize).copied().flatten();
            vote.near += side.map_or(0, |is| sign(is) * own);
            vote.first.get_or_insert(opposite);
            vote.hosts += u64::from(h.fixed.is_none());
        }
        // A host without flows and peers takes the side opposite to those it sends to.
        let alone = |h: &Host| h.size == 1 && !h.flows && h.fixed.is_none();
        let open = |h: &Host, v: &Votes| !h.decided && !alone(h) && v.fixed == 0 && v.hosts > 0;
        let pieces = self.hosts.iter().zip(&votes).filter(|(h, v)| open(h, v));
        let apart = pieces.count() > 1;
        if apart && !sides.is_empty() {
            self.evidence.set_near(near, near_inside);
        }
        let mut voted = (0, 0);
        let mut guessed = false;
        for (h, v) in self.hosts.iter_mut().zip(votes) {
            if let Some(first) = v.first.filter(|_| !h.decided && !alone(h)) {
                let nearness = if apart { v.near } else { 0 };
                h.inside = match (v.fixed, nearness, v.opens.sum, v.private) {
                    (0, 0, 0, 0) => !first,
                    (0, 0, 0, p) => p > 0,
                    (0, 0, o, _) => o > 0,
                    (0, n, ..) => (n > 0) == near_inside,
                    (f, ..) => f > 0,
                };
                h.decided = true;
                if v.fixed == 0 && nearness == 0 && v.hosts > 0 {
                    guessed |= match v.opens.sum {
                        0 => v.private == 0,
                        _ => v.opens.contested(v.private),
                    };
                    voted = (voted.0 + 1, voted.1 + v.hosts);
                }
            }
        }
        // A single group is no guess, unless no host opens a connection or is private, or hosts on both sides do:
        // inside is the side that opens most of its connections.
        if voted.0 > 1 || guessed || self.evidence.basis != Basis::Talk {
            self.voted = voted;
        }
        let (mut private, mut public) = (0u64, 0u64);
        for id in 0..self.hosts.len() as u32 {
            let h = &self.hosts[id as usize];
            if h.private && (h.paired || h.fixed.is_some()) {
                *(if self.inside(id, true) {
                    &mut private
                } else {
                    &mut public
                }) += 1;
            }
        }
        self.private_inside = match (private, public) {
            (0, 0) => None,
            (0, _) => Some(false),
            (_, 0) => Some(true),
            _ => None,
        };
    }

    /// Whether the host is inside (left). An undecided component takes the side of private hosts, else of
    /// `opener`.
    pub(crate) fn inside(&mut self, id: u32, opener: bool) -> bool {
        if let Some(inside) = self.hosts[id as usize].fixed {
            return inside;
        }
        let (root, opposite) = self.find(id);
        if !self.hosts[root as usize].decided {
            let inside = self.hosts[id as usize].private || opener;
            self.hosts[root as usize].inside = inside ^ opposite;
            self.hosts[root as usize].decided = true;
        }
        self.hosts[root as usize].inside ^ opposite
    }

    /// Records a sample in microseconds or kbit/s, taken at time `at` in nanoseconds.
    pub(crate) fn sample(&mut self, id: u32, kind: Sample, value: u64, at: u64) {
        let value = [value, at / 1_000_000].map(|v| u32::try_from(v).unwrap_or(u32::MAX));
        let value = (value[0], value[1]);
        let m = self.hosts[id as usize].measured.get_or_insert_default();
        let reservoir = m.reservoir(kind);
        if self.stand_ins.is_empty() {
            reservoir.push(value, kind.most(), &mut self.rng);
        } else {
            // The choice of the kept samples must not depend on which other hosts exist.
            let mut own = Stream::indexed(0, "learn-reservoir", u64::from(reservoir.seen));
            reservoir.push(value, kind.most(), &mut own);
        }
    }
}

#[cfg(test)]
mod tests;
