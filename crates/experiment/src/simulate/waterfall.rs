//! The critical path of a request: explains its completion time by going back from its last byte.
//!
//! The packet with the last byte spent time in queues, in transmission and in propagation. It was sent when another
//! packet, an ACK or a request, arrived at its sender. That packet was sent when a third one arrived, and so on back to
//! the start. The times along this chain add up to the request's time, to the nanosecond. If a packet is a
//! retransmission, the chain continues from the first transmission, and the time between the two is recovery.
//!
//! Packets that are not on the chain did not delay the request directly. Their loss may have reduced a window, which
//! shows as more rounds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Bytes, Direction, Dur, Flags, Head, Packet, Tag, Time};
use swell_workload::{Outcome, Record, RequestRecord};
use swell_world::{Parties, Tap};

use crate::backend::RunSpec;
use crate::file::{Change, Hop, Queue, queues};
use crate::observe::{Cause, Share};
use crate::plan::deliveries::counting_rate;

/// A packet of the foreground and the links that it has reached.
struct Passing {
    head: Head,
    hops: Vec<Hopped>,
}

/// A packet at a link: when it arrived, and when it reached the far end.
#[derive(Clone, Copy)]
struct Hopped {
    link: usize,
    came: Time,
    left: Option<Time>,
}

/// Packets of one direction of a connection, in the order in which they were sent.
#[derive(Default)]
struct Way {
    all: Vec<Passing>,
    /// Indices of packets that may still be in the network.
    open: Vec<usize>,
}

/// Connection, and whether it is the direction to the server.
type Key = (u32, bool);

/// A packet observed at a link: it arrives there (`comes`), or it has crossed the link.
struct Sight {
    at: Time,
    comes: bool,
    link: usize,
    key: Key,
    head: Head,
}

/// Observes the foreground's packets at every link. Clones share their state.
#[derive(Clone)]
pub(super) struct Watching(Arc<Mutex<Watched>>);

/// The observations so far.
#[derive(Default)]
struct Watched {
    /// Number of links that the foreground crosses.
    links: usize,
    /// The link of the latest observation.
    link: usize,
    /// Observations that others of other links may still precede.
    recent: Vec<Sight>,
    /// The packets of all earlier ones.
    ways: BTreeMap<Key, Way>,
}

/// With more recent observations than this, those that nothing can precede any more are merged. Runs of tests are short.
const MANY: usize = if cfg!(test) { 16 } else { 4096 };

impl Watched {
    /// The world shows its links one after another, each up to the same instant. When it begins again with an earlier
    /// link, nothing comes any more from before the latest observation.
    fn add(&mut self, sight: Sight) {
        let again = sight.link < self.link || self.links == 1;
        if again && self.recent.len() > MANY {
            let latest = self.recent.iter().map(|s| s.at).max();
            self.merge(latest);
        }
        self.link = sight.link;
        self.recent.push(sight);
    }

    /// Merges the observations of all links before this instant, or all of them, by time. At equal times a departure
    /// precedes the arrival at the next link.
    fn merge(&mut self, before: Option<Time>) {
        let Watched { recent, ways, .. } = self;
        recent.sort_by_key(|s| (s.at, s.comes));
        let settled = recent.partition_point(|s| before.is_none_or(|before| s.at < before));
        for sight in recent.drain(..settled) {
            let way = ways.entry(sight.key).or_default();
            match sight.comes {
                true => way.comes(&sight),
                false => way.leaves(&sight),
            }
        }
    }
}

/// [`Watching`] at one link, of one workload.
struct At {
    watching: Watching,
    link: usize,
    own: u32,
}

impl Watching {
    /// Observes packets that cross this number of links.
    pub fn new(links: usize) -> Watching {
        Watching(Arc::new(Mutex::new(Watched {
            links,
            ..Watched::default()
        })))
    }

    /// The tap for a link. Packets of other workloads than `own` are not kept.
    pub fn tap(&self, link: usize, own: u32) -> Box<dyn Tap> {
        Box::new(At {
            watching: self.clone(),
            link,
            own,
        })
    }

    /// The shares of the times of completed requests in `records`, which took `path`. `access` is the delay of the
    /// access path at each end. `hello`: bytes of the handshake in the data of the client and of the server, at
    /// the beginning of each connection.
    pub fn shares(
        &self,
        spec: &RunSpec,
        path: &[Hop],
        access: Dur,
        hello: [u64; 2],
        records: &[Record],
    ) -> Vec<Share> {
        let mut watched =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        watched.merge(None);
        let ways = watched.ways;
        let chains = Chains {
            hello,
            ..Chains::new(spec, path, access, &ways)
        };
        let done = records.iter().filter_map(|r| match r {
            Record::Request(r) if r.outcome == Outcome::Done => Some(r),
            _ => None,
        });
        let done: Vec<&RequestRecord> = done.collect();
        let mut owners = chains.owners(&done);
        let shares = done.iter().filter_map(|r| chains.shares(r, &mut owners));
        shares.flatten().collect()
    }
}

