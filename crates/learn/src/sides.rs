//! Evidence in packets about the side of the tap that each host is on.
//!
//! The sources of evidence, in order of priority:
//!
//! 1. Networks named by the user.
//! 2. Where packets entered the capture: interface and direction of pcapng, or the packet type of cooked
//!    captures. Interfaces named `LINK/up` and `LINK/down` also tell which side is inside.
//! 3. Ethernet addresses: all hosts behind a router have the router's address.
//!
//! Each of these divides all hosts at once. Without them, hosts of one network are on one side, as are
//! private hosts, and hosts that exchange packets are on opposite sides. If that leaves several
//! unconnected groups, the number of routers that packets have passed (from their time to live) relates
//! the groups. Hop counts cannot come first, because a gateway that answers is as near as its clients.
//! Otherwise each group votes, and a warning says so.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use swell_capture::{Heading, Packet};

use crate::addresses::bits;
use crate::index::Index;

/// A network in CIDR notation: `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// IPv4 addresses are IPv4-mapped (RFC 4291 section 2.5.5.2).
    address: u128,
    /// Prefix length, of 128 bits.
    length: u32,
    given: (IpAddr, u32),
}

impl Network {
    /// Whether the network contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differ = self.address ^ bits(address);
        self.given.0.is_ipv4() == address.is_ipv4()
            && differ.checked_shr(128 - self.length).unwrap_or(0) == 0
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("`{text}` is not a network such as 192.0.2.0/24 or 2001:db8::/32");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length: u32 = match length {
            Some(length) => length.parse().map_err(|_| wrong())?,
            None => most,
        };
        if length > most {
            return Err(wrong());
        }
        Ok(Network {
            address: bits(address),
            length: length + 128 - most,
            given: (address, length),
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.given.0, self.given.1)
    }
}

/// The evidence that decided the sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Networks named by the user.
    Given,
    /// Interfaces that are named after the directions across the link.
    Named,
    /// Interfaces and directions of the capture.
    Doors,
    /// Ethernet addresses.
    Stations,
    /// Which hosts exchange packets, and which ones open connections.
    #[default]
    Talk,
}

/// Maximum number of doors (pairs of capture interface and direction). More are not evidence.
const MOST_DOORS: usize = 8;
/// Maximum number of stations (Ethernet addresses). More are not distinguished.
const MOST_STATIONS: usize = 4096;
/// Maximum number of pairs of stations whose packets are counted by pair.
const MOST_PAIRS: usize = 4 * MOST_STATIONS;
/// Maximum share of contradicting evidence for a division to be accepted.
const ODD: f64 = 0.05;

/// Hop counts are capped here.
const MOST_HOPS: usize = 32;
/// Maximum hop count of the side near the tap. Beyond that, both sides are far away.
const MOST_NEAR: usize = 8;

/// Number of routers that a packet has passed, from its time to live. Initial values are 64, 128 or 255.
fn hops(p: &Packet) -> usize {
    let begun = [64, 128].into_iter().find(|b| p.ttl <= *b).unwrap_or(255);
    usize::from(begun - p.ttl).min(MOST_HOPS)
}

/// The evidence from one host's packets.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// Bit masks of the doors at which packets from the host, and packets to it, were captured.
    sends: u8,
    gets: u8,
    /// Its station number plus one, and the same from packets to group addresses. A station sends those from
    /// addresses of its own, such as link-local ones, so they do not make it a router.
    station: u32,
    to_groups: u32,
    /// Hop count of its last packet plus one.
    hops: u8,
}

/// The evidence from all packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    doors: Vec<(u32, Heading)>,
    stations: Stations,
    heard: Vec<Heard>,
    /// Packet counts by the hops of the sender and of the receiver, if the receiver has sent before.
    distances: Vec<[u64; MOST_HOPS + 1]>,
    /// After the decision: whether senders at each door or station are inside.
    door_inside: Vec<Option<bool>>,
    station_inside: Vec<Option<bool>>,
    /// The maximum hop count of the near side and whether that side is inside, if hop counts decided.
    near_inside: Option<(usize, bool)>,
    pub(crate) basis: Basis,
    /// After the decision: whether one station has more hosts behind it than any other, which makes it the router to
    /// the outside.
    pub(crate) one_router: bool,
}

