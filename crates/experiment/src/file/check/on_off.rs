//! Impossible on/off sources.

use swell_base::{Bytes, Dur, Rate};

use super::super::{OnOff, RateSpec};
use super::Findings;

/// Packets of one direction of a run: they are drawn before it begins, 16 bytes each.
const PACKETS: f64 = 2e7;

/// Times on and off of all sources of one direction: a few seconds of drawing.
const PERIODS: f64 = 5e7;

pub(super) fn check(b: &OnOff, duration: Dur, key: &dyn Fn(&str) -> String, found: &mut Findings) {
    if b.rate == RateSpec::Fixed(Rate::default()) && b.rate_up == Rate::default() {
        found.silent(key("rate"));
    }
    found.sources(key("sources"), b.sources);
    if b.on < Dur::from_micros(1) {
        found.add(
            key("on"),
            format!("a source that is on for {} sends nothing", b.on),
            "500ms is usual; off = \"0s\" makes sources that are always on",
        );
    }
    if !(b.shape > 1.0 && b.shape <= 100.0) {
        found.add(
            key("shape"),
            format!("a Pareto law of shape {} has no mean", b.shape),
            "write more than 1 and at most 100; below 2 is self-similar",
        );
    }
    periods(b, duration, key, found);
    sizes(b, key, found);
    let mean: f64 = (b.sizes.iter()).map(|s| s.packet.0 as f64 * s.share).sum();
    let rate = b.rate.fixed().bps().max(b.rate_up.bps()) as f64;
    let packets = rate / 8.0 / mean * duration.as_secs_f64();
    if packets > PACKETS {
        found.add(
            key("rate"),
            format!("{packets:.0} packets in a run are more than {PACKETS:.0}"),
            "write a lower rate, larger packets or a shorter run",
        );
    }
    found.access(key("access"), b.access);
}

/// Refuses sources that go on and off too often to be drawn. No period is shorter than the Pareto law's
/// minimum, the mean times (shape - 1) / shape, and with a shape near 1 most are hardly longer.
fn periods(b: &OnOff, duration: Dur, key: &dyn Fn(&str) -> String, found: &mut Findings) {
    if b.off == Dur::ZERO || b.shape.is_nan() || b.shape <= 1.0 {
        return;
    }
    let both = (b.on.as_secs_f64() + b.off.as_secs_f64()) * (b.shape - 1.0) / b.shape;
    let most = 2.0 * f64::from(b.sources) * duration.as_secs_f64() / both;
    if most > PERIODS {
        found.add(
            key("on"),
            format!("{most:.2e} times on and off in a run are more than {PERIODS:.0e}"),
            "write longer `on` and `off`, fewer `sources`, a `shape` further above 1 or a shorter run",
        );
    }
}

fn sizes(b: &OnOff, key: &dyn Fn(&str) -> String, found: &mut Findings) {
    let sum: f64 = b.sizes.iter().map(|s| s.share).sum();
    if (sum - 1.0).abs() > 1e-9 {
        found.add(
            key("sizes"),
            format!("the shares sum to {sum}"),
            "they are shares of all packets: together 1",
        );
    }
    for (i, size) in b.sizes.iter().enumerate() {
        let place = key(&format!("sizes[{i}]"));
        found.probability(format!("{place}.share"), size.share);
        // 28 bytes are the IPv4 and UDP headers; 65535 is what an IP length can say.
        if !(Bytes(29)..=Bytes(65_535)).contains(&size.packet) {
            found.add(
                format!("{place}.packet"),
                format!("a packet of {} is out of range", size.packet),
                "write 29B to 65535B; 1500B fills an Ethernet frame",
            );
        }
    }
}