impl At {
    fn sees(&self, at: Time, comes: bool, parties: &Parties, to_server: bool, packet: &Packet) {
        if packet.tag == Tag::Foreground && parties.tcp && parties.workload == self.own {
            let mut watched = (self.watching.0.lock()).unwrap_or_else(PoisonError::into_inner);
            watched.add(Sight {
                at,
                comes,
                link: self.link,
                key: (parties.conn.0, to_server),
                head: packet.head,
            });
        }
    }
}

impl Tap for At {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.sees(at, false, parties, to_server, packet);
    }

    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.sees(at, true, parties, to_server, packet);
    }
}

/// Whether these headers are of the same packet. Queues keep the packets of a connection in order, so among several
/// matches the first one is right.
fn same(a: &Head, b: &Head) -> bool {
    let what = |h: &Head| {
        let s = h.seg;
        (s.seq, s.ack, s.len, s.flags, s.stamps, h.size)
    };
    what(a) == what(b)
}

impl Way {
    /// A packet arrives at a link, from the previous link or from its host.
    fn comes(&mut self, sight: &Sight) {
        let hopped = Hopped {
            link: sight.link,
            came: sight.at,
            left: None,
        };
        let all = &mut self.all;
        let found = self.open.iter().copied().find(|&i| {
            let left = all[i].hops.last().and_then(|h| h.left);
            left == Some(sight.at) && same(&all[i].head, &sight.head)
        });
        match found {
            Some(i) => all[i].hops.push(hopped),
            None => {
                self.open.push(all.len());
                all.push(Passing {
                    head: sight.head,
                    hops: vec![hopped],
                });
            }
        }
    }

    /// A packet has crossed a link. Packets that arrived there earlier and have not crossed it are lost.
    fn leaves(&mut self, sight: &Sight) {
        let all = &mut self.all;
        let waits = |p: &Passing| {
            p.hops
                .last()
                .is_some_and(|h| h.link == sight.link && h.left.is_none())
        };
        let found = self.open.iter().copied();
        let found = found
            .enumerate()
            .find(|&(_, i)| waits(&all[i]) && same(&all[i].head, &sight.head));
        let Some((k, i)) = found else { return };
        if let Some(hop) = all[i].hops.last_mut() {
            hop.left = Some(sight.at);
        }
        let over = |p: &Passing| {
            let left = p.hops.last().and_then(|h| h.left);
            waits(p) || left.is_some_and(|left| left < sight.at)
        };
        let mut place = 0;
        self.open.retain(|&j| {
            place += 1;
            place > k || !over(&all[j])
        });
    }
}

/// Packets of one direction, ready to be looked up.
struct Sent<'w> {
    all: &'w [Passing],
    /// When each arrived at its host; `None` if it was lost.
    came: Vec<Option<Time>>,
    /// The packets that arrived, in order of arrival.
    order: Vec<(Time, usize)>,
    /// The first transmission of each sequence number.
    first: BTreeMap<u64, usize>,
}

/// The packets from which the chains of a foreground's requests are built.
struct Chains<'w> {
    spec: &'w RunSpec,
    access: Dur,
    hello: [u64; 2],
    /// Links to the client and to the server.
    links: [Vec<Queue>; 2],
    sent: BTreeMap<(u32, bool), Sent<'w>>,
    /// Arrival time, connection and index of packets to clients, in this order. Several may arrive at one instant, on
    /// one connection or on several: where a delivery trace has several opportunities in a millisecond, for example.
    to_clients: Vec<(Time, u32, usize)>,
}

/// The client of each connection, where it is known. A connection is of one client.
type Owners = BTreeMap<u32, u32>;

/// The times on a chain of packets, and the time between the start of the request and the first of these packets.
struct Chain {
    sum: BTreeMap<(Cause, Option<Queue>), Dur>,
    unexplained: Dur,
}

