//! Converts per-host samples to the model's paths.
//!
//! *RTT.* A SYN/ACK answers its SYN without waiting for an application or a delayed-ACK timer, and so does
//! the client's ACK of the SYN/ACK. So handshakes time the path itself, and the median of a host's
//! handshakes counts (Swing's choice). Where the capacity of its line is known, a replay has the queue there, and their 10th
//! percentile counts. Hosts without handshakes use ACKs of data, and only those that a
//! second full-sized segment should have forced at once. Queues and delayed ACKs still make some of these
//! samples too long, and nothing makes them too short, so their 10th percentile counts. Of a long transfer whose
//! beginning was not seen, no segment is the second without an ACK. There the shortest echo of a timestamp counts
//! ([`stamps`](crate::tcp)), unless the transfer filled the host's own line: then a queue is in all of them,
//! and the shortest is an upper bound.
//!
//! *The tapped link.* Its queue and its propagation delay are part of these times, but a replay has a link
//! of its own. All hosts beyond the link wait in its queue at the same time, so their shared delay is
//! subtracted ([`queue`](crate::queue)). Queues elsewhere affect single hosts and stay. Where too few hosts fill a shared line
//! to tell its queue, the shortest of all answers counts. The propagation delay must be given as an option.
//!
//! *Capacity.* Packet pairs that kept their spacing agree with each other. Pairs that queues spread or
//! squeezed, or that a capture stamped in one interrupt, lie anywhere. So the mode of the values counts
//! (Dovrolis, Ramanathan & Moore, IEEE/ACM ToN 12(6), 2004), provided there are enough of them. Swing
//! takes the median of half of the spacings, which single outliers move where pairs are few. Samples that
//! do not agree have no mode: at least a third must lie near it. Senders space packets, too: by pacing, and by the ACKs
//! of slower receivers. No link is slower than what its host sends in 20 ms, or receives in 200 ms, again and again.
//! So pairs below that rate do not count. If connections share a full line, no pair may be as fast: then the rate itself
//! is the line's, if the host receives at that rate most of the time that it is busy.
//!
//! If a host's pairs agree on a lower rate, and its connections keep to it, the host paces each of them (Linux `fq`,
//! QUIC, BBR). Then each has a path of its own with that capacity.
//!
//! Hosts behind one access link share its capacity. If most hosts of a side have the same capacity, hosts
//! with too few pairs get it, too.
//!
//! The spacing of ACKs shows the slowest link that the data crossed, on either side of the tap. It shows the
//! receiver's only while data wait there, which the time between their passage and their ACK tells. If the
//! data come through a shared link and the spacing shows no slower one, the receiver's own capacity is
//! unknown.
//!
//! *Loss.* Lost packets divided by data packets. A ratio from few packets is unreliable, and one large
//! transfer over a bad path says nothing about other hosts. So each host's ratio is shrunk towards its
//! side's, the more so the fewer packets it has.
//!
//! A host whose transfers fill its own access link loses packets to the queue there. Where the capacity is known,
//! a replay has that queue, and loses them again. So what the queue lost is not counted: these losses come when
//! the RTT is long, and others at any RTT. If the queue is always full, it is the cause of all. A queue of all that
//! receive windows permit looks like that, but loses nothing.

use std::collections::{BTreeMap, BTreeSet};

use swell_base::{Bytes, Dur, Rate, Stream};
use swell_traffic::{Path, Session};

use crate::counts::{Counts, SideCounts};
use crate::hosts::{Hosts, Measured, Reservoir, Sample};
use crate::index::Index;
use crate::options::Options;
use crate::queue::{Passing, Queue};
use crate::together::Together;

mod capacity;
mod full;
mod limits;
mod line;
mod losses;

use capacity::{FEW_PAIRS, FULL, SAME, SOUND_PAIRS, capacity, pace, reached, shortest};
pub(crate) use full::Delayed;
pub(crate) use limits::Limited;
use line::Line;
pub(crate) use losses::Untold;
use losses::{Beyond, elsewhere};

/// Minimum number of samples for an RTT to count as sound (Swing).
const SOUND_RTT: u32 = 5;
/// Weight of the side's loss ratio, in packets, in the estimate for a host. One loss in five packets says
/// little, one in a hundred much. The weight is small, because few paths are bad and most lose nothing. No
/// host contributes more packets than this to its side's ratio.
const PRIOR: f64 = 10.0;
/// Sizes of the packets to and from the host that an RTT is measured by. Handshake: a SYN or SYN/ACK and
/// its answer, with the usual options. Data: a full segment and its ACK.
const SYNS: (Bytes, Bytes) = (Bytes(60), Bytes(56));
/// Quantile of the RTT where only ACKs of data are available.
const DATA_QUANTILE: f64 = 0.1;

