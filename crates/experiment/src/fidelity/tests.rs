use swell_base::Dur;
use swell_traffic::Knobs;

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
    let fidelity = compare(&model, &[a, b], None);
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
    let same = compare(&model, &[model.clone(), model.clone()], None);
    assert!(same.rows.len() > 20 && same.rows.iter().all(|r| r.met));
    let mut double = model.clone();
    double.totals.bytes = double.totals.bytes.map(|b| b * 3);
    let off = compare(&model, &[double], None);
    assert!(
        off.rows
            .iter()
            .any(|r| r.quantity.starts_with("bytes") && !r.met)
    );
}

/// The bootstrap interval of two sessions, or of one with nearly all bytes, reaches from nothing to twice the trace.
#[test]
fn no_interval_excuses_a_replay_that_lacks_most_of_the_trace() {
    let model = model();
    let met = |trace: &Model, share: f64| {
        let mut run = trace.clone();
        run.totals.bytes = run.totals.bytes.map(|b| (b as f64 * share) as u64);
        run.totals.unmodelled_bytes = 0;
        let rows = compare(trace, &[run], None).rows;
        let bytes = rows.iter().filter(|r| r.quantity.starts_with("bytes "));
        bytes.map(|r| r.met).collect::<Vec<bool>>()
    };
    let plain = |mut trace: Model| {
        trace.totals.unmodelled_bytes = 0;
        trace
    };
    let mut two = plain(model.clone());
    two.sessions.truncate(2);
    assert_eq!(met(&two, 0.43), [false; 3]);
    assert_eq!(met(&two, 0.90), [false; 3]);
    assert_eq!(met(&two, 0.96), [true; 3]);
    // Many sessions, one of which outweighs all others together.
    let mut unequal = plain(model);
    unequal.sessions[0].weight = 1e4;
    assert_eq!(met(&unequal, 0.43), [false; 3]);
    assert_eq!(met(&unequal, 0.79), [false; 3]);
    assert_eq!(met(&unequal, 0.81), [true; 3]);
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
        let rows = compare(&model, runs, None).rows;
        let energies = rows
            .into_iter()
            .filter(|r| r.quantity.contains("log2 energy"));
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

/// The row of this name; there is one.
fn named(fidelity: &Fidelity, name: &str) -> Row {
    let found = fidelity.rows.iter().find(|r| r.quantity.starts_with(name));
    found.unwrap_or_else(|| panic!("no row {name}")).clone()
}

#[test]
fn hosts_that_borrowed_no_round_trip_are_seen() {
    let model = model();
    let rows = |m: &Model| {
        let fidelity = compare(m, std::slice::from_ref(m), None);
        ["client", "server"].map(|side| {
            named(
                &fidelity,
                &format!("distance of {side}-side RTT, hosts without"),
            )
        })
    };
    assert!(rows(&model).iter().all(|r| r.met), "{:?}", rows(&model));
    let mut lost = model.clone();
    let paths = lost.server_paths.iter_mut();
    for path in paths.filter(|p| p.rtt_samples == 0) {
        path.rtt = Dur::ZERO;
    }
    let [clients, servers] = rows(&lost);
    assert!(clients.met && !servers.met, "{servers:?}");
    // Where no host has a round trip, there is nothing to compare.
    let mut none = model;
    for path in none.client_paths.iter_mut().chain(&mut none.server_paths) {
        (path.rtt_samples, path.rtt) = (0, Dur::ZERO);
    }
    let fidelity = compare(&none, std::slice::from_ref(&none), None);
    let borrowed = |r: &&Row| r.quantity.contains("hosts without samples");
    assert!(fidelity.rows.iter().find(borrowed).is_none());
}

#[test]
fn distances_are_what_was_changed() {
    let model = model();
    let doubled = model.varied(
        &Knobs {
            response: 2.0,
            ..Knobs::default()
        },
        1,
    );
    let mut louder = doubled.clone();
    for y in &mut louder.load.lsd[1] {
        // Four times the energy, 6 dB.
        *y += 2.0;
    }
    let fidelity = compare(&model, &[louder.clone(), louder], Some([0.3, 5.0]));
    let response = named(&fidelity, "distance of response");
    // Bytes are whole and a response has at least one: a little more or less than an octave.
    assert!((response.regenerated - 1.0).abs() < 0.02, "{response:?}");
    assert!(!response.met);
    let request = named(&fidelity, "distance of request");
    assert!(request.met && request.regenerated < 0.02, "{request:?}");
    let [up, down] = ["left to right", "right to left"]
        .map(|way| named(&fidelity, &format!("energy of bytes {way}")));
    assert!(
        up.met && up.regenerated == 0.0 && up.limit == Some(1.5),
        "{up:?}"
    );
    let six = 20.0 * 2f64.log10();
    assert!((down.regenerated - six).abs() < 1e-9, "{down:?}");
    assert!(!down.met && down.limit == Some(5.0), "{down:?}");
    // However unlike the halves are, there is an end to what they excuse.
    let wide = compare(&model, std::slice::from_ref(&model), Some([f64::NAN, 20.0]));
    assert_eq!(named(&wide, "energy of bytes left").limit, Some(1.5));
    assert_eq!(named(&wide, "energy of bytes right").limit, Some(6.0));
}

#[test]
fn halves_of_a_trace_are_as_far_apart_as_they_were_made() {
    let mut rng = swell_base::Stream::new(1, "test/halves");
    let ms = |i: u64| Dur::from_millis(i);
    let first: Vec<u32> = (0..20_000).map(|_| rng.below(1000) as u32).collect();
    // The second half is the first with twice the amplitude.
    let both: Vec<(Dur, u32)> = first
        .iter()
        .chain(first.iter())
        .zip(0..)
        .map(|(&b, i)| (ms(i), if i < 20_000 { b } else { 2 * b }))
        .collect();
    let capture =
        |packets: [Vec<(Dur, u32)>; 2]| crate::Capture::of(packets.map(Into::into), ms(39_999));
    let [up, down] = halves(&capture([
        both,
        first.iter().zip(0..).map(|(&b, i)| (ms(i), b)).collect(),
    ]));
    assert!((up - 20.0 * 2f64.log10()).abs() < 1e-6, "{up}");
    assert_eq!(down, 20.0);
}
/// What the page publishes is what the model files say of themselves: both come from `scripts/fidelity`, and a model
/// that was learnt anew without it has no certificate.
#[test]
fn the_page_and_the_certificates_say_the_same() {
    let page = include_str!("../../../../docs/fidelity.md");
    for name in bundled::models() {
        let model = Model::from_slice(bundled::model(name).unwrap()).unwrap();
        // Made from distributions and published aggregates, not learnt from a trace.
        if model.totals.packets == [0, 0] {
            continue;
        }
        let certificate = model.provenance.certificate.expect(name);
        let line = page
            .lines()
            .find(|l| l.starts_with(&format!("| `{name}` |")))
            .expect(name);
        let said = format!("| {} of {} |", certificate.met, certificate.rows);
        assert!(line.ends_with(&said), "{name}: {line}, {said}");
        for energy in certificate.energy {
            assert!(
                line.contains(&format!("{energy:.1} (")),
                "{name}: {line}, {energy}"
            );
        }
    }
}

/// A model without a trace says what it plays, as `scripts/fidelity` measured it.
#[test]
fn models_without_a_trace_say_what_they_play() {
    for name in ["shooter", "backup"] {
        let model = Model::from_slice(bundled::model(name).unwrap()).unwrap();
        let said = model.provenance.played.clone().expect(name);
        assert_eq!(played(&model, said.seeds).expect(name), said, "{name}");
        // The closed form knows nothing of seeds, nor of the simulator.
        for (way, offered) in model.rates().into_iter().enumerate() {
            let off = said.rates[way] / offered - 1.0;
            assert!(off.abs() < 0.02, "{name}: {said:?}, {offered}");
        }
    }
}
