//! Start times of sessions against closed forms: the recorded starts inside a window, and phases over
//! seeds.

use swell_base::{Dur, Stream};
use swell_traffic::{Knobs, Model, Network, Schedule};

/// A thousand sessions in 100 s. Nine in ten are in the first half of each 10 s window, and the fourth
/// window has three times as many as any other.
fn model() -> Model {
    let mut rng = Stream::new(5, "starts");
    let mut starts: Vec<u64> = (0..1_200)
        .map(|i| {
            let window = if i < 1_000 { i % 10 } else { 3 };
            let half = if rng.chance(0.9) { 0 } else { 5_000_000 };
            window * 10_000_000 + half + rng.below(5_000_000)
        })
        .collect();
    starts.sort_unstable();
    let session = |at: &u64| {
        format!(
            r#"{{"class":0,"start":{at},"client":0,"groups":[{{"think":0,"connections":
            [{{"gap":0,"server":0,"turns":[[300,20000,14600,0]]}}]}}]}}"#
        )
    };
    let sessions: Vec<String> = starts.iter().map(session).collect();
    let text = format!(
        r#"{{"format":"swell-traffic-model","version":3,"name":"starts","provenance":
        {{"made_by":"by hand","sources":[],"digests":[],"note":""}},"warnings":[],"duration":100000000,
        "parameters":{{"group_timeout":30000000,"session_timeout":300000000,"quiet":500000}},
        "totals":{{"packets":[0,0],"bytes":[0,0],"tcp_connections":1,"tcp_handshakes":1,
        "udp_flows":0,"unmodelled_packets":0,"unmodelled_bytes":0}},
        "load":{{"bin":100000,"bytes":[[],[]],"lsd_bin":1000,"lsd":[[],[]]}},
        "classes":[{{"name":"http","udp":false}}],
        "client_paths":[[2000,null,null,0,0,9,12,40]],"server_paths":[[50000,null,null,0,0,9,0,40]],
        "sessions":[{}]}}"#,
        sessions.join(",")
    );
    Model::from_slice(text.as_bytes()).expect("a sound model")
}

/// The largest distance between the distributions of two sorted samples.
fn ks(a: &[f64], b: &[f64]) -> f64 {
    let below = |x: f64, of: &[f64]| of.partition_point(|&v| v <= x) as f64 / of.len() as f64;
    a.iter()
        .chain(b)
        .map(|&x| (below(x, a) - below(x, b)).abs())
        .fold(0.0, f64::max)
}

/// Critical distance of two samples at 0.1 % (Smirnov: 1.949 sqrt((n + m) / nm)).
fn critical(n: usize, m: usize) -> f64 {
    1.949 * ((n + m) as f64 / (n as f64 * m as f64)).sqrt()
}

/// A run as long as the model goes once round its circle, from a phase drawn by the seed. After the phase
/// is subtracted, the starts in each window are those recorded there.
#[test]
fn starts_inside_a_window_are_those_recorded() {
    let model = model();
    let length = model.duration.as_secs_f64();
    let recorded: Vec<f64> = (model.sessions.iter())
        .map(|s| s.start.as_secs_f64())
        .collect();
    for seed in 0..5 {
        let schedule = Schedule::draw(
            &model,
            &Knobs::default(),
            seed,
            model.duration,
            &Network::default(),
        )
        .expect("a schedule");
        let phase = schedule.phase.as_secs_f64();
        let mut drawn: Vec<f64> = (schedule.starts.iter())
            .map(|s| (s.at.as_secs_f64() + phase) % length)
            .collect();
        drawn.sort_by(f64::total_cmp);
        assert!(
            drawn.len().abs_diff(recorded.len()) <= 12,
            "{}",
            drawn.len()
        );
        for window in 0..10u8 {
            let from = f64::from(window) * 10.0;
            let inside = |of: &[f64]| -> Vec<f64> {
                let own = of.iter().copied();
                own.filter(|t| (from..from + 10.0).contains(t)).collect()
            };
            let (was, is) = (inside(&recorded), inside(&drawn));
            let apart = ks(&was, &is);
            assert!(
                apart < critical(was.len(), is.len()),
                "window {window}, seed {seed}: {apart}"
            );
        }
    }
}

#[test]
fn phases_are_uniform_over_seeds() {
    let model = model();
    let n = 2_000;
    let mut phases: Vec<f64> = (0..n)
        .map(|seed| {
            let drawn = Schedule::draw(
                &model,
                &Knobs::default(),
                seed,
                Dur::from_millis(10),
                &Network::default(),
            );
            drawn.expect("a schedule").phase.as_secs_f64() / 100.0
        })
        .collect();
    phases.sort_by(f64::total_cmp);
    let uniform: Vec<f64> = (0..n).map(|i| (i as f64 + 0.5) / n as f64).collect();
    // For one sample against a distribution: 1.949 / sqrt(n).
    let apart = ks(&phases, &uniform);
    assert!(apart < 1.949 / (n as f64).sqrt(), "{apart}");
    assert!(phases.iter().all(|p| (0.0..1.0).contains(p)));
}