impl<'w> Chains<'w> {
    fn new(
        spec: &'w RunSpec,
        path: &[Hop],
        access: Dur,
        ways: &'w BTreeMap<Key, Way>,
    ) -> Chains<'w> {
        let links = [Direction::Down, Direction::Up].map(|along| queues(path, along));
        let mut sent = BTreeMap::new();
        let mut to_clients = Vec::new();
        for (&(conn, up), way) in ways {
            let hops = links[usize::from(up)].len();
            let came = |p: &Passing| Some(p.hops.get(hops.checked_sub(1)?)?.left? + access);
            let came: Vec<_> = way.all.iter().map(came).collect();
            let mut order: Vec<_> = (0..)
                .zip(&came)
                .filter_map(|(i, t)| Some(((*t)?, i)))
                .collect();
            order.sort_unstable();
            let mut first = BTreeMap::new();
            for (i, p) in way.all.iter().enumerate() {
                if takes_numbers(&p.head) {
                    first.entry(p.head.seg.seq).or_insert(i);
                }
            }
            if !up {
                to_clients.extend(order.iter().map(|&(at, i)| (at, conn, i)));
            }
            sent.insert(
                (conn, up),
                Sent {
                    all: &way.all,
                    came,
                    order,
                    first,
                },
            );
        }
        to_clients.sort_unstable();
        Chains {
            spec,
            access,
            hello: [0; 2],
            links,
            sent,
            to_clients,
        }
    }

    /// Connections that may be `client`'s and on which a packet arrived at a client at this instant, with the last such
    /// packet.
    fn arrivals(&self, at: Time, client: u32, owners: &Owners) -> BTreeMap<u32, usize> {
        let from = self.to_clients.partition_point(|&(t, ..)| t < at);
        let there = self.to_clients[from..].iter().take_while(|a| a.0 == at);
        let own = |conn| owners.get(conn).is_none_or(|&owner| owner == client);
        there
            .filter(|(_, conn, _)| own(conn))
            .map(|&(_, conn, i)| (conn, i))
            .collect()
    }

    /// The clients of connections, as far as ends of requests tell: where a request ends, a packet arrives on a
    /// connection of its client.
    fn owners(&self, done: &[&RequestRecord]) -> Owners {
        let mut owners = Owners::new();
        // Each connection whose client is known may leave a single one for another request.
        loop {
            let before = owners.len();
            for request in done {
                let Some(end) = request.last_byte else {
                    continue;
                };
                let own = self.arrivals(end, request.client, &owners);
                if let (1, Some((&conn, _))) = (own.len(), own.first_key_value()) {
                    owners.insert(conn, request.client);
                }
            }
            if owners.len() == before {
                return owners;
            }
        }
    }

    /// The shares of a request's time; `None` if no chain leads back to its start.
    fn shares(&self, request: &RequestRecord, owners: &mut Owners) -> Option<Vec<Share>> {
        let last = self.arrivals(request.last_byte?, request.client, owners);
        let chains =
            (last.into_iter()).filter_map(|at| Some((at.0, self.chain(request, at, owners)?)));
        // Where several connections may be its own, it is the one whose first packet was sent when the request began.
        let mut chains: Vec<_> = chains.collect();
        chains.sort_by_key(|(_, chain)| chain.unexplained);
        let equal = chains
            .get(1)
            .is_some_and(|second| second.1.unexplained == chains[0].1.unexplained);
        let (conn, chain) = chains.into_iter().next()?;
        // Of equal ones, either may be another client's.
        if !equal {
            owners.insert(conn, request.client);
        }
        let share = |((cause, queue), time): ((Cause, Option<Queue>), Dur)| Share {
            client: request.client,
            index: request.index,
            cause,
            link: queue.map_or_else(
                || Arc::from(""),
                |q| Arc::clone(&self.spec.links[q.link].name),
            ),
            seconds: time.as_secs_f64(),
        };
        Some(chain.sum.into_iter().map(share).collect())
    }

    /// The chain of a request whose last packet is the one with this connection and index; `None` if it does not lead
    /// back to the start.
    fn chain(
        &self,
        request: &RequestRecord,
        (mut conn, mut i): (u32, usize),
        owners: &Owners,
    ) -> Option<Chain> {
        let start = request.start;
        let mut unexplained = Dur::ZERO;
        let mut sum: BTreeMap<(Cause, Option<Queue>), Dur> = BTreeMap::new();
        let mut add = |cause, link, time: Dur| {
            *sum.entry((cause, link)).or_insert(Dur::ZERO) += time;
        };
        let (mut up, mut is_last) = (false, true);
        loop {
            let own = self.sent.get(&(conn, up))?;
            let packet = &own.all[i];
            // The first byte of data has number 1.
            let hello = self.hello[usize::from(!up)];
            let cause = match &packet.head.seg {
                s if s.flags.has(Flags::SYN) => Cause::Handshake,
                s if s.len > 0 && s.seq <= hello => Cause::Handshake,
                s if up && s.len > 0 => Cause::Request,
                _ if is_last => Cause::Response,
                _ => Cause::Rounds,
            };
            is_last = false;
            let mut left = own.came[i]?.since(self.sent_at(packet));
            for (queue, hop) in self.links[usize::from(up)].iter().zip(&packet.hops) {
                let [wait, transmission] = self.at_link(*queue, packet.head.size, *hop)?;
                let waits = match packet.head.seg.len > 0 || packet.head.seg.flags.has(Flags::SYN) {
                    true => Cause::QueueData,
                    false => Cause::QueueAcks,
                };
                add(waits, Some(*queue), wait);
                add(Cause::Transmission, Some(*queue), transmission);
                left = left.saturating_sub(wait + transmission);
            }
            add(cause, None, left);
            // A retransmission counts from the first transmission.
            let mut packet_sent = self.sent_at(packet);
            let mut head = packet.head;
            if takes_numbers(&head)
                && let Some((_, &first)) = own.first.range(..=head.seg.seq).next_back()
                && first < i
            {
                let original = &own.all[first];
                add(
                    Cause::Recovery,
                    None,
                    packet_sent.since(self.sent_at(original)),
                );
                (packet_sent, head) = (self.sent_at(original), original.head);
            }
            if packet_sent <= start {
                if packet_sent < start {
                    return None;
                }
                break;
            }
            // A client may have sent this in response to a packet on another connection, which then arrived at the same
            // instant. Of several that did, the one on the same connection comes first.
            let other = match up {
                true => self.arrivals(packet_sent, request.client, owners),
                false => BTreeMap::new(),
            };
            let other = other.into_iter().max_by_key(|(c, _)| *c == conn);
            let before = other.or_else(|| self.before(conn, !up, packet_sent));
            let known = before.and_then(|(c, j)| Some((c, j, self.sent.get(&(c, !up))?)));
            let Some((next, j, way)) = known.filter(|(_, j, w)| w.came[*j] >= Some(start)) else {
                unexplained = packet_sent.since(start);
                add(Cause::Hosts, None, unexplained);
                break;
            };
            let pause = packet_sent.since(way.came[j]?);
            let answers = !up && head.seg.len > 0 && way.all[j].head.seg.len > 0;
            add(
                if answers { Cause::Server } else { Cause::Hosts },
                None,
                pause,
            );
            (conn, i, up) = (next, j, !up);
        }
        Some(Chain { sum, unexplained })
    }

    fn sent_at(&self, packet: &Passing) -> Time {
        Time::ZERO + packet.hops[0].came.since(Time::ZERO + self.access)
    }

    /// The last packet of a connection that arrived at a host no later than `until`.
    fn before(&self, conn: u32, up: bool, until: Time) -> Option<(u32, usize)> {
        let order = &self.sent.get(&(conn, up))?.order;
        let n = order.partition_point(|(at, _)| *at <= until);
        Some((conn, order.get(n.checked_sub(1)?)?.1))
    }

    /// Queueing and transmission time of a packet at a link, with the delay and the rate that the link had when the
    /// packet's last bit left.
    fn at_link(&self, queue: Queue, size: u16, hop: Hopped) -> Option<[Dur; 2]> {
        let link = self.spec.link(queue);
        let changes = &self.spec.links[queue.link].changes[queue.direction];
        let left = hop.left?;
        let delay_at = |at: Time| latest(changes, at, |c| c.delay).unwrap_or(link.delay);
        // When the last bit left follows from the delay, and the delay from when it left. The delay at the far end's
        // instant fits, unless the delay changed on the way.
        let fits = |delay: &Dur| delay_at(left - *delay) == *delay;
        let now = delay_at(left);
        let delay = match fits(&now) {
            true => now,
            false => {
                let all = changes.iter().filter_map(|c| c.delay).chain([link.delay]);
                all.filter(fits).min().unwrap_or(now)
            }
        };
        let there = left.since(hop.came).saturating_sub(delay);
        let set = |c: &Change| {
            let sets = c.rate.is_some() || c.deliveries.is_some();
            sets.then(|| counting_rate(c, link, &self.spec.deliveries))
        };
        // A change at the instant at which the last bit leaves is too late for the rate.
        let before = left - delay - Dur::from_nanos(1);
        let rate = latest(changes, before, set).unwrap_or(link.rate);
        // What the link adds to each packet is transmitted with it.
        let bytes = Bytes(link.overhead.0 + u64::from(size));
        let transmission = rate.transmit(bytes).min(there);
        Some([there.saturating_sub(transmission), transmission])
    }
}

/// What the last of these changes sets by `at`; `None` if none of them sets it by then.
fn latest<T>(changes: &[Change], at: Time, of: impl Fn(&Change) -> Option<T>) -> Option<T> {
    // Of changes at one instant, the last in the list applies.
    let set = changes.iter().rev().filter_map(|change| {
        let first = at.as_nanos().checked_sub(change.at.as_nanos())?;
        let every = change.every.unwrap_or_default().as_nanos();
        let ago = first.checked_rem(every).unwrap_or(first);
        Some((ago, of(change)?))
    });
    set.min_by_key(|(ago, _)| *ago).map(|(_, value)| value)
}

/// Whether a packet occupies sequence numbers: it carries data or a SYN.
fn takes_numbers(head: &Head) -> bool {
    head.seg.len > 0 || head.seg.flags.has(Flags::SYN)
}
