//! Offered loads of bundled models, without a network: over many seeds, at the beginning of runs and later. Also compares
//! the closed form of a single session with the simulator.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use swell_base::{Direction, Dur, Packet, QueueLimit, Rate, Tag, Time};
use swell_experiment::{Plan, bundled, stage};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_traffic::{Knobs, Model, Network, Schedule, Start};
use swell_workload::Structural;
use swell_world::{Parties, Tap, World};

/// Round trip of the bottleneck of these tests.
const RTT: Dur = Dur::from_millis(20);
const LINK: Rate = Rate::from_bps(1_000_000_000);

fn network() -> Network {
    Network {
        rtt: RTT,
        rates: [Some(LINK); 2],
    }
}

/// A bundled model, and its default TCP configuration.
fn loaded(model: &str) -> (Arc<Model>, Arc<Config>) {
    let text = format!(
        r#"
name = "alone"
[network]
rate = "1Gbit"
[[foreground]]
name = "nobody"
kind = "none"
[[background]]
name = "model"
kind = "learnt"
model = "{model}"
"#
    );
    let plan = Plan::resolve(&text, "alone.toml", Path::new(".")).unwrap();
    let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).unwrap();
    let (_, tcp) = stage::background(&spec).unwrap().unwrap();
    let bytes = bundled::model(model).unwrap();
    (Arc::new(Model::from_slice(bytes).unwrap()), tcp)
}

/// Mean and standard error.
fn mean(of: &[f64]) -> (f64, f64) {
    let n = of.len() as f64;
    let m = of.iter().sum::<f64>() / n;
    let squares = of.iter().map(|x| (x - m).powi(2)).sum::<f64>();
    (m, (squares / (n - 1.0) / n).sqrt())
}

#[test]
fn draws_offer_the_model_s_load_in_their_first_seconds_and_in_their_last() {
    let horizon = Dur::from_secs(30);
    let parts = [(0, 10), (20, 30)].map(|(a, b)| (Dur::from_secs(a), Dur::from_secs(b)));
    for name in bundled::models() {
        let (model, _) = loaded(name);
        let sessions = (8_000.0 / model.sessions.len() as f64).clamp(10.0, 100.0);
        let knobs = Knobs {
            sessions,
            ..Knobs::default()
        };
        let mut seen = [Vec::new(), Vec::new()];
        // All draws have one rate.
        let mut rate = None;
        // Until the standard errors are small.
        for seed in 0..300 {
            let drawn = Schedule::draw(&model, &knobs, seed, horizon, &network()).unwrap();
            let rate = *rate.get_or_insert_with(|| drawn.rates(&model)[1] * sessions);
            let volumes = drawn.volumes(&model, &network(), &parts);
            for (part, bytes) in seen.iter_mut().zip(volumes) {
                part.push(bytes[1] * 0.8 / rate);
            }
            if seed >= 20 && seen.iter().all(|part| mean(part).1 < 0.015) {
                break;
            }
        }
        for part in seen {
            let (share, error) = mean(&part);
            assert!(error < 0.02, "{name}: {error}");
            let off = (share - 1.0).abs();
            assert!(off < 0.02 + 2.0 * error, "{name}: {share} +- {error}");
        }
    }
}

/// Times and sizes of packets that cross the bottleneck.
#[derive(Clone, Default)]
struct Passing(Arc<Mutex<Vec<(f64, f64)>>>);

impl Tap for Passing {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        if parties.direction(to_server) == Direction::Down {
            let seconds = at.since(Time::ZERO).as_secs_f64();
            self.0.lock().unwrap().push((seconds, packet.size.into()));
        }
    }
}

/// Instants at which cumulative bytes are compared, seconds.
fn instants() -> impl Iterator<Item = f64> {
    (0..34).map(|i| 0.25 * 1.35f64.powi(i))
}

/// Bytes down by each instant, in the closed form and in the simulator.
fn by_instant(model: &Arc<Model>, tcp: &Arc<Config>, session: usize, seed: u64) -> Vec<[f64; 2]> {
    let start = Start {
        at: Time::ZERO,
        session: session as u32,
        copy: 0,
    };
    let schedule = Schedule {
        starts: vec![start],
        ..Schedule::default()
    };
    let link = LinkConfig {
        rate: Some(LINK),
        delay: RTT / 2,
        queue: QueueLimit::Packets(100_000),
        ..LinkConfig::default()
    };
    let passing = Passing::default();
    let mut world = World::new(&[link.clone(), link], seed);
    world.set_tap(Box::new(passing.clone()));
    let machine = Structural::new(Arc::clone(model), &schedule);
    world.add(Box::new(machine), Tag::Background, Arc::clone(tcp));
    world.advance(Time::ZERO + Dur::from_secs(6_000));
    let passed = passing.0.lock().unwrap();
    let intervals: Vec<_> = instants()
        .map(|t| (Dur::ZERO, Dur::from_secs_f64(t)))
        .collect();
    let forms = schedule.volumes(model, &network(), &intervals);
    let so_far = |(t, form): (f64, [f64; 2])| {
        let simulated = passed.iter().take_while(|p| p.0 < t).map(|p| p.1);
        [form[1], simulated.sum()]
    };
    instants().zip(forms).map(so_far).collect()
}

#[test]
fn a_session_alone_does_what_the_closed_form_says() {
    for name in bundled::models() {
        let (model, tcp) = loaded(name);
        let count = model.sessions.len();
        let step = count.div_ceil(60);
        // Loss is random.
        let seeds = if count < 20 { 4 } else { 1 };
        let mut sums = vec![[0.0; 2]; instants().count()];
        for session in (0..count).step_by(step) {
            for seed in 1..=seeds {
                let found = by_instant(&model, &tcp, session, seed);
                for (sum, bytes) in sums.iter_mut().zip(found) {
                    (0..2).for_each(|i| sum[i] += model.sessions[session].weight * bytes[i]);
                }
            }
        }
        let all = sums[sums.len() - 1];
        let bytes = all[1] / all[0];
        // The connections of `streaming` queue at their client's access link, and retransmit packets that are only queued.
        let bar = if name == "streaming" { 0.04 } else { 0.02 };
        assert!((bytes - 1.0).abs() < bar, "{name}: {bytes} of the bytes");
        // Mean delivery time of a byte: the integral of the share that has not yet passed.
        let times: Vec<f64> = std::iter::once(0.0).chain(instants()).collect();
        let takes = [0, 1].map(|i| {
            let shares = std::iter::once(0.0).chain(sums.iter().map(|s| s[i] / all[i]));
            let shares: Vec<f64> = shares.collect();
            let steps = times.windows(2).zip(shares.windows(2));
            let area = |(t, s): (&[f64], &[f64])| (t[1] - t[0]) * (2.0 - s[0] - s[1]) / 2.0;
            steps.map(area).sum::<f64>()
        });
        let time = takes[1] / takes[0];
        assert!(
            (time - 1.0).abs() < 0.03,
            "{name}: {time} of the time, {takes:?}"
        );
    }
}
