//! Finds the number of sessions that offer a given load.

use std::path::Path;

use swell_base::{Dur, Rate, Time};
use swell_experiment::Plan;
use swell_experiment::file::override_keys;
use swell_experiment::kinds::Data;
use swell_study::bundled::Bundled;
use swell_traffic::flowlevel::{
    self, Due, FlowModel, Interval, Playback, Player, Popularity, Share,
};

/// Number of addresses of the sink, equally popular: a class B network, as in the paper.
const HOSTS: u64 = 1 << 16;
/// Size of a full packet with its link-layer header, and its payload with TCP timestamps (RFC 7323).
const FRAME: f64 = 1_514.0;
const SEGMENT: f64 = 1_448.0;
/// Maximum number of iterations of the search.
const TRIES: usize = 12;

/// Learns sessions from flow records of the users of `model`, as the Harpoon study does. The clients are spread over
/// all addresses behind the router and equally popular. [`at_rate`] sets the number of sessions.
///
/// # Errors
/// If there is no such model, or the records hold nothing to model.
pub(super) fn learnt(model: &str) -> Result<FlowModel, String> {
    let text = Bundled::named("harpoon").and_then(|study| {
        let mut files = study.files.iter();
        files.find(|f| f.0 == "experiment.toml").map(|f| f.1)
    });
    let text = text.ok_or("the Harpoon study is not there")?;
    let text = override_keys(text, &[format!("background.original.model={model}")])?;
    let plan = Plan::resolve(&text, "harpoon", Path::new("")).map_err(|e| e.to_string())?;
    match plan.inputs.get("copy").map(|input| &input.data) {
        Some(Data::Flows(copy)) => Ok(everywhere((**copy).clone())),
        _ => Err("its copy has no flow-level model".into()),
    }
}

/// The model with [`HOSTS`] clients.
fn everywhere(mut model: FlowModel) -> FlowModel {
    model.udp.clear();
    model.start = 0;
    model.tcp.sources = Popularity {
        ranks: vec![(1, HOSTS)],
    };
    model
}

/// The load that sessions should offer, and the interval in which it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Offered rate on the line to the clients, link-layer headers included.
    pub rate: Rate,
    /// Rate of that line.
    pub line: Rate,
    /// Length of the run.
    pub span: Dur,
    /// Warm-up at its start, which is not measured.
    pub settle: Dur,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The model with one interval and the number of sessions that offer the wanted load with this seed. File sizes vary so
/// widely that the mean says little about a single run. So the actual random numbers are evaluated, served in order by
/// a line of the given rate.
pub(super) fn at_rate(learnt: &FlowModel, wanted: &Wanted) -> FlowModel {
    let mean = learnt.tcp.down.law().map_or(0.0, |l| l.mean());
    let gap = learnt.gap_law().map_or(f64::INFINITY, |l| l.mean() / 1e6);
    let each = mean / SEGMENT * FRAME * 8.0 / gap;
    let target = wanted.rate.bps() as f64;
    let mut sessions = (target / each).round().max(1.0) as u64;
    let mut best = with_sessions(learnt, sessions, wanted.span);
    let mut distance = f64::INFINITY;
    for _ in 0..TRIES {
        let model = with_sessions(learnt, sessions, wanted.span);
        let Some(found) = offered(&model, wanted).filter(|x| *x > 0.0) else {
            break;
        };
        if (found - target).abs() < distance {
            distance = (found - target).abs();
            best = model;
        }
        // Half the correction on a log scale: a single further session may add a large file.
        let factor = (target / found).sqrt();
        let next = ((sessions as f64 * factor).round().max(1.0)) as u64;
        sessions = if next == sessions { sessions + 1 } else { next };
    }
    best
}

