//! Disciplines in files: what each one says about its keys, and checks that several share.

use swell_base::{Bytes, Dur, Findings, QueueLimit, Rate, Stream};

use super::{Outlet, Qdisc};

/// The keys of a discipline in a file. The list `disciplines!` joins them with the discipline on a link.
pub(super) trait Keys {
    /// The discipline with every value known. It may be the keys themselves.
    type Config;
    /// Its queue on a link.
    type Queue: Qdisc;

    /// Its name in figures and reports.
    const LABEL: &'static str;

    /// Whether the discipline must also see packets that find the serializer idle and the queue empty, because they
    /// affect its averages, first-packet-above times or drop probabilities. Other disciplines keep no state across an
    /// empty queue, and links spare them these packets.
    const SEES_ALL: bool = true;

    /// Rejects impossible values. `at` is the key of the discipline.
    fn check(&self, at: &str, found: &mut Findings);

    /// The limits among its keys, which may be in BDP.
    fn limits_mut(&mut self) -> Vec<&mut QueueLimit> {
        Vec::new()
    }

    /// The discipline on a link of `rate`. Limits in BDP have already been resolved, and the check has bounded all
    /// values.
    fn config(&self, rate: Rate) -> Self::Config;

    /// The queue of the link `outlet`, drawing from `rng`.
    fn queue(config: &Self::Config, outlet: &Outlet, rng: Stream) -> Self::Queue;
}

/// Maximum value of 16 bits.
const MOST: u32 = 65_535;
/// Maximum quantum of a queue, larger than any packet.
const LARGEST_QUANTUM: Bytes = Bytes(1 << 30);

/// Requires 1 to 65535 of `what`.
pub(super) fn number(key: String, what: &str, n: u32, found: &mut Findings) {
    let message = format!("{n} {what} are out of range");
    found.within(key, 1..=MOST, n, message, "write 1 to 65535");
}

/// Requires a possible size of a packet.
pub(super) fn packet(key: String, size: Bytes, found: &mut Findings) {
    let range = Bytes(1)..=Bytes(u64::from(MOST));
    let message = format!("a packet of {size} is out of range");
    found.within(key, range, size, message, "write 1B to 65535B");
}

/// Requires a possible quantum of a queue.
pub(super) fn quantum(key: String, size: Bytes, found: &mut Findings) {
    let message = format!("a quantum of {size} is out of range");
    found.within(
        key,
        Bytes(1)..=LARGEST_QUANTUM,
        size,
        message,
        "write 1B to 1GiB",
    );
}

/// Requires an interval of CoDel, and a target within it.
pub(super) fn control(at: &str, target: Dur, interval: Dur, found: &mut Findings) {
    if interval == Dur::ZERO {
        found.add(
            format!("{at}.interval"),
            "an interval of no length",
            "100ms is usual",
        );
    } else if target > interval {
        found.add(
            format!("{at}.target"),
            format!("a target of {target} is above the interval ({interval})"),
            "RFC 8289 recommends 5 to 10 % of it",
        );
    }
}

/// Requires an upper threshold `max` that is no empty queue, and a lower one `min` that is not above it.
pub(super) fn thresholds(
    key: &dyn Fn(&str) -> String,
    min: QueueLimit,
    max: QueueLimit,
    found: &mut Findings,
) {
    found.limit(key("max"), max);
    if above(min, max) {
        found.add(
            key("min"),
            format!("the lower threshold ({min}) is above the upper one ({max})"),
            "",
        );
    }
}

/// Whether a limit is above another of the same unit; false for different units.
fn above(a: QueueLimit, b: QueueLimit) -> bool {
    use QueueLimit::{Bdp, Bytes, Packets, Time};
    match (a, b) {
        (Packets(a), Packets(b)) => a > b,
        (Bytes(a), Bytes(b)) => a > b,
        (Time(a), Time(b)) => a > b,
        (Bdp(a), Bdp(b)) => a > b,
        _ => false,
    }
}

/// A threshold in packets of `mean` bytes, on a link of `rate`.
pub(super) fn packets(limit: QueueLimit, rate: Rate, mean: f64) -> f64 {
    match limit {
        QueueLimit::Packets(n) => n as f64,
        QueueLimit::Bytes(b) => b.0 as f64 / mean,
        QueueLimit::Time(t) => rate.carried_in(t).0 as f64 / mean,
        // Unreachable: the plan has converted these to bytes, because the RTT is not known here.
        QueueLimit::Bdp(_) => f64::INFINITY,
    }
}

// The following conversions cannot saturate, because the check of the file has bounded the values.

/// A checked number in 16 bits.
pub(super) fn count(n: u32) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// A checked size of a packet in 16 bits.
pub(super) fn small(b: Bytes) -> u16 {
    u16::try_from(b.0).unwrap_or(u16::MAX)
}

/// A checked quantum in 32 bits.
pub(super) fn large(b: Bytes) -> u32 {
    u32::try_from(b.0).unwrap_or(u32::MAX)
}
