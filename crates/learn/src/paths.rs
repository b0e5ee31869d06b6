//! From samples per host to the model's paths.
//!
//! *RTT.* A SYN/ACK answers its SYN, and the client's ACK the SYN/ACK, without waiting for an
//! application or a delayed-ACK timer, so handshakes time the path itself: where a host has any,
//! their median counts (Swing's choice). Otherwise acknowledgements of data are used, only those that a
//! second full-sized segment should have forced at once; queues and late acknowledgements still make
//! some of them too long and nothing makes them too short, so their 10th percentile counts.
//!
//! *Capacity.* Swing keeps half of the packet-pair spacings and takes their median; which half is a
//! parameter ([`Options::pair_quantile`](crate::Options)). With delayed ACKs half of the spacings
//! are true pairs, the small ones.
//!
//! *Loss.* Lost packets over data packets. A share of few packets says nothing, and one large transfer
//! over a bad line says nothing about other hosts: hosts with few packets get the mean of such hosts,
//! hosts with none that of their side.

use std::collections::BTreeMap;

use swell_base::{Dur, Rate, Stream};
use swell_traffic::{Path, Session};

use crate::doubts::Counts;
use crate::hosts::{Hosts, Measured};
use crate::index::Index;

/// Samples from which on an RTT is called sound (Swing).
const SOUND_RTT: u32 = 5;
/// Pairs from which on a capacity is given.
const SOUND_PAIRS: u32 = 5;
/// Data packets from which on a host's own loss share is used.
const SOUND_LOSS: u64 = 10;
/// Where only data acknowledgements tell the RTT.
const DATA_QUANTILE: f64 = 0.1;

/// Hosts of one role in order of first use.
#[derive(Debug)]
struct Role {
    index: Index<u32>,
    /// Host and the class of the session that used it first.
    hosts: Vec<(u32, u32)>,
}

impl Role {
    fn new() -> Role {
        Role {
            index: Index::new(),
            hosts: Vec::new(),
        }
    }

    fn place(&mut self, host: u32, class: u32) -> u32 {
        let next = self.hosts.len() as u32;
        let i = self.index.get_or_insert(host, next);
        if i == next {
            self.hosts.push((host, class));
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
    pub(crate) fn place(&mut self, s: &mut Session) {
        let [clients, servers] = &mut self.roles;
        s.client = clients.place(s.client, s.class);
        for c in s.groups.iter_mut().flat_map(|g| &mut g.connections) {
            c.server = servers.place(c.server, s.class);
        }
    }

    /// Client paths and server paths.
    pub(crate) fn finish(
        self,
        hosts: &Hosts,
        pair_quantile: f64,
        counts: &mut Counts,
    ) -> [Vec<Path>; 2] {
        let mut rng = Stream::new(0, "learn-borrow");
        let mut side = 0;
        self.roles.map(|role| {
            let paths = paths(
                &role,
                hosts,
                pair_quantile,
                &mut rng,
                &mut counts.sides[side],
            );
            side += 1;
            paths
        })
    }
}

/// What is known about the paths of one role.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SideCounts {
    pub(crate) hosts: u64,
    /// Hosts without an RTT sample of their own, and with fewer than a sound number.
    pub(crate) borrowed: u64,
    pub(crate) few: u64,
    /// Hosts whose RTT rests on data acknowledgements.
    pub(crate) by_data: u64,
}

fn paths(
    role: &Role,
    hosts: &Hosts,
    pair_quantile: f64,
    rng: &mut Stream,
    counts: &mut SideCounts,
) -> Vec<Path> {
    let (mut all, mut small) = ([0u64; 4], [0u64; 4]);
    for m in role.hosts.iter().filter_map(|h| hosts.measured(h.0)) {
        for (d, [packets, lost]) in [m.sent, m.received].into_iter().enumerate() {
            let pools = [Some(&mut all), (packets < SOUND_LOSS).then_some(&mut small)];
            for sums in pools.into_iter().flatten() {
                sums[2 * d] += packets;
                sums[2 * d + 1] += lost;
            }
        }
    }
    let pooled = [all, small].map(|n| [share(n[1], n[0]), share(n[3], n[2])]);
    let nothing = Measured::default();
    let own: Vec<(Path, bool)> = role
        .hosts
        .iter()
        .map(|h| {
            own_path(
                hosts.measured(h.0).unwrap_or(&nothing),
                pair_quantile,
                pooled,
            )
        })
        .collect();
    // Donors of round trips, altogether and by class.
    let donors: Vec<usize> = (0..own.len())
        .filter(|&i| own[i].0.rtt_samples > 0)
        .collect();
    let mut alike: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &d in &donors {
        alike.entry(role.hosts[d].1).or_default().push(d);
    }
    let mut paths = Vec::with_capacity(own.len());
    for (i, &(mut path, by_data)) in own.iter().enumerate() {
        counts.hosts += 1;
        counts.by_data += u64::from(by_data);
        if path.rtt_samples == 0 {
            counts.borrowed += 1;
            let from = alike.get(&role.hosts[i].1).unwrap_or(&donors);
            if let Some(&donor) = from.get(rng.below(from.len() as u64) as usize) {
                path.rtt = own[donor].0.rtt;
            }
        } else if path.rtt_samples < SOUND_RTT {
            counts.few += 1;
        }
        paths.push(path);
    }
    paths
}

/// The path as measured, and whether its RTT rests on data. `pooled`: losses from and to the hosts of this role, of all and of those with few packets.
fn own_path(m: &Measured, pair_quantile: f64, pooled: [[f64; 2]; 2]) -> (Path, bool) {
    let by_data = m.handshake.seen == 0 && m.data.seen > 0;
    let (rtt, rtt_samples) = if by_data {
        (m.data.quantile(DATA_QUANTILE), m.data.seen)
    } else {
        (m.handshake.quantile(0.5), m.handshake.seen)
    };
    let rate = |r: &crate::hosts::Reservoir| {
        // A small spacing is a high rate.
        r.quantile(1.0 - pair_quantile)
            .filter(|&kbit| r.seen >= SOUND_PAIRS && kbit > 0)
            .map(|kbit| Rate::from_bps(u64::from(kbit) * 1000))
    };
    let loss = |[packets, lost]: [u64; 2], d: usize| match packets {
        0 => pooled[0][d],
        SOUND_LOSS.. => share(lost, packets),
        _ => pooled[1][d],
    };
    let path = Path {
        rtt: Dur::from_micros(u64::from(rtt.unwrap_or(0))),
        up: rate(&m.up),
        down: rate(&m.down),
        loss_up: loss(m.sent, 0),
        loss_down: loss(m.received, 1),
        rtt_samples,
        capacity_samples: m.up.seen.saturating_add(m.down.seen),
        loss_samples: u32::try_from(m.sent[0] + m.received[0]).unwrap_or(u32::MAX),
    };
    (path, by_data)
}

/// A share to six decimals: no digits in the file that mean nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        ((part.min(whole) as f64 / whole as f64) * 1e6).round() / 1e6
    }
}