#[derive(Clone, Debug)]
struct Stations {
    index: Index<u64>,
    count: u32,
    pairs_index: Index<u64>,
    /// Two stations and the number of packets between them.
    pairs: Vec<(u32, u32, u64)>,
    /// Packets of pairs beyond [`MOST_PAIRS`].
    unpaired: u64,
}

impl Default for Stations {
    fn default() -> Stations {
        Stations {
            index: Index::new(),
            count: 0,
            pairs_index: Index::new(),
            pairs: Vec::new(),
            unpaired: 0,
        }
    }
}

impl Stations {
    fn id(&mut self, address: u64) -> Option<u32> {
        let group = address >> 40 & 1 == 1;
        if address == 0 || group {
            return None;
        }
        if let known @ Some(_) = self.index.get(&address) {
            return known;
        }
        if self.count as usize >= MOST_STATIONS {
            return None;
        }
        self.index.insert(address, self.count);
        self.count += 1;
        Some(self.count - 1)
    }

    fn pair(&mut self, a: u32, b: u32) {
        let (a, b) = (a.min(b), a.max(b));
        let key = u64::from(a) << 32 | u64::from(b);
        let i = match self.pairs_index.get(&key) {
            Some(i) => i,
            None if self.pairs.len() >= MOST_PAIRS => {
                self.unpaired += 1;
                return;
            }
            None => {
                let next = self.pairs.len() as u32;
                self.pairs_index.insert(key, next);
                self.pairs.push((a, b, 0));
                next
            }
        };
        self.pairs[i as usize].2 += 1;
    }
}

impl Evidence {
    fn door(&mut self, p: &Packet) -> Option<usize> {
        let door = (p.interface, p.heading);
        let known = self.doors.iter().position(|&d| d == door);
        known.or_else(|| {
            if self.doors.len() <= MOST_DOORS {
                self.doors.push(door);
            }
            Some(self.doors.len() - 1)
        })
    }

    fn make_room(&mut self, host: u32) {
        let hosts = host as usize + 1;
        if self.heard.len() < hosts {
            self.heard.resize(hosts, Heard::default());
        }
    }

    /// Records a packet from host `from` to a multicast or broadcast address. It says where its sender is. Its time to
    /// live says nothing: applications set it (RFC 1112 section 6.1).
    pub(crate) fn see_sender(&mut self, p: &Packet, from: u32) {
        self.make_room(from);
        if let Some(door) = self.door(p)
            && door < MOST_DOORS
        {
            self.heard[from as usize].sends |= 1 << door;
        }
        if let Some(station) = self.stations.id(p.stations[0]) {
            self.heard[from as usize].to_groups = station + 1;
        }
    }

    /// Records a packet from host `from` to host `to`. Neither is a multicast or broadcast address.
    pub(crate) fn see(&mut self, p: &Packet, from: u32, to: u32) {
        self.make_room(from.max(to));
        if let Some(door) = self.door(p)
            && door < MOST_DOORS
        {
            self.heard[from as usize].sends |= 1 << door;
            self.heard[to as usize].gets |= 1 << door;
        }
        if p.ttl > 0 {
            let own = hops(p);
            self.heard[from as usize].hops = own as u8 + 1;
            if let Some(other) = self.heard[to as usize].hops.checked_sub(1) {
                self.distances.resize(MOST_HOPS + 1, [0; MOST_HOPS + 1]);
                self.distances[own][usize::from(other)] += 1;
            }
        }
        let [source, destination] = p.stations.map(|s| self.stations.id(s));
        if let (Some(a), Some(b)) = (source, destination)
            && a != b
        {
            self.stations.pair(a, b);
            // A station seen as source is better evidence than one seen as destination: switch and ARP
            // tables age.
            self.heard[from as usize].station = a + 1;
            let h = &mut self.heard[to as usize].station;
            if *h == 0 {
                *h = b + 1;
            }
        }
    }

