//! What the pass counts for the warnings at the end.

use swell_base::Dur;

use crate::clock::Oddities;
use crate::paths::{Delayed, Limited, Untold};
use crate::tcp::Tracked;
use crate::udp::SPREAD;

/// Fewer pauses of a connection make no stream.
const SEVERAL: u32 = 10;

/// What is known about the paths of one role.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SideCounts {
    pub(crate) hosts: u64,
    /// Hosts without an RTT sample of their own, and hosts with too few for a sound RTT.
    pub(crate) borrowed: u64,
    pub(crate) few: u64,
    /// Hosts whose RTT is measured by ACKs of data.
    pub(crate) by_data: u64,
}

/// Counters gathered during the pass, for the warnings at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) clock: Oddities,
    /// Packets that the capture holds twice.
    pub(crate) repeated: u64,
    pub(crate) icmp: u64,
    /// Whether a line that hosts share was full at times, left to right and right to left.
    pub(crate) filled: [bool; 2],
    /// Bytes of packets in no flow, left to right and right to left.
    pub(crate) unmodelled: [u64; 2],
    pub(crate) fragments: u64,
    pub(crate) truncated: u64,
    pub(crate) other: u64,
    /// Bytes of payload in packets that hold several segments or datagrams, and the connections among theirs whose
    /// segments are of unknown size.
    pub(crate) joined: u64,
    pub(crate) joined_unknown: u64,
    /// Flows that may be QUIC and do not consist of requests and responses, and the bytes of payload in them, by
    /// [`Doubt`](crate::udp::talk::Doubt).
    pub(crate) no_talks: [[u64; 2]; 4],
    /// Packets of connections that had ended, and their bytes.
    pub(crate) stragglers: u64,
    pub(crate) straggler_bytes: u64,
    /// Bytes of data that passed in connections and are not in the model.
    pub(crate) dropped: u64,
    /// Connections without a SYN and without data.
    pub(crate) strays: u64,
    /// Flows to multicast or broadcast addresses, or from a host to itself.
    pub(crate) group_flows: u64,
    /// Resolution of a coarse clock, nanoseconds.
    pub(crate) tick: Option<u64>,
    pub(crate) keep_alives: u64,
    pub(crate) duplicates: u64,
    pub(crate) jumps: u64,
    /// Connections with a direction that was inferred from ACKs only, and its bytes.
    pub(crate) one_sided: u64,
    pub(crate) one_sided_bytes: u64,
    /// Connections with gaps that the capture never fills, and the bytes in them.
    pub(crate) gaps: u64,
    /// Connections of unknown RTT with pauses that may be their application's or the network's, their bytes, and
    /// the number of these pauses.
    pub(crate) unclear: [u64; 3],
    pub(crate) gap_bytes: u64,
    pub(crate) concurrent: u64,
    pub(crate) with_data: u64,
    /// Connections with too many turns to keep them all, their bytes of payload, and those in bursts that this made much
    /// larger; and the latter times the factor.
    pub(crate) merged: [u64; 3],
    pub(crate) growth: f64,
    /// Long UDP flows whose bursts were spread, their bytes of payload, and these times the nanoseconds by which
    /// they were moved at most.
    pub(crate) spread: [u64; 2],
    pub(crate) moved: f64,
    /// Mean queueing delay of the tapped link that was subtracted from the RTTs on the left and on the
    /// right.
    pub(crate) queues: [Dur; 2],
    /// Lines that limit the hosts left and right of the tap together, from them and to them.
    pub(crate) lines: [[Option<Limited>; 2]; 2],
    /// Losses of these lines whose cause is not told, from these hosts and to them.
    pub(crate) untold: [[Option<Untold>; 2]; 2],
    /// The delay of their queues in the round trips of these hosts, where they are never empty.
    pub(crate) delayed: [Option<Delayed>; 2],
    /// RTT of the tapped link as given, and the largest that the nearest hosts on either side leave room
    /// for, if that is less.
    pub(crate) link_rtt: Option<[Dur; 2]>,
    /// What was offered to thinning: sessions, connections, bytes from clients and from servers.
    pub(crate) offered: [f64; 4],
    /// Sessions were dropped for the model's text not to be too long.
    pub(crate) too_long: bool,
    /// Client paths and server paths.
    pub(crate) sides: [SideCounts; 2],
}

impl Counts {
    pub(crate) fn tcp(&mut self, t: &Tracked) {
        let unseen: u64 = t.halves.iter().map(|h| h.unseen).sum();
        self.one_sided += u64::from(unseen > 0);
        self.one_sided_bytes += unseen;
        let missing: u64 = t.halves.iter().map(|h| h.missing()).sum();
        self.gaps += u64::from(missing > 0);
        self.gap_bytes += missing;
        let [passed, again] = [0, 1].map(|i| t.halves.iter().map(|h| h.passed[i]).sum::<u64>());
        let taken: u64 = t.chunks.bytes().iter().sum();
        self.dropped += passed.saturating_sub(again + taken);
        if t.chunks.unclear >= SEVERAL {
            let [up, down] = t.chunks.bytes();
            let own = [1, up + down, u64::from(t.chunks.unclear)];
            for (sum, more) in self.unclear.iter_mut().zip(own) {
                *sum += more;
            }
        }
        let joined = t.joined();
        self.joined += joined.iter().map(|j| j.0).sum::<u64>();
        self.joined_unknown +=
            u64::from(joined.iter().any(|&(bytes, unknown)| bytes > 0 && unknown));
        self.keep_alives += t.halves.iter().map(|h| h.keep_alives).sum::<u64>();
        self.duplicates += t.halves.iter().map(|h| h.duplicates).sum::<u64>();
        self.jumps += t.halves.iter().map(|h| h.jumps).sum::<u64>();
        self.with_data += u64::from(!t.chunks.is_empty());
        self.concurrent += u64::from(t.chunks.concurrent());
        if t.chunks.merged() {
            self.merged(t.chunks.bytes().iter().sum(), t.chunks.larger());
        }
    }

    /// Counts a connection whose turns were merged, with its bytes in much larger bursts and these times the factor.
    pub(crate) fn merged(&mut self, bytes: u64, (larger, growth): (u64, f64)) {
        for (sum, own) in self.merged.iter_mut().zip([1, bytes, larger]) {
            *sum += own;
        }
        self.growth += growth;
    }

    /// Counts a long UDP flow whose bytes even spacing has moved, in the mean by `moved` nanoseconds at most.
    pub(crate) fn spaced(&mut self, bytes: u64, moved: u64) {
        if moved > SPREAD {
            self.spread[0] += 1;
            self.spread[1] += bytes;
            self.moved += bytes as f64 * moved as f64;
        }
    }
}