/// What was taken out of a path for the tapped link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Taken {
    /// Part of the RTT.
    pub(crate) rtt: Dur,
    /// Capacities that are the link's.
    pub(crate) up: Option<Rate>,
    pub(crate) down: Option<Rate>,
}

/// What the tap has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'t> {
    pub(crate) hosts: &'t Hosts,
    pub(crate) passing: &'t Passing,
    /// Bytes that passed, and that arrived beyond the tap, by direction.
    pub(crate) together: &'t [[Together; 2]; 2],
}

/// Paths, and what was taken out of each.
type Found = (Vec<Path>, Vec<Taken>);

/// Hosts of one role in order of first use.
#[derive(Debug)]
struct Role {
    index: Index<u32>,
    /// Host, class of the session that used it first, and whether it is on the right.
    hosts: Vec<(u32, u32, bool)>,
    /// The pace of hosts that pace their connections, by path.
    paced: BTreeMap<u32, Rate>,
}

impl Role {
    fn new() -> Role {
        Role {
            index: Index::new(),
            hosts: Vec::new(),
            paced: BTreeMap::new(),
        }
    }

    /// The path of a host. One with a `pace` has another each time.
    fn place(&mut self, host: u32, class: u32, right: bool, pace: Option<Rate>) -> u32 {
        let next = self.hosts.len() as u32;
        if let Some(pace) = pace {
            self.hosts.push((host, class, right));
            self.paced.insert(next, pace);
            return next;
        }
        let i = self.index.get_or_insert(host, next);
        if i == next {
            self.hosts.push((host, class, right));
        }
        i
    }
}

/// Collects the hosts that sessions use.
#[derive(Debug)]
pub(crate) struct Paths {
    roles: [Role; 2],
}

impl Paths {
    pub(crate) fn new() -> Paths {
        Paths {
            roles: [Role::new(), Role::new()],
        }
    }

    /// Replaces hosts by path indices in a session.
    pub(crate) fn place(&mut self, s: &mut Session, hosts: &Hosts) {
        let [clients, servers] = &mut self.roles;
        s.client = clients.place(s.client, s.class, s.outside, None);
        for c in s.groups.iter_mut().flat_map(|g| &mut g.connections) {
            let pace = hosts.measured(c.server).and_then(pace);
            c.server = servers.place(c.server, s.class, !s.outside, pace);
        }
    }

    /// Client paths and server paths, each with the part of the RTTs subtracted for the tapped link. With
    /// `options.apart`, each path is measured by its own packets, and nothing is borrowed or shared.
    pub(crate) fn finish(
        self,
        tap: &Seen<'_>,
        counts: &mut Counts,
        options: &Options,
    ) -> [Found; 2] {
        let mut rng = Stream::new(0, "learn-borrow");
        let hosts = tap.hosts;
        if options.apart {
            return self.roles.map(|role| each_by_itself(&role, hosts));
        }
        // The queue left and right of the tap.
        let mut beyond = [false, true].map(|right| {
            let mut here: Vec<u32> = (self.roles.iter().flat_map(|r| &r.hosts))
                .filter(|h| h.2 == right)
                .map(|h| h.0)
                .collect();
            here.sort_unstable();
            here.dedup();
            let measured = || here.iter().filter_map(|&h| Some((h, hosts.measured(h)?)));
            let queue = Queue::of(measured(), tap.passing, usize::from(right));
            let alone: Vec<&Measured> = measured().map(|h| h.1).collect();
            let (lines, limited) = limits::of_side(&alone, right, tap.together, options.link_rate);
            counts.lines[usize::from(right)] = limited;
            let beyond = Beyond::new(queue, lines, &alone);
            counts.untold[usize::from(right)] = beyond.untold();
            beyond
        });
        counts.filled = [0, 1].map(|way| {
            // From those on the left of the tap, and to those on its right; and the other way round.
            let lines = [beyond[0].lines[way], beyond[1].lines[1 - way]];
            lines.iter().flatten().any(|l| l.shared && l.filled)
        });
        let [left, other] = &mut beyond;
        (left.full, other.full) = (left.full(other), other.full(left));
        counts.queues = beyond.each_ref().map(|side| side.queue.mean());
        // The shared link that data from each side come through.
        let sources = [false, true].map(|right| {
            let all = self.roles.iter().flat_map(|role| &role.hosts);
            let here = all.filter(|h| h.2 == right);
            let full = beyond[usize::from(right)].full[0].as_ref();
            line(here.filter_map(|h| few(hosts.measured(h.0)?, Sample::Up, full)))
        });
        let mut sides = counts.sides.iter_mut();
        let mut found = self.roles.map(|role| {
            let mut unused = SideCounts::default();
            let side = sides.next().unwrap_or(&mut unused);
            let found = paths(&role, hosts, &beyond, sources, &mut rng, side);
            (found, role)
        });
        let shares = shares(options.link_rtt, &found);
        let most = shares[0] + shares[1];
        counts.link_rtt = (most < options.link_rtt).then_some([options.link_rtt, most]);
        let found = found.each_mut().map(|((paths, taken), role)| {
            for ((path, own), host) in paths.iter_mut().zip(&mut *taken).zip(&role.hosts) {
                let share = shares[usize::from(host.2)].min(path.rtt);
                path.rtt -= share;
                own.rtt += share;
            }
            (
                std::mem::take(paths),
                std::mem::take(taken),
                std::mem::take(&mut role.hosts),
            )
        });
        counts.delayed = [false, true].map(|right| {
            let all = found.iter().flat_map(|(paths, _, of)| paths.iter().zip(of));
            let here = all.filter(|(path, h)| h.2 == right && path.rtt_samples > 0);
            let known = here.filter_map(|(path, h)| Some((path.rtt, hosts.measured(h.0)?)));
            full::delayed(&beyond[usize::from(right)].lines, known)
        });
        found.map(|(paths, taken, _)| (paths, taken))
    }
}