    /// Divides the hosts into two sides, by host. `None` if the evidence is not clear.
    pub(crate) fn divide(&mut self) -> Option<Vec<Option<bool>>> {
        let named = self.named_doors().map(|doors| (doors, Basis::Named));
        let found = named.or_else(|| Some((self.divide_doors()?, Basis::Doors)));
        if let Some((doors, basis)) = found {
            self.basis = basis;
            let side = |h: &Heard| {
                let of = |mask: u8| {
                    let mut known = doors.iter().take(MOST_DOORS).enumerate();
                    known.find_map(|(i, side)| side.filter(|_| mask >> i & 1 == 1))
                };
                of(h.sends).or_else(|| of(h.gets).map(|side| !side))
            };
            let sides = self.heard.iter().map(side).collect();
            self.door_inside = doors;
            return Some(sides);
        }
        let (stations, one_router) = self.divide_stations()?;
        self.one_router = one_router;
        self.basis = Basis::Stations;
        let side = |h: &Heard| {
            let station = match h.station {
                0 => h.to_groups.checked_sub(1)?,
                n => n - 1,
            };
            stations.get(station as usize).copied().flatten()
        };
        let sides = self.heard.iter().map(side).collect();
        self.station_inside = stations;
        Some(sides)
    }

    /// Whether each host is on the side nearer to the tap, by host. `None` if the evidence is not clear.
    pub(crate) fn nearer(&self) -> Option<(usize, Vec<Option<bool>>)> {
        let near = self.divide_hops()?;
        let side = |h: &Heard| is_near(usize::from(h.hops).checked_sub(1)?, near);
        Some((near, self.heard.iter().map(side).collect()))
    }

    /// Stores the maximum hop count of the near side, and whether that side is inside.
    pub(crate) fn set_near(&mut self, near: usize, inside: bool) {
        self.near_inside = Some((near, inside));
    }

    /// Whether the sender of a packet is inside, by its hop count.
    pub(crate) fn tell_near(&self, p: &Packet) -> Option<bool> {
        let (near, inside) = self.near_inside.filter(|_| p.ttl > 0)?;
        is_near(hops(p), near).map(|is| is == inside)
    }

    /// Finds the maximum hop count of the near side. A tap near one side sees that side's packets after
    /// few hops, and those of the other side after many. The result is accepted only if almost all packets
    /// go from one to the other.
    fn divide_hops(&self) -> Option<usize> {
        let (all, (cross, near)) = (0..=MOST_NEAR)
            .map(|near| {
                let (mut all, mut cross, mut odd) = (0, 0, 0);
                for (own, row) in self.distances.iter().enumerate() {
                    for (other, packets) in row.iter().enumerate() {
                        all += packets;
                        match (is_near(own, near), is_near(other, near)) {
                            (Some(a), Some(b)) if a == b => odd += packets,
                            (Some(_), Some(_)) => cross += packets,
                            _ => {}
                        }
                    }
                }
                let clear = odd as f64 <= ODD * all as f64;
                (all, (if clear { cross } else { 0 }, near))
            })
            .max_by_key(|&(_, (cross, near))| (cross, std::cmp::Reverse(near)))?;
        (2 * cross > all).then_some(near)
    }

