//! Backgrounds with additional energy at one timescale, on the simulated link.

use super::*;
use swell_base::Direction;

/// A run of a background alone, `seconds` long.
fn alone(background: &str, seconds: u32) -> Observations {
    let text = format!(
        r#"
name = "energy"
[network]
rate = "50Mbit"
delay = "10ms"
rtt = "40ms"
[[foreground]]
name = "nothing"
kind = "none"
[[background]]
name = "one"
{background}
[run]
replications = 1
warmup = "0s"
duration = "{seconds}s"
[run.keep]
flows = false
"#
    );
    run_of(&text, 0).1
}

/// Increase of the downstream background's energy in each octave from 2 ms on, dB, and the factor on its mean rate.
fn rise(background: &str, energy: &str, seconds: u32) -> (Vec<f64>, f64) {
    let plain = alone(background, seconds);
    let raised = alone(&format!("{background}\nenergy = {energy}"), seconds);
    let energies = |of: &Observations| -> Vec<f64> {
        let own = of.scales.iter();
        let own = own.filter(|s| {
            s.direction == Direction::Down && s.traffic == "background" && s.quantity == "bytes"
        });
        own.filter(|s| s.n >= 10).map(|s| s.energy).collect()
    };
    let mean = |of: &Observations| {
        let down = of
            .links
            .iter()
            .find(|l| l.direction == Direction::Down)
            .expect("a link");
        down.arrived[1] as f64
    };
    let db = energies(&plain).into_iter().zip(energies(&raised));
    let db = db.map(|(a, b)| 10.0 * (b / a).log10()).collect();
    (db, mean(&raised) / mean(&plain))
}

/// Poisson packets get the requested energy within 1 dB at its octave. The neighbouring octaves change by at most 2.5
/// dB, the others by 0.5 dB, and the mean by 1 %.
///
/// The shape of a Poisson process is that of its packets per timescale: 128 here. The same seed draws both runs, so
/// octaves that nothing was added to differ little by chance. Two octaves above, 0.4 dB are leakage and 0.1 dB chance,
/// in a run of 3750 times the timescale. Short timescales have longer runs.
fn has_what_was_asked_for(octave: i32) {
    let millis = 1u32 << octave;
    let poisson = format!(
        "kind = \"poisson\"\nrate = \"{}bit\"\npacket = \"100B\"",
        128 * 800 * 1000 / millis
    );
    let energy = format!("{{ at = \"{millis}ms\", db = 6 }}");
    let span = if octave <= 4 { 30_000 } else { 3750 };
    let (db, mean) = rise(&poisson, &energy, span * millis / 1000);
    let compared = usize::try_from(octave + 3).expect("octaves count from one");
    assert!(db.len() >= compared, "{millis} ms: {db:.2?}");
    for (j, rise) in (1i32..).zip(&db).take(compared) {
        let ok = match (j - octave).abs() {
            0 => (rise - 6.0).abs() <= 1.0,
            1 => (-0.5..=2.5).contains(rise),
            _ => rise.abs() <= 0.5,
        };
        assert!(ok, "{millis} ms, octave {j}: {db:.2?}");
    }
    assert!((mean - 1.0).abs() < 0.01, "{millis} ms: {mean}");
}

macro_rules! octaves {
    ($($name:ident: $octave:literal),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                has_what_was_asked_for($octave);
            }
        )+
    };
}

octaves! {
    energy_at_4_ms_is_what_was_asked_for: 2,
    energy_at_8_ms_is_what_was_asked_for: 3,
    energy_at_16_ms_is_what_was_asked_for: 4,
    energy_at_32_ms_is_what_was_asked_for: 5,
    energy_at_64_ms_is_what_was_asked_for: 6,
    energy_at_128_ms_is_what_was_asked_for: 7,
    energy_at_256_ms_is_what_was_asked_for: 8,
    energy_at_512_ms_is_what_was_asked_for: 9,
    energy_at_1_s_is_what_was_asked_for: 10,
    energy_at_2_s_is_what_was_asked_for: 11,
    energy_at_4_s_is_what_was_asked_for: 12,
    energy_at_8_s_is_what_was_asked_for: 13,
}

