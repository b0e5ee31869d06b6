use super::*;
use crate::bundled;

/// The bundled access-link model: small enough for a test, real enough to matter.
fn model() -> Model {
    let bytes = bundled::model("access-link").expect("bundled");
    Model::from_slice(bytes).expect("a bundled model reads")
}

#[test]
fn regenerated_traffic_is_a_function_of_the_seed_and_carries_the_trace() {
    let model = model();
    let play = |seed| regenerate(&model, &Playback::default(), seed).expect("a schedule");
    let (a, b) = (play(1), play(2));
    assert_eq!(a.to_json(), play(1).to_json());
    assert_ne!(a.to_json(), b.to_json());
    let fidelity = compare(&model, &[a, b]);
    let row = |name: &str| {
        fidelity
            .rows
            .iter()
            .find(|r| r.quantity == name)
            .expect("a row")
    };
    for name in [
        "bytes of modelled flows",
        "TCP connections with SYN or data",
        "UDP flows",
    ] {
        let r = row(name);
        assert!((r.regenerated / r.trace - 1.0).abs() < 0.10, "{r:?}");
    }
    for side in ["client", "server"] {
        let r = row(&format!("median {side}-side RTT [s]"));
        assert!((r.regenerated / r.trace - 1.0).abs() < 0.25, "{r:?}");
    }
}

#[test]
fn a_model_agrees_with_itself_and_not_with_its_double() {
    let model = model();
    let same = compare(&model, &[model.clone(), model.clone()]);
    assert!(same.rows.len() > 20 && same.rows.iter().all(|r| r.met));
    let mut double = model.clone();
    double.totals.bytes = double.totals.bytes.map(|b| b * 3);
    let off = compare(&model, &[double]);
    assert!(
        off.rows
            .iter()
            .any(|r| r.quantity.starts_with("bytes") && !r.met)
    );
}

#[test]
fn many_seeds_far_apart_pass_no_energy_and_the_finest_octave_is_looked_at() {
    let model = model();
    let moved = |octaves: f64| {
        let mut run = model.clone();
        for y in run.load.lsd.iter_mut().flatten() {
            *y += octaves;
        }
        run
    };
    let met = |runs: &[Model]| {
        let rows = compare(&model, runs).rows;
        let energies = rows.into_iter().filter(|r| r.quantity.contains("energy"));
        energies.map(|r| r.met).collect::<Vec<bool>>()
    };
    // The trace lies between the seeds, and their mean is off by 3 dB.
    let wide: Vec<Model> = (0..20).map(|i| moved([-1.0, 3.0][i % 2])).collect();
    let all = met(&wide);
    let octaves: usize = model.load.lsd.iter().map(Vec::len).sum();
    assert_eq!(all.len(), octaves);
    assert!(all.iter().all(|m| !m));
    assert!(met(&[moved(0.49), moved(0.49)]).iter().all(|&m| m));
    assert!(met(&[moved(0.51)]).iter().all(|&m| !m));
    // A run without an octave that the trace has does not meet it.
    let mut short = model.clone();
    short.load.lsd[0].pop();
    assert_eq!(
        met(&[model.clone(), short]).iter().filter(|&&m| !m).count(),
        1
    );
}
