//! Lines that are full all the time.
//!
//! In the queue of such a line, packets of other connections come between those of one. So where senders space their
//! packets (BBR, Linux `fq`), the packets of a host show its share of the line, which changes with the number of the others.
//! A line of its own spaces them equally, whatever the others do. A share is no capacity: on a faster link, it is larger.
//!
//! And if the queue is never empty, its shortest delay is in all round trips, as if the hosts were that far away. Nothing
//! tells how much that is, except answers that came while the line was not full.

use swell_base::{Bytes, Dur, Rate};

use super::capacity::{FEW_PAIRS, FULL, shortest};
use super::line::Line;
use crate::hosts::{Measured, Sample};
use crate::together::BUSY_PACKETS;

/// Spacings within this factor of their mode are equal to it.
const EQUAL: f64 = 1.1;
/// Least share of the spacings that are equal where a line of the host's own makes them so, and largest share of those
/// that are shorter.
const MOSTLY: f64 = 0.5;
const SELDOM: f64 = 0.1;
/// Least median of the delays by which packets wait in a queue, and least delay worth a warning, in packets.
const QUEUED: u64 = 4;
/// Least share of the packets that a full queue loses.
const LOSES: f64 = 0.01;
/// Answers that are later than the shortest by at most this number of packets are as short.
const SHORT: u64 = 2;
/// Minimum number of answers for their variation to be known.
const ANSWERS: usize = 5;

/// Kinds of samples that are round trips.
const TIMES: [Sample; 5] = [
    Sample::Handshake,
    Sample::Data,
    Sample::Bulk,
    Sample::Sending,
    Sample::Echo,
];

/// How long so many full packets take, microseconds.
fn packets(rate: Rate, n: u64) -> u32 {
    let time = rate.transmit(Bytes(n * FULL.0.0)).as_nanos() / 1_000;
    u32::try_from(time).unwrap_or(u32::MAX)
}

/// Whether packets from these hosts, or to them, wait for a line of this rate: answers to most hosts are late, or packets
/// are lost, as in a queue that is so full that all are equally late.
pub(super) fn waits(hosts: &[&Measured], way: usize, rate: Rate) -> bool {
    let sums = hosts.iter().fold([0u64; 2], |sums, m| {
        let own = [m.sent, m.received][way];
        [0, 1].map(|k| sums[k] + u64::from(own[k]))
    });
    if sums[1] as f64 >= LOSES * sums[0] as f64 && sums[1] > 0 {
        return true;
    }
    let least = packets(rate, QUEUED);
    let waited = |m: &Measured| {
        let shortest = shortest(m)?;
        let known = TIMES.into_iter().filter_map(|kind| m.get(kind));
        let known = known.filter(|times| times.kept.len() >= ANSWERS);
        // Less than half of the answers are late for other reasons, such as delayed acknowledgements.
        let typical = known
            .filter_map(|times| times.quantile(0.5, |v, _| v))
            .max()?;
        Some(typical - shortest >= least)
    };
    let known: Vec<bool> = hosts.iter().filter_map(|m| waited(m)).collect();
    let late = known.iter().filter(|own| **own).count();
    late > 0 && 2 * late >= known.len()
}

/// The capacity of a host: that of the full line, if its packets show no more than a share of this.
pub(super) fn unshared(m: &Measured, kind: Sample, own: Rate, line: Option<&Line<'_>>) -> Rate {
    let Some(line) = line.filter(|line| !line.is(own)) else {
        return own;
    };
    let kbit = u32::try_from(own.bps() / 1000).unwrap_or(u32::MAX);
    let equal = match m.get(kind).filter(|seen| seen.seen >= FEW_PAIRS) {
        Some(seen) => {
            let faster = seen
                .kept
                .iter()
                .filter(|k| f64::from(k.0) > EQUAL * f64::from(kbit));
            let few = faster.count() as f64 <= SELDOM * seen.kept.len() as f64;
            few && seen.near(kbit, EQUAL, 0) >= MOSTLY
        }
        None => m.steady(),
    };
    if equal { own } else { line.rate }
}

/// Round trips that may hold the delay of a queue which is never empty, for the warnings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delayed {
    pub(crate) rate: Rate,
    /// The most that the delay may be.
    pub(crate) most: Dur,
    /// Number of hosts whose shortest answers all came while the line was full, and of those with any.
    pub(crate) hosts: [usize; 2],
}

/// Whether one of a host's shortest answers came while this line was not full.
fn told(m: &Measured, line: &Line<'_>) -> bool {
    let most = shortest(m).map_or(0, |least| least.saturating_add(packets(line.rate, SHORT)));
    let known = TIMES.into_iter().filter_map(|kind| m.get(kind));
    let mut short = known
        .flat_map(|times| times.kept.iter())
        .filter(|k| k.0 <= most);
    short.any(|k| BUSY_PACKETS.iter().any(|n| !line.busy(*n, k.1)))
}

/// What the queue of a full line may have added to the round trips of the hosts beyond it.
pub(super) fn delayed<'m>(
    lines: &[Option<Line<'_>>; 2],
    hosts: impl Iterator<Item = (Dur, &'m Measured)>,
) -> Option<Delayed> {
    let line = lines.iter().flatten().find(|line| line.always)?;
    let (mut all, mut untold) = (0, Vec::new());
    for (rtt, m) in hosts {
        all += 1;
        if !told(m, line) {
            untold.push(rtt);
        }
    }
    let most = *untold.iter().min()?;
    let long = most >= line.rate.transmit(Bytes(QUEUED * FULL.0.0));
    (long && 2 * untold.len() >= all).then_some(Delayed {
        rate: line.rate,
        most,
        hosts: [untold.len(), all],
    })
}