/// For closed-loop users the increase is largest at the requested octave, and the mean rate stays. The amount of the
/// increase depends on the users.
#[test]
fn learnt_users_have_more_energy_where_it_was_asked_for() {
    let learnt = "kind = \"learnt\"\nmodel = \"access-link\"\nsessions = 20.0\nphase = \"0s\"";
    let (db, mean) = rise(learnt, "{ at = \"2048ms\", db = 6 }", 300);
    let at = db[10];
    assert!((1.0..=8.0).contains(&at), "{db:.1?} {mean}");
    assert!(db[..8].iter().all(|rise| rise.abs() < at), "{db:.1?}");
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
}

/// Backgrounds whose energy cannot be raised, or not by so much, are rejected.
#[test]
fn what_cannot_be_raised_is_refused() {
    let failed = |background: &str| {
        let text = FILE.replace("kind = \"cbr\"\nrate = \"5Mbit\"", background);
        let plan = Plan::resolve(&text, "test.toml", Path::new("."));
        let plan = plan.map_err(|e| e.to_string())?;
        let cell = plan.cells.iter().find(|c| c.background == "cbr");
        let spec = plan.spec(cell.expect("it is a cell"), &BTreeMap::new());
        let ended = Simulator.run(&spec.expect("a run"), &|_| {}, &|| false);
        ended.map(|_| ()).map_err(|e| e.to_string())
    };
    for (background, why) in [
        (
            "kind = \"cbr\"\nrate = \"5Mbit\"\nenergy = { at = \"64ms\", db = 6 }",
            "none that is known",
        ),
        (
            "kind = \"poisson\"\nrate = \"1Mbit\"\nenergy = { at = \"4ms\", db = 6 }",
            "50 % are the most",
        ),
        (
            "kind = \"poisson\"\nrate = \"9Mbit\"\nenergy = { at = \"8192ms\", db = 6 }",
            "less than 16 times",
        ),
        (
            "kind = \"poisson\"\nrate = \"9Mbit\"\nenergy = { at = \"60ms\", db = 6 }",
            "no octave",
        ),
        (
            "kind = \"poisson\"\nrate = \"9Mbit\"\nenergy = { at = \"64ms\", db = 0 }",
            "cannot be raised",
        ),
    ] {
        let said = failed(background).expect_err("it is refused");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_foreground_that_sends_in_windows_has_no_one_timescale() {
    let keys = "kind = \"poisson\"\nrate = \"1Mbit\"\nactive = { on = \"2s\" }\nenergy = { at = \"64ms\", db = 3 }";
    let text = FILE.replace("kind = \"web\"\nobject = \"100kB\"", keys);
    let wrong = Plan::resolve(&text, "test.toml", Path::new(".")).expect_err("a mistake");
    let said = wrong.to_string();
    assert!(said.contains("foreground[0].energy"), "{said}");
}

/// The speeds of a foreground and of a background vary independently, although their seeds are equal.
#[test]
fn a_foreground_and_a_background_have_clocks_of_their_own() {
    let poisson = "kind = \"poisson\"\nrate = \"10Mbit\"\npacket = \"500B\"\nenergy = { at = \"512ms\", db = 17 }";
    let text = format!(
        "name = \"energy\"\n[network]\nrate = \"100Mbit\"\ndelay = \"10ms\"\n\
         [[foreground]]\nname = \"f\"\n{poisson}\n[[background]]\nname = \"b\"\n{poisson}\n\
         [run]\nreplications = 1\nwarmup = \"0s\"\nduration = \"30s\"\nbins = \"100ms\"\n"
    );
    let (_, observed) = run_of(&text, 0);
    let bins: Vec<[f64; 2]> = (observed.bins.iter())
        .filter(|b| b.direction == Direction::Down)
        .map(|b| b.arrived.map(|bytes| bytes as f64))
        .collect();
    let n = bins.len() as f64;
    let mean = [0, 1].map(|i| bins.iter().map(|b| b[i]).sum::<f64>() / n);
    let product = |i: usize, j: usize| {
        let each = bins.iter().map(|b| (b[i] - mean[i]) * (b[j] - mean[j]));
        each.sum::<f64>()
    };
    let correlation = product(0, 1) / (product(0, 0) * product(1, 1)).sqrt();
    // Some 35 periods: the standard deviation is 0.17. With one clock it is 0.93.
    assert!(correlation.abs() < 0.5, "{correlation}");
}
