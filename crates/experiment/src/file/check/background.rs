//! Impossible backgrounds.

use std::ops::RangeInclusive;

use swell_base::Rate;

use super::super::read::{suggest, unknown_name};
use super::super::{Background, Delays, File, Greedy, Pairing, RateSpec};
use super::{Findings, on_off, packets};

/// Connections of one greedy background.
const CONNECTIONS: RangeInclusive<u32> = 1..=100_000;
/// Beyond it a trace is another trace.
const STRETCH: RangeInclusive<f64> = 0.001..=1000.0;

pub(super) fn backgrounds(file: &File, found: &mut Findings) {
    let names: Vec<&str> = file.background.iter().map(Background::name).collect();
    for (i, background) in file.background.iter().enumerate() {
        let key = |name: &str| format!("background[{i}].{name}");
        match background {
            Background::None(_) => {}
            Background::Learnt(b) => {
                if silent(b.rate.as_ref()) {
                    found.add(
                        key("rate"),
                        "a rate of 0 is no background",
                        "use kind = \"none\"",
                    );
                }
                if b.rate.is_some() && b.sessions.is_some() {
                    found.add(
                        key("sessions"),
                        "`rate` and `sessions` both set the load",
                        "give one of the two",
                    );
                }
                if let Some(k) = b.sessions {
                    found.factor(key("sessions"), k, false);
                }
                found.factor(key("response"), b.response, false);
                found.factor(key("request"), b.request, false);
                found.factor(key("think"), b.think, true);
                found.access(key("access"), b.access);
                found.tcp(&key("tcp"), &b.tcp);
            }
            Background::Sessions(b) => {
                if silent(b.rate.as_ref()) {
                    found.add(
                        key("rate"),
                        "a rate of 0 is no background",
                        "use kind = \"none\"",
                    );
                }
                if b.rate.is_some() && b.sessions.is_some() {
                    found.add(
                        key("sessions"),
                        "`rate` and `sessions` both set the load",
                        "give one of the two",
                    );
                }
                if let Some(k) = b.sessions {
                    found.factor(key("sessions"), k, false);
                }
                found.factor(key("compression"), b.compression, false);
                found.factor(key("sizes"), b.sizes, false);
                found.factor(key("gaps"), b.gaps, false);
                found.tcp(&key("tcp"), &b.tcp);
            }
            Background::Poisson(b) | Background::Cbr(b) => {
                packets(b, &key, found);
            }
            Background::Replay(b) => {
                if silent(b.rate.as_ref()) {
                    found.add(
                        key("rate"),
                        "a rate of 0 is no background",
                        "use kind = \"none\"",
                    );
                }
                if b.rate.is_some() && b.stretch.is_some() {
                    found.add(
                        key("stretch"),
                        "`rate` and `stretch` both set the load",
                        "give one of the two",
                    );
                }
                if let Some(k) = b.stretch {
                    found.within(
                        key("stretch"),
                        STRETCH,
                        k,
                        format!("a stretch of {k} is out of range"),
                        "write 0.001 to 1000; 2 is half as fast",
                    );
                }
                found.access(key("access"), b.access);
                found.tcp(&key("tcp"), &b.tcp);
            }
            Background::Greedy(b) => greedy(b, file, &key, found),
            Background::OnOff(b) => on_off::check(b, file.run.duration, &key, found),
        }
        if background.load_said() && background.rate().is_none() {
            found.add(
                key("load"),
                "`load` says what `rate` is the rate of, and there is no rate",
                "write a rate, or leave `load` out",
            );
        }
        if let Background::Poisson(b) | Background::Cbr(b) = background
            && b.pairing == Pairing::PerSeed
            && background.matches().is_none()
        {
            found.add(
                key("match"),
                "there is no other background whose rates could be matched",
                "write rate = \"match:NAME\", or leave `match` out",
            );
        }
        if let Some(target) = background.matches() {
            matching(file, &names, background, target, key("rate"), found);
        }
    }
}

fn silent(rate: Option<&RateSpec>) -> bool {
    matches!(rate, Some(RateSpec::Fixed(rate)) if *rate == Rate::default())
}

/// Endless connections, of a background or a foreground.
pub(super) fn greedy(b: &Greedy, file: &File, key: &dyn Fn(&str) -> String, found: &mut Findings) {
    found.within(
        key("connections"),
        CONNECTIONS,
        b.connections,
        format!("{} connections are out of range", b.connections),
        "write 1 to 100000",
    );
    if b.start >= file.run.duration {
        found.add(
            key("start"),
            format!("it begins at {}, when the run is over", b.start),
            "write less than `run.duration`",
        );
    }
    match &b.delay {
        Delays::Same(_) => {}
        Delays::InTurn(list) if list.is_empty() => {
            found.add(key("delay"), "a list of no delays", "write at least one");
        }
        Delays::InTurn(_) => {}
        Delays::Uniform { from, to } if from > to => {
            found.add(
                key("delay"),
                format!("there is nothing from {from} to {to}"),
                "write the shorter one first",
            );
        }
        Delays::Uniform { .. } => {}
    }
    found.access(key("access"), b.access);
    found.tcp(&key("tcp"), &b.tcp);
}

/// Whether `background` can take the measured rates of `target`.
fn matching(
    file: &File,
    names: &[&str],
    background: &Background,
    target: &str,
    key: String,
    found: &mut Findings,
) {
    let others: Vec<&str> = file
        .background
        .iter()
        .filter(|b| b.name() != background.name() && b.has_rate())
        .map(Background::name)
        .collect();
    let hint = suggest(target, &others, "backgrounds with a rate of their own");
    let Some(other) = file.background.iter().find(|b| b.name() == target) else {
        let (message, _) = unknown_name("background", target, names);
        return found.add(key, message, &hint);
    };
    if target == background.name() {
        found.add(key, format!("`{target}` matches itself"), &hint);
    } else if let Some(next) = other.matches() {
        found.add(
            key,
            format!("`{target}` itself matches `{next}`"),
            &format!("write match:{next}"),
        );
    } else if other.kind() == "greedy" {
        found.add(
            key,
            format!("`{target}` takes all there is: it has no rate to match"),
            &hint,
        );
    } else if other.kind() == "none" {
        found.add(
            key,
            format!("`{target}` is no traffic: there is no rate to match"),
            &hint,
        );
    }
}
