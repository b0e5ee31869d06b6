//! Loads that a calibration cannot reach, or that are not what was asked for.

use std::sync::Mutex;

use super::*;
use crate::simulate::Simulator;

/// The experiment with these backgrounds on top, and one replication.
fn with(more: &str) -> String {
    experiment(1).replace("[run]\n", &format!("{more}\n[run]\n"))
}

/// The manifest of simulated runs.
fn simulated(text: &str) -> Manifest {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, text);
    let options = options(&scratch, "r", 2);
    match run(&plan, &Simulator, &options, &|_| {}, &|| false) {
        Ok(RunOutcome::Complete(results)) => results.manifest.clone(),
        other => panic!("{other:?}"),
    }
}

/// The messages of the warnings with this code.
fn said(manifest: &Manifest, code: Code) -> Vec<&str> {
    let warnings = manifest.warnings.iter().filter(|w| w.code == code);
    warnings.map(|w| &*w.message).collect()
}

/// The rates of the parts are known only when they are measured.
#[test]
fn a_mix_of_packets_that_overloads_the_link_is_doubted() {
    let base = "[[background]]\nname = \"base\"\nkind = \"learnt\"\nmodel = \"access-link\"\nrate = \"8Mbit\"\n";
    let packets = |name: &str| {
        format!("[[background]]\nname = \"{name}\"\nkind = \"cbr\"\nrate = \"match:base\"\n")
    };
    let mix = "[[background]]\nname = \"mix\"\nkind = \"mix\"\nof = [\"a\", \"b\", \"c\"]";
    let all = ["a", "b", "c"].map(packets).concat();
    let manifest = simulated(&with(&format!("{base}{all}{mix}")));
    let doubts = said(&manifest, Code::OpenLoopLoss);
    assert_eq!(doubts.len(), 1, "{:?}", manifest.warnings);
    assert!(
        doubts[0].contains("background mix") && doubts[0].contains("most of it does not slow down"),
        "{doubts:?}"
    );
    // Endless transfers lose packets because they fill the link, with or without a few datagrams.
    let greedy = "[[background]]\nname = \"c\"\nkind = \"greedy\"\n";
    let few = "[[background]]\nname = \"a\"\nkind = \"cbr\"\nrate = \"1Mbit\"\n";
    let of_two = mix.replace("\"b\", ", "");
    let other = simulated(&with(&format!("{few}{greedy}{of_two}")));
    assert_eq!(said(&other, Code::OpenLoopLoss), Vec::<&str>::new());
    assert!(other.measured.contains_key("mix"));
}

