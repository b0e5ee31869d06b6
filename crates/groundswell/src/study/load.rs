//! Finds the number of sessions that offer a given load.

use std::path::Path;

use swell_base::{Dur, Time};
use swell_experiment::Plan;
use swell_experiment::file::override_keys;
use swell_experiment::kinds::Data;
use swell_study::bundled::Bundled;
use swell_study::file::bench::RouterBench;
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

/// The sessions come again when the model is over.
pub(super) fn playback() -> Playback {
    Playback {
        cycle: true,
        ..Playback::default()
    }
}

/// The model with one interval and the number of sessions that offer this share of the line with this seed, link-layer
/// headers included. File sizes vary so widely that the mean says little about a single run. So the actual random numbers
/// are evaluated, served in order by a line of the given rate. Packets without payload and repeated ones are left out:
/// their number is known only from a trial ([`correction`]).
pub(super) fn at_rate(learnt: &FlowModel, bench: &RouterBench, share: f64, seed: u64) -> FlowModel {
    let mean = learnt.tcp.down.law().map_or(0.0, |l| l.mean());
    let gap = learnt.gap_law().map_or(f64::INFINITY, |l| l.mean() / 1e6);
    let each = mean / SEGMENT * FRAME * 8.0 / gap;
    let target = bench.line.bps() as f64 * share;
    let mut sessions = (target / each).round().max(1.0) as u64;
    let mut best = with_sessions(learnt, sessions, bench.duration);
    let mut distance = f64::INFINITY;
    for _ in 0..TRIES {
        let model = with_sessions(learnt, sessions, bench.duration);
        let Some(found) = offered(&model, bench, seed).filter(|x| *x > 0.0) else {
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

/// Largest deviation of a trial that is corrected. What is further off is the machine, not the load: with more sessions
/// it would only be further behind.
const CORRECTED: f64 = 0.15;

/// What a trial offered, relative to what was asked for: so much less is asked for afterwards. Acknowledgements,
/// handshakes and retransmissions are a few per cent. 1 if the trial says nothing about the load.
pub(super) fn correction(offered: f64, asked: f64) -> f64 {
    let factor = offered / asked;
    match (factor - 1.0).abs() <= CORRECTED {
        true => factor,
        false => 1.0,
    }
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
fn offered(model: &FlowModel, bench: &RouterBench, seed: u64) -> Option<f64> {
    let plan = flowlevel::Plan::new(model, &playback()).ok()?;
    let mut player = Player::new(plan, seed, Share::ALL);
    let end = Time::ZERO + bench.duration;
    let (from, to) = (bench.warmup.as_secs_f64(), bench.duration.as_secs_f64());
    let line = bench.line.bps() as f64;
    let (mut free, mut served) = (0.0f64, 0.0);
    let mut files = Vec::new();
    while let Some(at) = player.poll_at().filter(|&at| at < end) {
        while let Some(due) = player.pop(at) {
            let Due::Transfer(t) = due else { continue };
            let bits = |payload: u64| payload as f64 / SEGMENT * FRAME * 8.0;
            let [up, down] = t.limits.map(|l| l.map(|limit| limit.bps() as f64));
            // The file down begins when the one up is over. Nothing limits that one but a rate of its own.
            let start = t.at.as_secs_f64() + up.map_or(0.0, |limit| t.up as f64 * 8.0 / limit);
            files.push((start, bits(t.down), down.filter(|limit| *limit < line)));
        }
    }
    files.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (start, bits, limit) in files {
        // A file with a rate of its own goes beside the others.
        let (begin, rate) = match limit {
            Some(limit) => (start, limit),
            None => {
                let begin = free.max(start);
                free = begin + bits / line;
                (begin, line)
            }
        };
        let over = begin + bits / rate;
        served += (over.min(to) - begin.max(from)).max(0.0) * rate;
    }
    Some(served / (to - from))
}

#[cfg(test)]
mod tests {
    use swell_base::Rate;
    use swell_study::file::bench::Load;
    use swell_traffic::flowlevel::{Configurator, Options, Record, Uniflow};

    use super::*;

    /// A connection per second, by thirty host pairs in turn, with files from 1 to 500 kB.
    fn many() -> FlowModel {
        lasting(500_000_000)
    }

    /// The same files, each in so many nanoseconds.
    fn lasting(nanos: i64) -> FlowModel {
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
                    last: start + nanos,
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

    /// A run of 12 s on a line of this rate.
    fn bench(line: u64, warmup: u64) -> RouterBench {
        RouterBench {
            routes: 1,
            line: Rate::from_bps(line),
            limited: true,
            queue: 1,
            window_scaling: true,
            duration: Dur::from_secs(12),
            warmup: Dur::from_secs(warmup),
            every: Dur::from_secs(1),
            load: Load::Sessions {
                model: String::new(),
                share: 1.0,
                congestion: Vec::new(),
            },
        }
    }

    #[test]
    fn sessions_are_as_many_as_offer_the_rate() {
        let learnt = many();
        for (share, warmup) in [(0.6, 0), (0.6, 2), (0.9, 2)] {
            let bench = bench(50_000_000, warmup);
            let model = at_rate(&learnt, &bench, share, 1);
            let found = offered(&model, &bench, 1).expect("it has sessions");
            assert!(
                (found / 50e6 / share - 1.0).abs() < 0.03,
                "{share}: {found}"
            );
            assert_eq!(model.tcp.sources.hosts(), HOSTS);
        }
    }

    /// Files that took 100 s each are played at their own rates, up to 40 kbit/s: those of a few sessions are far from what
    /// a line of 50 Mbit/s could serve at once.
    #[test]
    fn files_with_rates_of_their_own_offer_no_more() {
        let bench = bench(50_000_000, 2);
        let [slow, fast] = [100_000_000_000, 500_000_000].map(|nanos| {
            let model = with_sessions(&lasting(nanos), 20, bench.duration);
            offered(&model, &bench, 1).expect("it has sessions")
        });
        assert!(
            slow < 40e3 * 1.05 * 20.0 * 12.0 && slow < fast / 2.0,
            "{slow} {fast}"
        );
        let model = at_rate(&lasting(100_000_000_000), &bench, 0.6, 1);
        let found = offered(&model, &bench, 1).expect("it has sessions");
        assert!((found / 30e6 - 1.0).abs() < 0.03, "{found}");
    }

    #[test]
    fn a_trial_corrects_what_is_asked_for_unless_the_machine_was_too_busy() {
        assert_eq!(correction(189e6, 180e6), 1.05);
        assert_eq!(correction(171e6, 180e6), 0.95);
        for off in [0.0, 125e6, 220e6, f64::NAN] {
            assert_eq!(correction(off, 180e6), 1.0);
        }
    }

    #[test]
    fn a_line_serves_no_more_than_it_can() {
        let full = at_rate(&many(), &bench(50_000_000, 2), 1.0, 1);
        // The same number of sessions on a tenth of the line rate: full, and no fuller.
        let found = offered(&full, &bench(5_000_000, 2), 1).expect("it has sessions");
        assert!((found / 5e6 - 1.0).abs() < 1e-6, "{found}");
    }
}