    /// Assigns each door to a side by the name of its interface: those who send up are inside.
    fn named_doors(&self) -> Option<Vec<Option<bool>>> {
        // Packets of a door beyond the limit have no door at their hosts.
        let sides: Vec<Option<bool>> = self.doors.iter().map(|d| named(d.1)).collect();
        let mask = |inside: bool| {
            let of = sides.iter().take(MOST_DOORS).enumerate();
            of.filter(|(_, s)| **s == Some(inside))
                .fold(0u8, |mask, (i, _)| mask | 1 << i)
        };
        let [up, down] = [mask(true), mask(false)];
        let inside = |h: &&Heard| h.sends & up != 0 || h.gets & down != 0;
        let outside = |h: &&Heard| h.sends & down != 0 || h.gets & up != 0;
        let all = self.heard.iter().filter(|h| inside(h) || outside(h));
        let (all, odd) = all.fold((0u64, 0u64), |(all, odd), h| {
            (all + 1, odd + u64::from(inside(&h) && outside(&h)))
        });
        (all > 0 && odd as f64 <= ODD * all as f64).then_some(sides)
    }

    /// Assigns each door (an interface and direction of the capture) to a side. This works if hosts send
    /// through some doors and receive through others.
    fn divide_doors(&self) -> Option<Vec<Option<bool>>> {
        if !(2..=MOST_DOORS).contains(&self.doors.len()) {
            return None;
        }
        // Where an interface states directions, packets without one tell nothing.
        let tells = |&(interface, heading): &(u32, Heading)| {
            let stated = |d: &(u32, Heading)| d.0 == interface && d.1 != Heading::Unknown;
            heading != Heading::Unknown || !self.doors.iter().any(stated)
        };
        let telling = (self.doors.iter().enumerate())
            .filter(|(_, door)| tells(door))
            .fold(0u8, |mask, (i, _)| mask | 1 << i);
        let heard = |h: &Heard| Heard {
            sends: h.sends & telling,
            gets: h.gets & telling,
            ..*h
        };
        let two_way = || {
            let all = self.heard.iter().map(heard);
            all.filter(|h| h.sends != 0 && h.gets != 0)
        };
        let (all, odd) = two_way().fold((0u64, 0u64), |(all, odd), h| {
            (all + 1, odd + u64::from(h.sends & h.gets != 0))
        });
        if all == 0 || odd as f64 > ODD * all as f64 {
            return None;
        }
        // Senders at the first door are `true`; receivers at it are on the other side. Each round assigns
        // at least one more door that is connected to an assigned one.
        let first = two_way().next()?.sends.trailing_zeros() as usize;
        let mut sides = vec![None; self.doors.len()];
        sides[first] = Some(true);
        for _ in 0..self.doors.len() {
            for h in two_way().filter(|h| h.sends & h.gets == 0) {
                let doors = |mask: u8| (0..8).filter(move |d| mask >> d & 1 == 1);
                let told = doors(h.sends)
                    .find_map(|d| sides[d])
                    .or_else(|| doors(h.gets).find_map(|d| sides[d]).map(|s: bool| !s));
                let Some(side) = told else { continue };
                for d in doors(h.sends) {
                    sides[d].get_or_insert(side);
                }
                for d in doors(h.gets) {
                    sides[d].get_or_insert(!side);
                }
            }
        }
        let both = sides.contains(&Some(true)) && sides.contains(&Some(false));
        both.then_some(sides)
    }

    /// The station with the most hosts is taken to be a router, and stations that exchange packets with it
    /// are on the other side. Rejected if most packets do not go through it. Also whether no other has as many hosts.
    fn divide_stations(&self) -> Option<(Vec<Option<bool>>, bool)> {
        let stations = &self.stations;
        let mut hosts = vec![0u64; stations.count as usize];
        for station in self.heard.iter().filter_map(|h| h.station.checked_sub(1)) {
            hosts[station as usize] += 1;
        }
        let mut passed = vec![0u64; hosts.len()];
        for &(a, b, packets) in &stations.pairs {
            passed[a as usize] += packets;
            passed[b as usize] += packets;
        }
        let (router, _) = (0u32..)
            .zip(hosts.iter().zip(&passed))
            .max_by_key(|&(i, counts)| (counts, std::cmp::Reverse(i)))?;
        let mut sides = vec![None; hosts.len()];
        sides[router as usize] = Some(false);
        // Packets of pairs that were not counted do not speak for the router.
        let (mut all, mut by) = (stations.unpaired, 0);
        for &(a, b, packets) in &stations.pairs {
            all += packets;
            if a == router || b == router {
                by += packets;
                sides[(if a == router { b } else { a }) as usize] = Some(true);
            }
        }
        let most = hosts[router as usize];
        let one = hosts.iter().filter(|&&n| n == most).count() == 1;
        (2 * by > all).then_some((sides, one))
    }

