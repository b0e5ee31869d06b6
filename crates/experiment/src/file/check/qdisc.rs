//! Impossible queueing disciplines.

use swell_base::{Bytes, Dur};

use swell_base::{QueueLimit, Rate};

use crate::file::findings::Findings;
use crate::file::qdisc::{Drr, DrrClasses, Priority, Qdisc, Red};
use swell_path::{PieConfig, RedAdaptive, RedWeight};

/// Maximum value of 16 bits.
const MOST: u32 = 65_535;
/// Minimum update interval of a controller. A shorter one would dominate the cost of a run.
const SHORTEST_UPDATE: Dur = Dur::from_micros(100);
/// Maximum quantum of a queue, larger than any packet.
const LARGEST_QUANTUM: Bytes = Bytes(1 << 30);

/// Size of a full packet on an Ethernet.
const FULL: Bytes = Bytes(1500);

/// Rejects a limit with the key `at` below one full packet, where `qdisc` also counts packets that find the link idle:
/// it would drop each of them. `rate` is that of the link, if it is known.
pub(super) fn room(
    at: String,
    qdisc: &Qdisc,
    limit: QueueLimit,
    rate: Option<Rate>,
    found: &mut Findings,
) {
    let sees_all = match qdisc {
        Qdisc::Fifo | Qdisc::Priority(_) | Qdisc::Drr(_) => false,
        Qdisc::Red(_) | Qdisc::Codel(_) | Qdisc::FqCodel(_) | Qdisc::Pie(_) => true,
    };
    let bytes = match limit {
        QueueLimit::Bytes(bytes) => Some(bytes),
        QueueLimit::Time(span) => rate.map(|rate| rate.carried_in(span)),
        // A limit in BDP is never below a full packet.
        QueueLimit::Packets(_) | QueueLimit::Bdp(_) => None,
    };
    if let Some(bytes) = bytes
        && sees_all
        && bytes < FULL
        // An empty queue has a complaint of its own.
        && limit != QueueLimit::Bytes(Bytes(0))
        && limit != QueueLimit::Time(Dur::ZERO)
    {
        let name = qdisc.label();
        found.add(
            at,
            format!(
                "a queue of {limit} holds {bytes}, and {name} queues packets on an idle link, too: each of {FULL} would be dropped"
            ),
            "write 1pkt or 1500B at least",
        );
    }
}

/// Rejects impossible values of `qdisc`, which has the key `at`.
pub(super) fn check(at: &str, qdisc: &Qdisc, found: &mut Findings) {
    let key = |name: &str| format!("{at}.{name}");
    match qdisc {
        Qdisc::Fifo => {}
        Qdisc::Red(r) => red(&key, r, found),
        Qdisc::Priority(p) => priority(&key, p, found),
        Qdisc::Drr(d) => drr(&key, d, found),
        Qdisc::Codel(c) => {
            control(&key, c.target, c.interval, found);
            packet(key("mtu"), c.mtu, found);
        }
        Qdisc::FqCodel(f) => {
            control(&key, f.target, f.interval, found);
            packet(key("mtu"), f.mtu, found);
            number(key("flows"), "queues", f.flows, found);
            number(key("drop_batch"), "packets", f.drop_batch, found);
            quantum(key("quantum"), f.quantum, found);
        }
        Qdisc::Pie(p) => pie(&key, p, found),
    }
}

fn red(key: &dyn Fn(&str) -> String, r: &Red, found: &mut Findings) {
    match (r.min, r.max) {
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => {
            let (here, other) = if r.min.is_some() {
                ("min", "max")
            } else {
                ("max", "min")
            };
            found.add(
                key(here),
                format!("`{here}` without `{other}`"),
                "give both thresholds, or `target_delay`",
            );
        }
        (Some(min), Some(max)) => {
            found.limit(key("max"), max);
            if std::mem::discriminant(&min) == std::mem::discriminant(&max) && above(min, max) {
                found.add(
                    key("min"),
                    format!("the lower threshold ({min}) is above the upper one ({max})"),
                    "",
                );
            }
            if r.target_delay.is_some() {
                found.add(
                    key("target_delay"),
                    "`target_delay` and `min` both set the thresholds",
                    "give one of the two",
                );
            }
        }
    }
    if r.target_delay == Some(Dur::ZERO) {
        found.add(key("target_delay"), "no delay is no target", "5ms is usual");
    }
    for (name, p) in [("max_p", r.max_p), ("mark_below", r.mark_below)] {
        if let Some(p) = p {
            found.probability(key(name), p);
        }
    }
    if let Some(RedWeight::Fixed(w)) = r.weight
        && !(w > 0.0 && w <= 1.0)
    {
        found.add(
            key("weight"),
            format!("{w} is no weight"),
            "write a number above 0 and up to 1, \"one-second\" or \"ten-round-trips\"",
        );
    }
    if let Some(size) = r.mean_packet {
        packet(key("mean_packet"), size, found);
    }
    if let Some(a) = r.adaptive {
        adaptation(&|name| key(&format!("adaptive.{name}")), a, found);
    }
}

