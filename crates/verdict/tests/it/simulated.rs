//! Verdicts on what the simulator saw of several parts at once.

use std::path::Path;

use swell_experiment::run::{self, Options, RunOutcome};
use swell_experiment::{Plan, Results, Simulator};
use swell_verdict::{Answer, Verdict};

/// All runs of an experiment.
fn results(text: &str) -> Results {
    let plan = Plan::resolve(text, "test.toml", Path::new(".")).expect("a good file");
    let scratch = tempfile::tempdir().expect("a directory");
    let options = Options {
        dir: scratch.path().join("run"),
        threads: 1,
        fresh: true,
        shard: None,
    };
    let ended = run::run(&plan, &Simulator, &options, &|_| {}, &|| false).expect("runs");
    let RunOutcome::Complete(results) = ended else {
        panic!("not interrupted")
    };
    *results
}

#[test]
fn foregrounds_together_have_a_verdict_each() {
    let results = results(
        r#"
name = "together"
network = { rate = "20Mbit", delay = "10ms", queue = "50ms" }
foreground = [
    { name = "cbr", kind = "cbr", rate = "2Mbit" },
    { name = "web", kind = "web", object = "100kB" },
]
background = [
    { name = "none", kind = "none" },
    { name = "bulk", kind = "greedy", connections = 3 },
]
run = { replications = 1, warmup = "2s", duration = "12s", together = true }
"#,
    );
    let verdict = Verdict::of(&results);
    let measures = |i: usize| -> Vec<String> {
        let judged = &verdict.foregrounds[i].backgrounds[1].judged;
        let mut names: Vec<String> = judged.iter().map(|j| j.measure.clone()).collect();
        // A measure may be judged at several percentiles.
        names.dedup();
        names
    };
    assert!(
        measures(1).contains(&"time".to_owned()),
        "{:?}",
        measures(1)
    );
    assert_eq!(measures(0), ["goodput", "loss", "delay"]);
    // Its own bytes, not those of both.
    let goodput = &verdict.foregrounds[0].backgrounds[1].judged[0];
    let alone = goodput.without.expect("known").value;
    assert!((alone / 2e6 - 1.0).abs() < 0.02, "{alone}");
}

#[test]
fn a_background_that_matches_a_mix_is_offered_at_its_rate() {
    // The background that matches comes before the one that it matches.
    let results = results(
        r#"
name = "matched"
network = { rate = "20Mbit", delay = "10ms", queue = "50ms" }
foreground = [{ name = "web", kind = "web", object = "100kB" }]
background = [
    { name = "like", kind = "poisson", rate = "match:mix" },
    { name = "mix", kind = "mix", of = ["scaled", "up"] },
    { name = "scaled", kind = "cbr", rate = "5Mbit", load = "carried" },
    { name = "up", kind = "poisson", rate = "3Mbit", rate_up = "1Mbit" },
]
run = { replications = 1, warmup = "2s", duration = "12s" }
"#,
    );
    let backgrounds = &Verdict::of(&results).foregrounds[0].backgrounds;
    for d in [0, 1] {
        let [like, mix] = [0, 1].map(|i| backgrounds[i].offered_bps[d]);
        assert!((like / mix - 1.0).abs() < 0.1, "{like} {mix}");
    }
}

/// Each part of a mix is checked at its own bottleneck, so that another link cannot hide a missed load.
#[test]
fn a_mix_over_two_links_has_the_load_of_both() {
    let mut results = results(
        r#"
name = "mixes"
links = [
    { name = "home", rate = "10Mbit", delay = "5ms", queue = "50ms" },
    { name = "core", rate = "20Mbit", delay = "5ms", queue = "50ms" },
]
foreground = [{ name = "web", kind = "web", object = "20kB" }]
background = [
    { name = "none", kind = "none" },
    { name = "near", kind = "cbr", rate = "3Mbit", path = ["home"] },
    { name = "far", kind = "poisson", rate = "8Mbit", path = ["core"] },
    { name = "mix", kind = "mix", of = ["near", "far"] },
]
run = { replications = 2, warmup = "1s", duration = "8s" }
"#,
    );
    let mix = |seen: &Results| {
        let foreground = Verdict::of(seen).foregrounds.remove(0);
        let mut all = foreground.backgrounds.into_iter();
        all.find(|b| b.background == "mix").expect("a mix")
    };
    let seen = mix(&results);
    assert!(seen.withheld.is_empty(), "{:?}", seen.withheld);
    assert_eq!(seen.requested_bps[1], Some(11e6));
    for bps in [seen.offered_bps[1], seen.load_bps[1]] {
        assert!((bps / 11e6 - 1.0).abs() < 0.05, "{bps}");
    }
    let runs = results.runs.iter_mut();
    let parts = runs.flat_map(|run| &mut run.observed.parts);
    for part in parts.filter(|part| part.part == "near") {
        part.arrived /= 2;
    }
    let said = mix(&results).withheld.join("; ");
    assert!(
        said.contains("Mbit/s of near were requested down"),
        "{said}"
    );
    assert!(!said.contains("far"), "{said}");
}