/// Why the calibration fails.
fn failure(text: &str) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, text);
    let options = options(&scratch, "r", 2);
    match run(&plan, &Simulator, &options, &|_| {}, &|| false) {
        Err(failure) => failure.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_rate_of_what_sends_nothing_down_is_taken_by_nothing() {
    let up =
        "[[background]]\nname = \"up\"\nkind = \"cbr\"\nrate = \"0Mbit\"\nrate_up = \"2Mbit\"\n";
    let mix = "[[background]]\nname = \"mix\"\nkind = \"mix\"\nof = [\"up\"]\n";
    let users = "[[background]]\nname = \"users\"\nkind = \"learnt\"\nmodel = \"tiny.json\"\nrate = \"match:mix\"";
    let said = failure(&with(&format!("{up}{mix}{users}")));
    assert!(
        said.contains("`users` takes the rate of `mix`, which carries nothing down"),
        "{said}"
    );
    // Packets may flow up only.
    let packets = users
        .replace("learnt\"\nmodel = \"tiny.json\"", "poisson\"")
        .replace("users", "packets");
    let manifest = simulated(&with(&format!("{up}{mix}{packets}")));
    assert!((manifest.measured["mix"].up_bps / 2e6 - 1.0).abs() < 0.01);
}

#[test]
fn a_model_is_too_small_for_a_matched_rate_too() {
    let base = "[[background]]\nname = \"base\"\nkind = \"cbr\"\nrate = \"300Mbit\"\n";
    let users = "[[background]]\nname = \"users\"\nkind = \"learnt\"\nmodel = \"tiny.json\"\nrate = \"match:base\"";
    let text = with(&format!("{base}{users}"));
    let text = text.replace("\"20Mbit\"", "\"1Gbit\"");
    let said = failure(&text.replace("duration = \"22s\"", "duration = \"4s\""));
    assert!(
        said.contains("the model of `users` is too small for 300 Mbit/s")
            && said.contains("copies of them would be needed"),
        "{said}"
    );
}

#[test]
fn a_flow_level_model_is_too_small_for_a_rate_too() {
    let scratch = tempfile::tempdir().unwrap();
    let sessions = |rate: &str| {
        let background = format!(
            "[[background]]\nname = \"files\"\nkind = \"sessions\"\nmodel = \"access-hour\"\nrate = \"{rate}\""
        );
        let text = with(&background).replace("\"20Mbit\"", "\"1Gbit\"");
        std::fs::write(scratch.path().join("tiny.json"), model(20_000_000)).unwrap();
        Plan::resolve(&text, "x.toml", scratch.path())
    };
    let problems = sessions("900Mbit").unwrap_err();
    assert_eq!(problems.problems[0].key, "background[3].rate");
    let said = problems.to_string();
    assert!(said.contains("copies of them would be needed"), "{said}");
    assert!(sessions("9Mbit").is_ok());
}

/// A model of one packet lasts a microsecond, which makes no rate.
#[test]
fn a_model_without_duration_has_no_rate() {
    let scratch = tempfile::tempdir().unwrap();
    let lone = model(1_000)
        .replace("\"duration\":80000000", "\"duration\":1")
        .replace("\"start\":4000000", "\"start\":0");
    std::fs::write(scratch.path().join("tiny.json"), lone).unwrap();
    let problems = Plan::resolve(&experiment(1), "x.toml", scratch.path()).unwrap_err();
    let said = problems.to_string();
    assert!(said.contains("`tiny.json` lasts no time"), "{said}");
}

#[test]
fn draws_of_packets_that_miss_their_rate_are_doubted() {
    let bursts = |keys: &str| {
        let text = format!(
            "[[background]]\nname = \"bursts\"\nkind = \"on-off\"\nrate = \"5Mbit\"\n{keys}"
        );
        simulated(&with(&text))
    };
    let few = bursts("sources = 1\nshape = 1.05\non = \"20s\"\noff = \"40s\"");
    let doubts = said(&few, Code::RateMissed);
    assert_eq!(doubts.len(), 1, "{:?}", few.warnings);
    assert!(
        doubts[0].contains("5.00 Mbit/s down were asked for, and the draws of these runs offer"),
        "{doubts:?}"
    );
    let many = bursts("sources = 2000\nshape = 1.9");
    assert_eq!(said(&many, Code::RateMissed), Vec::<&str>::new());
}

/// Equal load over a run, although one of the two sends half of the time.
#[test]
fn a_rate_that_is_taken_has_the_mean_of_windows() {
    let scratch = tempfile::tempdir().unwrap();
    let measured = BTreeMap::from([(
        "learnt".to_owned(),
        Measured {
            up_bps: 2e5,
            down_bps: 8e6,
            up_bps_each: vec![1e5],
            down_bps_each: vec![4e6],
            ..Measured::default()
        },
    )]);
    let (learnt, poisson) = ("rate = \"8Mbit\"", "rate = \"match:learnt\"");
    let windows = "active = { from = \"2s\", on = \"5s\", off = \"5s\" }";
    let rates = |text: &str| {
        let plan = plan(&scratch, text);
        let cell = plan.cells.iter().find(|c| c.background == "poisson");
        let spec = plan.spec(cell.unwrap(), &measured).unwrap();
        let part = plan.file.background.iter().find(|b| b.name() == "poisson");
        let fixed = part
            .unwrap()
            .fixed_bps(&plan.file.taken(part.unwrap(), &measured));
        // In a window.
        let (setting, sent) = spec.parts(Role::Background).remove(0);
        let played = sent.traffic.offered(&setting).unwrap().unwrap().mean;
        assert!(text.contains("per-seed") || fixed == Some(played));
        played
    };
    let add = |text: &str, to: &str| text.replace(to, &format!("{to}\n{windows}"));
    let plain = experiment(1);
    assert_eq!(rates(&plain), [2e5, 8e6]);
    assert_eq!(rates(&add(&plain, learnt)), [1e5, 4e6]);
    assert_eq!(rates(&add(&plain, poisson)), [4e5, 16e6]);
    assert_eq!(rates(&add(&add(&plain, poisson), learnt)), [2e5, 8e6]);
    let paired = plain.replace(poisson, &format!("{poisson}\nmatch = \"per-seed\""));
    assert_eq!(rates(&add(&paired, learnt)), [5e4, 2e6]);
    // What is sent in fewer windows may not fit the link.
    let names = |text: &str| -> Vec<String> {
        let plan = plan(&scratch, text);
        let all = plan.to_measure().into_iter();
        all.map(|b| b.name().to_owned()).collect()
    };
    assert_eq!(names(&plain), ["learnt"]);
    assert_eq!(names(&add(&plain, poisson)), ["poisson", "learnt"]);
}

#[test]
fn loads_are_counted_at_one_link_although_another_becomes_the_slowest() {
    let scratch = tempfile::tempdir().unwrap();
    let doubts = |change: &str| {
        let links = format!(
            "[[links]]\nname = \"core\"\nrate = \"20Mbit\"\n[[links]]\nname = \"home\"\nrate = \"30Mbit\"\n{change}[[foreground]]"
        );
        let text = experiment(1)
            .replace("[network]\nrate = \"20Mbit\"\nrtt = \"40ms\"\n", "")
            .replacen("[[foreground]]", &links, 1);
        let plan = plan(&scratch, &text);
        let fresh = Options {
            fresh: true,
            ..options(&scratch, "r", 1)
        };
        let manifest = complete(&plan, &fresh).manifest;
        let found = said(&manifest, Code::SlowestChanges);
        found
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let change = |at: &str, rate: &str| {
        format!("[[links.change]]\nat = \"{at}\"\nrate = \"{rate}\"\ndirection = \"down\"\n")
    };
    assert_eq!(doubts(""), Vec::<String>::new());
    assert_eq!(doubts(&change("5s", "25Mbit")), Vec::<String>::new());
    let found = doubts(&change("5s", "10Mbit"));
    // Poisson and learnt.
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("its slowest link down is `core` when a run begins, and `home` later"),
        "{found:?}"
    );
    assert_eq!(doubts(&change("30s", "10Mbit")), Vec::<String>::new());
}

/// Packets that fill their queue lose some of them, whether the file says their rate or another background has it.
#[test]
fn packets_that_nearly_fill_a_link_are_measured_for_losses() {
    let scratch = tempfile::tempdir().unwrap();
    let names = |text: &str| -> Vec<String> {
        let plan = plan(&scratch, text);
        let all = plan.to_measure().into_iter();
        all.map(|b| b.name().to_owned()).collect()
    };
    let packets = |rate: &str| {
        with(&format!(
            "[[background]]\nname = \"packets\"\nkind = \"poisson\"\nrate = \"{rate}\"\n"
        ))
    };
    assert_eq!(names(&packets("16Mbit")), ["learnt"]);
    assert_eq!(names(&packets("19Mbit")), ["learnt", "packets"]);
    let falls = packets("16Mbit").replace(
        "rtt = \"40ms\"",
        "rtt = \"40ms\"\n[[network.change]]\nat = \"12s\"\nrate = \"8Mbit\"",
    );
    assert_eq!(names(&falls), ["learnt", "packets"]);

    // The rate of the matched one shows when that is measured.
    let short = |rate: &str| {
        let full = format!(
            "[[background]]\nname = \"full\"\nkind = \"cbr\"\ntransport = \"tcp\"\nrate = \"{rate}\"\n\
             [[background]]\nname = \"packets\"\nkind = \"poisson\"\nrate = \"match:full\"\n"
        );
        let text = with(&full).replace("rtt = \"40ms\"", "rtt = \"40ms\"\nqueue = \"10pkt\"");
        simulated(&text)
    };
    let lossy = short("19.8Mbit");
    let doubts = said(&lossy, Code::OpenLoopLoss);
    assert_eq!(doubts.len(), 1, "{:?}", lossy.warnings);
    assert!(doubts[0].contains("background packets"), "{doubts:?}");
    let light = short("8Mbit");
    assert_eq!(said(&light, Code::OpenLoopLoss), Vec::<&str>::new());
    assert!(!light.measured.contains_key("packets"));
}

/// Datagrams of a model are lost with as many sessions as the file says, as well as with as many as make a rate.
#[test]
fn a_model_of_datagrams_is_measured_for_losses() {
    let scratch = tempfile::tempdir().unwrap();
    let calls = with(
        "[[background]]\nname = \"calls\"\nkind = \"learnt\"\nmodel = \"calls\"\nsessions = 1\n",
    );
    let plan = plan(&scratch, &calls);
    let names: Vec<&str> = plan.to_measure().iter().map(|b| b.name()).collect();
    assert_eq!(names, ["learnt", "calls"]);
}

/// An experiment whose one background has these keys, in runs of this length.
fn with_energy(keys: &str, seconds: u32) -> String {
    format!(
        "name = \"energy\"\n[network]\nrate = \"50Mbit\"\ndelay = \"10ms\"\nrtt = \"40ms\"\n\
         [[foreground]]\nname = \"nothing\"\nkind = \"none\"\n\
         [[background]]\nname = \"raised\"\n{keys}\n\
         [run]\nreplications = 1\nwarmup = \"2s\"\nduration = \"{seconds}s\"\n"
    )
}

/// What is said of the energy of a background with these keys, in runs of this length.
fn of_energy(keys: &str, seconds: u32) -> Vec<String> {
    let manifest = simulated(&with_energy(keys, seconds));
    let told = said(&manifest, Code::EnergyMissed);
    told.into_iter().map(str::to_owned).collect()
}

/// Nothing of that check is kept, so what does not join the results would do it in vain.
#[test]
fn the_energy_is_looked_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let keys = "kind = \"poisson\"\nrate = \"8Mbit\"\npacket = \"250B\"\nenergy = { at = \"32ms\", db = 6 }";
    let plan = plan(&scratch, &with_energy(keys, 4));
    let stages = |shard: Option<&str>, go_on: bool| {
        let seen = Mutex::new(Vec::new());
        let events = |event: Event<'_>| {
            if let Event::Stage { name, .. } = event {
                seen.lock().unwrap().push(name);
            }
        };
        let options = Options {
            shard: shard.map(|s| s.parse().unwrap()),
            ..options(&scratch, "r", 1)
        };
        run(&plan, &Simulator, &options, &events, &|| !go_on).unwrap();
        seen.into_inner().unwrap()
    };
    assert_eq!(stages(None, false), ["running"]);
    assert_eq!(stages(Some("1/1"), true), ["running"]);
    assert_eq!(stages(None, true), ["running", "measuring"]);
    assert_eq!(stages(None, true), Vec::<&str>::new());
}

/// Packets of a schedule have the energy that was asked for, also if it is so much that the wavelet leaks far more than
/// beside 6 dB. A run too short to know says nothing.
#[test]
fn energy_that_a_background_has_is_not_doubted() {
    let poisson = "kind = \"poisson\"\nrate = \"8Mbit\"\npacket = \"250B\"";
    let at = |energy: &str, seconds| of_energy(&format!("{poisson}\nenergy = {energy}"), seconds);
    let none = Vec::<String>::new();
    assert_eq!(at("{ at = \"32ms\", db = 6 }", 60), none);
    assert_eq!(at("{ at = \"256ms\", db = 20 }", 60), none);
    assert_eq!(at("{ at = \"256ms\", db = 6 }", 8), none);
}