/// Divides the link's RTT between left and right of the tap: half each. Any part that exceeds the RTT of
/// the nearest host on one side goes to the other. What exceeds both is not subtracted.
fn shares(link: Dur, found: &[(Found, Role); 2]) -> [Dur; 2] {
    let nearest = [false, true].map(|right| {
        let all = found
            .iter()
            .flat_map(|((paths, _), role)| paths.iter().zip(&role.hosts));
        let here = all.filter(|(p, h)| h.2 == right && p.rtt_samples > 0);
        here.map(|(p, _)| p.rtt).min().unwrap_or(Dur::ZERO)
    });
    let left = (link / 2).min(nearest[0]);
    let right = (link - left).min(nearest[1]);
    [(link - right).min(nearest[0]), right]
}

fn each_by_itself(role: &Role, hosts: &Hosts) -> Found {
    let nothing = Measured::default();
    let none = Beyond::nothing();
    let own = |h: &(u32, u32, bool)| hosts.measured(h.0).unwrap_or(&nothing);
    let paths = role
        .hosts
        .iter()
        .map(|h| own_path(h.0, own(h), [0.0; 2], &none, None).path);
    (paths.collect(), vec![Taken::default(); role.hosts.len()])
}

/// The paths of one role, and the delay that the tapped link's queue added to their RTTs.
fn paths(
    role: &Role,
    hosts: &Hosts,
    beyond: &[Beyond<'_>; 2],
    sources: [Option<Rate>; 2],
    rng: &mut Stream,
    counts: &mut SideCounts,
) -> Found {
    let mut sums = [[0.0f64; 2]; 2];
    let mut counted = BTreeSet::new();
    for h in &role.hosts {
        let Some(m) = hosts.measured(h.0) else {
            continue;
        };
        if !counted.insert(h.0) {
            continue;
        }
        let own = elsewhere(m, &beyond[usize::from(h.2)]);
        for ((sum, [packets, lost]), share) in sums.iter_mut().zip([m.sent, m.received]).zip(own) {
            if packets > 0 {
                let weight = f64::from(packets).min(PRIOR);
                sum[0] += weight;
                sum[1] += weight * share * f64::from(lost.min(packets)) / f64::from(packets);
            }
        }
    }
    let pooled = sums.map(|[packets, lost]| if packets > 0.0 { lost / packets } else { 0.0 });
    let nothing = Measured::default();
    let own: Vec<Own> = role
        .hosts
        .iter()
        .map(|h| {
            let measured = hosts.measured(h.0).unwrap_or(&nothing);
            let source = sources[usize::from(!h.2)];
            own_path(h.0, measured, pooled, &beyond[usize::from(h.2)], source)
        })
        .collect();
    let lines = [false, true].map(|right| {
        let full = &beyond[usize::from(right)].full;
        let here = || {
            let all = role.hosts.iter().zip(&own);
            all.filter(move |(h, _)| h.2 == right)
        };
        [
            line(
                here().filter_map(|(h, _)| few(hosts.measured(h.0)?, Sample::Up, full[0].as_ref())),
            ),
            line(here().filter_map(|(_, o)| o.path.down)),
        ]
    });
    // Hosts whose RTT others may borrow, altogether and by class.
    let donors: Vec<usize> = (0..own.len())
        .filter(|&i| own[i].path.rtt_samples > 0)
        .collect();
    let mut alike: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &d in &donors {
        alike.entry(role.hosts[d].1).or_default().push(d);
    }
    // Each is borrowed equally often, so that those who borrow are distributed as the donors.
    let mut unused: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut paths = Vec::with_capacity(own.len());
    let mut taken = Vec::with_capacity(own.len());
    for (i, o) in own.iter().enumerate() {
        let (mut path, mut queue) = (o.path, o.queue);
        counts.hosts += 1;
        counts.by_data += u64::from(o.by_data);
        let [up, down] = lines[usize::from(role.hosts[i].2)];
        let fits = |line: &Rate, kind: Sample| {
            let reached = hosts
                .measured(role.hosts[i].0)
                .map_or(0, |m| reached(m, kind));
            line.bps() as f64 * SAME >= f64::from(reached) * 1e3
        };
        let full = &beyond[usize::from(role.hosts[i].2)].full;
        // The pace on a full line is a share of it.
        let paced = role.paced.get(&(i as u32)).filter(|_| full[0].is_none());
        path.up = paced.copied().or(path.up);
        path.up = path.up.or(up.filter(|line| fits(line, Sample::Up)));
        path.down = path.down.or(down.filter(|line| fits(line, Sample::Down)));
        if path.rtt_samples == 0 {
            let class = role.hosts[i].1;
            let left = unused.entry(class).or_default();
            if left.is_empty() {
                left.clone_from(alike.get(&class).unwrap_or(&donors));
            }
            let next = rng.below(left.len().max(1) as u64) as usize;
            let donor = (next < left.len()).then(|| left.swap_remove(next));
            let borrowed = donor.map(|d| (own[d].path.rtt, own[d].queue));
            // A queue of the host's own line may be in all echoes, but the path is no longer than the shortest.
            let most = hosts.measured(role.hosts[i].0).and_then(shortest_echo);
            match (borrowed, most) {
                (borrowed, Some(most)) if borrowed.is_none_or(|b| most < b.0) => {
                    (path.rtt, queue) = (most, Dur::ZERO);
                    path.rtt_samples = 1;
                    counts.few += 1;
                    counts.by_data += 1;
                }
                (borrowed, _) => {
                    counts.borrowed += 1;
                    (path.rtt, queue) = borrowed.unwrap_or((path.rtt, queue));
                }
            }
        } else if path.rtt_samples < SOUND_RTT {
            counts.few += 1;
        }
        let own_lines = &beyond[usize::from(role.hosts[i].2)].lines;
        let [from, to] = [0, 1].map(|way| own_lines[way].or(full[way]));
        taken.push(Taken {
            rtt: queue,
            up: line::take(&mut path.up, from.as_ref()),
            down: line::take(&mut path.down, to.as_ref()),
        });
        paths.push(path);
    }
    (paths, taken)
}

/// The path of a host from its own packets.
struct Own {
    path: Path,
    /// Delay that the tapped link's queue added to its RTT.
    queue: Dur,
    /// Whether its RTT is measured by ACKs of data.
    by_data: bool,
}

/// A capacity from few pairs, for use where other hosts confirm it.
fn few(m: &Measured, kind: Sample, full: Option<&Line<'_>>) -> Option<Rate> {
    let own = capacity(m, kind, FEW_PAIRS)?;
    Some(full::unshared(m, kind, own, full))
}

/// Whether the RTTs of `a` are shorter than those of `b`.
fn shorter(a: &Reservoir, b: &Reservoir) -> bool {
    let typical = |r: &Reservoir| r.quantile(DATA_QUANTILE, |v, _| v);
    typical(a) < typical(b)
}

/// The shortest echo of a timestamp.
fn shortest_echo(m: &Measured) -> Option<Dur> {
    let kept = &m.get(Sample::Echo)?.kept;
    let least = kept.iter().map(|k| k.0).min()?;
    Some(Dur::from_micros(u64::from(least)))
}

/// The path as measured. `pooled`: loss ratios from and to the hosts of this role. `source`: capacity of
/// the shared link that data come through on the other side.
fn own_path(
    host: u32,
    m: &Measured,
    pooled: [f64; 2],
    beyond: &Beyond<'_>,
    source: Option<Rate>,
) -> Own {
    let [up, down] = [Sample::Up, Sample::Down].map(|kind| {
        let own = capacity(m, kind, SOUND_PAIRS)?;
        let line = beyond.full[usize::from(kind == Sample::Down)].as_ref();
        Some(full::unshared(m, kind, own, line))
    });
    let slower = |own: &Rate| source.is_none_or(|s| own.bps() as f64 * SAME < s.bps() as f64);
    let down = down.filter(slower);
    let receives = m.received[0] >= m.sent[0];
    // A transfer that fills the host's own line keeps a queue there all the time.
    let filled = if receives { down } else { up };
    let echo = m.get(Sample::Echo).filter(|_| filled.is_none());
    let (by_data, timed, q) = match (m.get(Sample::Handshake), m.get(Sample::Data)) {
        // Few answers to data may all have waited for the receiver. The shortest echo is an upper bound, too.
        (None, Some(data)) if data.seen < SOUND_RTT && echo.is_some_and(|e| shorter(e, data)) => {
            (true, echo, DATA_QUANTILE)
        }
        (None, Some(data)) => (true, Some(data), DATA_QUANTILE),
        (None, None) => (echo.is_some(), echo, DATA_QUANTILE),
        // A queue of the host's own line was in some or most of them, and a replay has that queue.
        (handshake, _) => (false, handshake, filled.map_or(0.5, |_| DATA_QUANTILE)),
    };
    let as_seen = timed.and_then(|t| t.quantile(q, |v, _| v)).unwrap_or(0);
    let rtt = timed.and_then(|t| t.quantile(q, |v, at| v - beyond.queue.of_all(host, at).min(v)));
    let rtt = rtt.map(|rtt| match beyond.waits() {
        true => shortest(m).map_or(rtt, |least| least.min(rtt)),
        false => rtt,
    });
    let (rtt, rtt_samples) = (rtt.unwrap_or(0), timed.map_or(0, |t| t.seen));
    let queue = Dur::from_micros(u64::from(as_seen.saturating_sub(rtt)));
    let seen = |kind: Sample| m.get(kind).map_or(0, |r| r.seen);
    let elsewhere = elsewhere(m, beyond);
    let loss = |[packets, lost]: [u32; 2], d: usize| {
        let packets = f64::from(packets);
        let lost = f64::from(lost).min(packets) * elsewhere[d];
        share((lost + PRIOR * pooled[d]) / (packets + PRIOR))
    };
    // The RTT must not include the transmission time of the probe packets on the host's own access link.
    let (to, from) = match by_data {
        true if receives => FULL,
        true => (FULL.1, FULL.0),
        false => SYNS,
    };
    let time = |line: Option<Rate>, size: Bytes| line.map_or(Dur::ZERO, |r| r.transmit(size));
    let rtt = Dur::from_micros(u64::from(rtt));
    let path = Path {
        rtt: whole_micros(rtt - time(down, to) - time(up, from)),
        up,
        down,
        loss_up: loss(m.sent, 0),
        loss_down: loss(m.received, 1),
        rtt_samples,
        capacity_samples: seen(Sample::Up).saturating_add(seen(Sample::Down)),
        loss_samples: m.sent[0].saturating_add(m.received[0]),
    };
    Own {
        path,
        queue,
        by_data,
    }
}

/// Minimum number of hosts with a known capacity for a shared link.
const SHARERS: usize = 3;
/// The shared link's capacity: the median of these, if two in three agree with it.
fn line(capacities: impl Iterator<Item = Rate>) -> Option<Rate> {
    let mut known: Vec<u64> = capacities.map(Rate::bps).collect();
    known.sort_unstable();
    let median = *known.get(known.len() / 2)?;
    let same = |&&bps: &&u64| {
        let ratio = bps as f64 / median as f64;
        (1.0 / SAME..=SAME).contains(&ratio)
    };
    let agree = known.iter().filter(same).count();
    (known.len() >= SHARERS && 3 * agree >= 2 * known.len()).then(|| Rate::from_bps(median))
}

/// Rounds to the resolution of the file.
pub(crate) fn whole_micros(d: Dur) -> Dur {
    Dur::from_micros((d.as_nanos() + 500) / 1000)
}

/// Rounds a ratio to six decimals, to keep meaningless digits out of the file.
fn share(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests;
