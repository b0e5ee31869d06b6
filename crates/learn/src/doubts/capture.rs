//! Warnings about the capture itself, for models and for replays.

use swell_base::{Code, Dur, Warning};

use crate::clock::Oddities;

/// Longer silences are reported, nanoseconds.
const LONG_SILENCE: u64 = 600_000_000_000;

pub(super) fn clock(odd: &Oddities, w: &mut Vec<Warning>) {
    let span = |ns: u64| Dur::from_nanos(ns / 1000 * 1000);
    if odd.silence_most > LONG_SILENCE {
        w.push(Warning::warning(
            Code::GapInTrace,
            format!(
                "no packet for {:.0} s on end, a gap between traces or in one: it counts as time without load",
                odd.silence_most as f64 / 1e9
            ),
        ));
    }
    if odd.backward > 0 {
        w.push(Warning::warning(
            Code::TimeStepsBack,
            format!(
                "{} packets are older than one before them, by up to {}: they count at the later time",
                odd.backward,
                span(odd.backward_most)
            ),
        ));
    }
    leaps(odd, w);
}

/// Warns of leaps of the clock that were taken out.
pub(crate) fn leaps(odd: &Oddities, w: &mut Vec<Warning>) {
    let span = |ns: u64| Dur::from_nanos(ns / 1000 * 1000);
    if odd.far_off > 0 {
        w.push(Warning::warning(
            Code::FarOffTimes,
            format!(
                "{} packets are stamped up to {} ahead of those around them: they count at the time of \
                 the packet before",
                odd.far_off,
                span(odd.far_off_most)
            ),
        ));
    }
    if odd.set > 0 {
        w.push(Warning::warning(
            Code::ClockSet,
            format!(
                "the time of the capture leaps {} times for good, by up to {}: the clock was set, or \
                 captures were joined; the leaps are taken out, and ten minutes are left of each ahead",
                odd.set,
                span(odd.set_most)
            ),
        ));
    }
}

/// Resolution of a clock above which nothing is left of round trips, nanoseconds.
const USELESS: u64 = 100_000_000;

/// Warns of a clock that is too coarse for round trips and pauses.
pub(crate) fn coarse(tick: Option<u64>) -> Option<Warning> {
    let tick = tick?;
    let text = format!(
        "stamps are whole multiples of {}: shorter round trips and pauses are lost, and packets of one tick are played \
         at once. Record with microseconds or finer",
        Dur::from_nanos(tick)
    );
    Some(match tick >= USELESS {
        true => Warning::warning(Code::CoarseClock, text),
        false => Warning::note(Code::CoarseClock, text),
    })
}

/// Warns of packets that a capture holds twice.
pub(crate) fn repeated(packets: u64) -> Option<Warning> {
    (packets > 0).then(|| {
        Warning::warning(
            Code::RepeatedCapture,
            format!(
                "{packets} packets are in the file twice, with the same stamps: captures were joined that overlap; \
                 they count once"
            ),
        )
    })
}

/// Share of the bytes in super-packets, in per cent, above which they are no detail.
const MUCH_JOINED: f64 = 5.0;

/// Warns of packets that hold several segments: `share` per cent of the bytes. `then` tells what becomes of them.
pub(crate) fn super_packets(share: f64, then: &str) -> Option<Warning> {
    let text = format!(
        "{share:.1} % of the bytes are in packets larger than the link carries: a host recorded its own traffic, before \
         its network card divided it into segments, or after it joined them (TSO, GRO). {then}. Switch offloads off \
         while you capture (`ethtool -K DEVICE tso off gso off gro off`), or capture elsewhere"
    );
    (share > 0.0).then(|| match share > MUCH_JOINED {
        true => Warning::warning(Code::SuperPackets, text),
        false => Warning::note(Code::SuperPackets, text),
    })
}

/// Warns that neither the user nor the capture says which side hosts are on.
pub(crate) fn sides_voted((groups, hosts): (u64, u64)) -> Option<Warning> {
    let are = match groups {
        1 => " are".to_owned(),
        n => format!(" in {n} groups are"),
    };
    (groups > 0).then(|| {
        Warning::warning(
            Code::SidesVoted,
            format!(
                "the capture does not say on which side of the tap {hosts} hosts{are}: those that open connections are \
                 taken to be inside, and where nobody does, it is a guess. Name the networks inside (`--inside`), or \
                 loads of the two directions may be exchanged"
            ),
        )
    })
}

/// Warns of data that passed in connections and are not in the model: `share` per cent of the bytes.
pub(super) fn left_out(share: f64, much: f64) -> Option<Warning> {
    (share > much).then(|| {
        Warning::warning(
            Code::LoadLeftOut,
            format!(
                "at least {share:.0} % of the bytes are data of TCP that come too late in the capture for their place in a \
                 connection, and are not in the model: its traffic is lighter than the trace by as much. Put the packets \
                 in the order of their times (`reordercap`), or capture with one clock. A replay of the trace plays all \
                 of it"
            ),
        )
    })
}