fn with_sessions(learnt: &FlowModel, sessions: u64, span: Dur) -> FlowModel {
    let mut model = learnt.clone();
    // Sessions start uniformly over an interval, so the run is a single interval.
    model.interval = span;
    model.tcp.intervals = vec![Interval {
        connections: 1,
        bytes: 1,
        seen: sessions,
        sessions,
    }];
    model.span = [0, i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)];
    model
}

/// Rate in bits per second at which the line would serve the files due, over the measured interval.
fn offered(model: &FlowModel, wanted: &Wanted) -> Option<f64> {
    let playback = Playback {
        cycle: true,
        ..Playback::default()
    };
    let plan = flowlevel::Plan::new(model, &playback).ok()?;
    let mut player = Player::new(plan, wanted.seed, Share::ALL);
    let end = Time::ZERO + wanted.span;
    let (from, to) = (wanted.settle.as_secs_f64(), wanted.span.as_secs_f64());
    let line = wanted.line.bps() as f64;
    let (mut free, mut served) = (0.0f64, 0.0);
    while let Some(at) = player.poll_at().filter(|&at| at < end) {
        while let Some(due) = player.pop(at) {
            let Due::Transfer(t) = due else { continue };
            let bits = t.down as f64 / SEGMENT * FRAME * 8.0;
            let begin = free.max(t.at.as_secs_f64());
            free = begin + bits / line;
            served += (free.min(to) - begin.max(from)).max(0.0) * line;
        }
    }
    Some(served / (to - from))
}

#[cfg(test)]
mod tests {
    use swell_traffic::flowlevel::{Configurator, Options, Record, Uniflow};

    use super::*;

    /// A connection per second, by thirty host pairs in turn, with files from 1 to 500 kB.
    fn many() -> FlowModel {
        let mut configurator = Configurator::new(Options::default());
        for i in 0..3_000i64 {
            // File sizes from 1 to 500 kB.
            let payload = 1_000 * (1 + (i as u64 * 7_919) % 500);
            let packets = payload.div_ceil(1_448) + 2;
            let start = i * 1_000_000_000;
            configurator.add(&Record {
                source: 1,
                destination: 100 + i as u128 % 30,
                source_port: 80,
                destination_port: 2_000 + i as u16,
                protocol: 6,
                header: 52,
                forward: Uniflow {
                    packets,
                    bytes: payload + 52 * packets,
                    flags: Some(0x1b),
                    first: start,
                    last: start + 500_000_000,
                },
                reverse: None,
                continues: false,
                sampling: 1.0,
            });
        }
        let model = configurator
            .finish("many", Default::default())
            .expect("it holds sessions");
        everywhere(model)
    }

    #[test]
    fn sessions_are_as_many_as_offer_the_rate() {
        let learnt = many();
        for (percent, settle) in [(60, 0), (60, 2), (90, 2)] {
            let wanted = Wanted {
                rate: Rate::from_bps(percent * 500_000),
                line: Rate::from_bps(50_000_000),
                span: Dur::from_secs(12),
                settle: Dur::from_secs(settle),
                seed: 1,
            };
            let model = at_rate(&learnt, &wanted);
            let found = offered(&model, &wanted).expect("it has sessions");
            let target = wanted.rate.bps() as f64;
            assert!((found / target - 1.0).abs() < 0.03, "{percent}: {found}");
            assert_eq!(model.tcp.sources.hosts(), HOSTS);
        }
    }

    #[test]
    fn a_line_serves_no_more_than_it_can() {
        let wanted = Wanted {
            rate: Rate::from_bps(50_000_000),
            line: Rate::from_bps(50_000_000),
            span: Dur::from_secs(12),
            settle: Dur::from_secs(2),
            seed: 1,
        };
        let full = at_rate(&many(), &wanted);
        // The same number of sessions on a tenth of the line rate: full, and no fuller.
        let narrow = Wanted {
            line: Rate::from_bps(5_000_000),
            ..wanted
        };
        let found = offered(&full, &narrow).expect("it has sessions");
        assert!((found / 5e6 - 1.0).abs() < 1e-6, "{found}");
    }
}