/// Loads are compared where the foreground notices them, however narrow other links are.
#[test]
fn loads_are_compared_on_the_links_of_the_foreground() {
    let results = results(
        r#"
name = "paths"
links = [
    { name = "home", rate = "10Mbit", delay = "5ms", queue = "50ms" },
    { name = "core", rate = "8Mbit", delay = "5ms", queue = "50ms" },
]
foreground = [{ name = "web", kind = "web", object = "20kB", path = ["home"] }]
background = [
    { name = "none", kind = "none" },
    { name = "real", kind = "learnt", model = "browsing", rate = "2Mbit", path = ["home"] },
    { name = "like", kind = "poisson", rate = "match:real", path = ["core", "home"] },
]
run = { replications = 2, warmup = "1s", duration = "8s" }
"#,
    );
    let foreground = Verdict::of(&results).foregrounds.remove(0);
    let [like] = &foreground.comparisons[..] else {
        panic!("one background matches another");
    };
    let said = like.withheld.join("; ");
    assert!(!said.contains("loads differ"), "{said}");
}

/// Nothing here responds to the network, and each link carries the same with either.
#[test]
fn nothing_gives_way_where_nothing_responds() {
    let results = results(
        r#"
name = "sums"
links = [
    { name = "home", rate = "10Mbit", delay = "5ms", queue = "50ms" },
    { name = "core", rate = "20Mbit", delay = "5ms", queue = "50ms" },
]
foreground = [{ name = "web", kind = "web", object = "20kB" }]
background = [
    { name = "none", kind = "none" },
    { name = "near", kind = "cbr", rate = "3Mbit", path = ["home"] },
    { name = "far", kind = "cbr", rate = "3Mbit", path = ["core"] },
    { name = "mix", kind = "mix", of = ["near", "far"] },
    { name = "like", kind = "poisson", rate = "match:mix" },
]
run = { replications = 2, warmup = "1s", duration = "8s" }
"#,
    );
    let foreground = Verdict::of(&results).foregrounds.remove(0);
    let doubts: Vec<&str> = foreground.doubts.iter().map(|d| d.code.as_str()).collect();
    assert!(!doubts.contains(&"load-yields"), "{doubts:?}");
}

#[test]
fn batches_of_seeds_have_the_verdict_of_one_directory() {
    let with = |seed: u32, replications: u32| {
        results(&format!(
            r#"
name = "joined"
network = {{ rate = "10Mbit", delay = "5ms" }}
foreground = [{{ name = "web", kind = "web", object = "20kB" }}]
background = [
    {{ name = "none", kind = "none" }},
    {{ name = "poisson", kind = "poisson", rate = "6Mbit" }},
]
run = {{ warmup = "1s", duration = "6s", seed = {seed}, replications = {replications} }}
"#
        ))
    };
    let joined = with(1, 2).join(with(3, 3)).expect("of one experiment");
    assert_eq!(Verdict::of(&joined), Verdict::of(&with(1, 5)));
}

/// Sources with long periods, of which a run has few.
#[test]
fn packets_of_sources_that_miss_their_rate_are_another_experiment() {
    let with = |sources: &str| {
        let results = results(&format!(
            r#"
name = "bursts"
network = {{ rate = "20Mbit", delay = "5ms" }}
foreground = [{{ name = "web", kind = "web", object = "20kB" }}]
background = [
    {{ name = "none", kind = "none" }},
    {{ name = "bursts", kind = "on-off", rate = "5Mbit", {sources} }},
]
run = {{ replications = 1, warmup = "1s", duration = "11s" }}
"#
        ));
        let seen = Verdict::of(&results).foregrounds.remove(0).backgrounds;
        let bursts = seen.into_iter().find(|b| b.background == "bursts");
        bursts.expect("it ran")
    };
    let few = with(r#"sources = 1, shape = 1.05, on = "20s", off = "40s""#);
    assert_eq!(few.requested_bps, [Some(0.0), Some(5e6)]);
    assert!(
        few.withheld
            .iter()
            .any(|why| why.contains("5.00 Mbit/s of bursts were requested down")),
        "{:?}",
        few.withheld
    );
    let many = with("sources = 2000, shape = 1.9");
    assert_eq!(many.requested_bps, [Some(0.0), Some(5e6)]);
    assert!(
        !many.withheld.iter().any(|why| why.contains("requested")),
        "{:?}",
        many.withheld
    );
}

/// Three per cent of the capacity changes the times of requests by two per cent. The number of requests in a run, and so
/// which of them the median or p90 is, changes, too.
#[test]
fn the_number_of_requests_of_several_sizes_is_no_difference() {
    let nine = "\"10kB\", ".repeat(9);
    for (object, background, duration) in [
        ("\"10kB\", \"1MB\"", "poisson", "14.8s"),
        ("\"10kB\", \"1MB\"", "poisson", "15.2s"),
        ("\"10kB\", \"1MB\"", "poisson", "5s"),
        (&*format!("{nine}\"500kB\""), "cbr", "20s"),
    ] {
        let rate = if background == "cbr" { 200 } else { 300 };
        let results = results(&format!(
            r#"
name = "sizes"
network = {{ rate = "10Mbit", rtt = "40ms" }}
foreground = [{{ name = "web", kind = "web", object = [{object}], think = "100ms" }}]
background = [
    {{ name = "none", kind = "none" }},
    {{ name = "light", kind = "{background}", rate = "{rate}kbit" }},
]
run = {{ replications = 5, warmup = "1s", duration = "{duration}", seed = 1 }}
"#
        ));
        let verdict = &Verdict::of(&results).foregrounds[0];
        let said = &verdict.paragraphs;
        assert_ne!(verdict.matters, Answer::Yes, "{duration}: {said:?}");
    }
}