/// Whether a limit is above another of the same unit.
fn above(a: swell_base::QueueLimit, b: swell_base::QueueLimit) -> bool {
    use swell_base::QueueLimit::{Bdp, Bytes, Packets, Time};
    match (a, b) {
        (Packets(a), Packets(b)) => a > b,
        (Bytes(a), Bytes(b)) => a > b,
        (Time(a), Time(b)) => a > b,
        (Bdp(a), Bdp(b)) => a > b,
        _ => false,
    }
}

fn adaptation(key: &dyn Fn(&str) -> String, a: RedAdaptive, found: &mut Findings) {
    let floor = a.floor.unwrap_or_default();
    if a.interval == Dur::ZERO {
        found.add(
            key("interval"),
            "an interval of no length",
            "500ms is usual",
        );
    }
    for (name, p) in [
        ("increase", a.increase),
        ("decrease", a.decrease),
        ("ceiling", a.ceiling),
        ("floor", floor),
    ] {
        found.probability(key(name), p);
    }
    if floor > a.ceiling {
        found.add(
            key("floor"),
            format!("the floor ({}) is above the ceiling ({})", floor, a.ceiling),
            "",
        );
    }
}

fn priority(key: &dyn Fn(&str) -> String, p: &Priority, found: &mut Findings) {
    number(key("bands"), "bands", p.bands, found);
    for (name, band) in [("foreground", p.foreground), ("background", p.background)] {
        if band >= p.bands {
            found.add(
                key(name),
                format!("there is no band {band}"),
                "bands are counted from 0; `bands` says how many there are",
            );
        }
    }
    for (i, &limit) in p.limits.iter().enumerate() {
        found.limit(key(&format!("limits[{i}]")), limit);
    }
    if p.limits.len() > p.bands as usize {
        found.add(
            key("limits"),
            format!("{} limits for {} bands", p.limits.len(), p.bands),
            "write one for each band, or fewer",
        );
    }
}

fn drr(key: &dyn Fn(&str) -> String, d: &Drr, found: &mut Findings) {
    number(key("queues"), "queues", d.queues, found);
    quantum(key("quantum"), d.quantum, found);
    for (i, &q) in d.quanta.iter().enumerate() {
        quantum(key(&format!("quanta[{i}]")), q, found);
    }
    let queues = match d.by {
        DrrClasses::Flow => d.queues,
        DrrClasses::Traffic => 2,
    };
    if d.quanta.len() > queues as usize {
        found.add(
            key("quanta"),
            format!("{} quanta for {queues} queues", d.quanta.len()),
            "write one for each queue, or fewer",
        );
    }
}

fn pie(key: &dyn Fn(&str) -> String, p: &PieConfig, found: &mut Findings) {
    if p.update < SHORTEST_UPDATE {
        found.add(
            key("update"),
            format!(
                "a probability computed every {} leaves no time for packets",
                p.update
            ),
            "write 100us or more; 15ms is usual",
        );
    }
    found.factor(key("alpha"), p.alpha, true);
    found.factor(key("beta"), p.beta, true);
    found.probability(key("mark_below"), p.mark_below);
    packet(key("mean_packet"), p.mean_packet, found);
}

fn control(key: &dyn Fn(&str) -> String, target: Dur, interval: Dur, found: &mut Findings) {
    if interval == Dur::ZERO {
        found.add(
            key("interval"),
            "an interval of no length",
            "100ms is usual",
        );
    } else if target > interval {
        found.add(
            key("target"),
            format!("a target of {target} is above the interval ({interval})"),
            "RFC 8289 recommends 5 to 10 % of it",
        );
    }
}

fn number(key: String, what: &str, n: u32, found: &mut Findings) {
    let message = format!("{n} {what} are out of range");
    found.within(key, 1..=MOST, n, message, "write 1 to 65535");
}

fn packet(key: String, size: Bytes, found: &mut Findings) {
    let range = Bytes(1)..=Bytes(u64::from(MOST));
    let message = format!("a packet of {size} is out of range");
    found.within(key, range, size, message, "write 1B to 65535B");
}

fn quantum(key: String, size: Bytes, found: &mut Findings) {
    let message = format!("a quantum of {size} is out of range");
    found.within(
        key,
        Bytes(1)..=LARGEST_QUANTUM,
        size,
        message,
        "write 1B to 1GiB",
    );
}