    /// Turns sides into inside and outside, once it is known which side is inside.
    pub(crate) fn orient(&mut self, inside: bool) {
        let sides = self.door_inside.iter_mut().chain(&mut self.station_inside);
        sides.flatten().for_each(|side| *side = *side == inside);
        self.forget();
    }

    /// Drops the evidence that is no longer needed once sides are decided.
    pub(crate) fn forget(&mut self) {
        self.heard = Vec::new();
        self.distances = Vec::new();
    }

    /// Whether the sender and the receiver of a packet are inside, by its door or its stations.
    pub(crate) fn tell(&self, p: &Packet) -> [Option<bool>; 2] {
        if self.basis == Basis::Named {
            let side = named(p.heading);
            return [side, side.map(|s| !s)];
        }
        if !self.door_inside.is_empty() {
            let door = (p.interface, p.heading);
            let i = self.doors.iter().position(|&d| d == door);
            let side = i.and_then(|i| self.door_inside.get(i).copied().flatten());
            return [side, side.map(|s| !s)];
        }
        if !self.station_inside.is_empty() {
            return p.stations.map(|s| {
                let i = self.stations.index.get(&s)?;
                self.station_inside.get(i as usize).copied().flatten()
            });
        }
        [None; 2]
    }
}

/// The side of those who send in a direction that an interface is named after.
fn named(heading: Heading) -> Option<bool> {
    match heading {
        Heading::Up => Some(true),
        Heading::Down => Some(false),
        _ => None,
    }
}

/// Whether a host at `hops` routers is on the side within `near` hops. `None` for `near + 1`, since routes
/// vary by one router.
fn is_near(hops: usize, near: usize) -> Option<bool> {
    (hops != near + 1).then_some(hops <= near)
}

/// The network that a host is assumed to be in: /24 for IPv4, /64 for IPv6.
pub(crate) fn neighbourhood(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(a) => u64::from(a.to_bits() >> 8),
        IpAddr::V6(a) => (a.to_bits() >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        let net = |text: &str| text.parse::<Network>();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let n = net("10.1.0.0/16").unwrap();
        assert!(n.contains(ip("10.1.255.3")) && !n.contains(ip("10.2.0.0")));
        assert!(net("0.0.0.0/0").unwrap().contains(ip("8.8.8.8")));
        assert!(!net("0.0.0.0/0").unwrap().contains(ip("2001:db8::1")));
        assert!(net("::/0").unwrap().contains(ip("2001:db8::1")));
        assert!(!net("::/0").unwrap().contains(ip("8.8.8.8")));
        assert!(net("192.0.2.7").unwrap().contains(ip("192.0.2.7")));
        assert!(!net("192.0.2.7").unwrap().contains(ip("192.0.2.6")));
        assert_eq!(n.to_string(), "10.1.0.0/16");
        for wrong in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "a/8",
            "10.0.0.0/-1",
        ] {
            assert!(net(wrong).is_err(), "{wrong}");
        }
    }

    /// A pair that is known is counted, however many others there are; packets of pairs beyond the limit are
    /// counted together.
    #[test]
    fn a_known_pair_is_always_counted() {
        let mut stations = Stations::default();
        stations.pair(1, 0);
        for other in 2..MOST_PAIRS as u32 + 7 {
            stations.pair(0, other);
        }
        stations.pair(0, 1);
        assert_eq!(stations.pairs.len(), MOST_PAIRS);
        assert_eq!((stations.pairs[0], stations.unpaired), ((0, 1, 2), 6));
    }
}
