use swell_experiment::Plan;

use super::*;
use crate::under::options::title;

/// A link with this background, rate and load.
fn link(background: &str, [rate, load]: [Option<&str>; 2]) -> Link {
    let network = LinkKeys {
        rate: rate.map(|r| r.parse().unwrap()),
        ..LinkKeys::default()
    };
    Link {
        load: load.map(|l| l.parse().unwrap()),
        ..Link::new(background, network)
    }
}

/// The experiment of a program behind `link`.
fn typed(link: Link, compare: Option<u32>) -> String {
    let options = Options {
        compare,
        duration: Dur::from_millis(1_230),
        ..Options::new(link, vec!["true".into()])
    };
    let known = named(&options.link.background);
    text(&options, &known).unwrap()
}

fn named(name: &str) -> Background {
    background(name, Path::new("."), |_| {}).unwrap()
}

#[test]
fn a_bridge_stands_for_a_day_with_any_background() {
    let own = link("access-link", [None; 2]);
    let rate = Rate::from_bps(9_000_000);
    let all = [
        named("access-link"),
        Background::None,
        Background::greedy(),
        Background::constant(rate),
    ];
    for background in all {
        let file = bridge(&own, &background, None).unwrap();
        if let Err(problems) = Plan::resolve(&file, "bridge", Path::new(".")) {
            panic!("{problems}");
        }
    }
}

/// The page, the JUnit suite and the tables of a run have this name.
#[test]
fn a_run_is_named_after_what_it_tests() {
    let text = typed(link("access-link", [None; 2]), None);
    let file: Table = text.parse().unwrap();
    assert_eq!(file["name"].as_str(), Some("true under access-link"));
    Plan::resolve(&text, "under", Path::new(".")).unwrap();
    // What a file may be called, a directory may not.
    let long = format!("a\\b{}", "é".repeat(120));
    let options = Options::new(link("access-link", [None; 2]), vec![long]);
    let other = super::text(&options, &named("access-link")).unwrap();
    Plan::resolve(&other, "under", Path::new(".")).unwrap();
    let named_long: Table = other.parse().unwrap();
    let expected = format!("a_b{} under access-link", "é".repeat(38));
    assert_eq!(named_long["name"].as_str(), Some(&*expected));
}

#[test]
fn a_comparison_holds_a_background_to_its_load() {
    let modelled = |own: Link, compare| {
        let file: Table = typed(own, compare).parse().unwrap();
        let all = file["background"].as_array().unwrap();
        all.last().unwrap().as_table().unwrap().clone()
    };
    let loaded = || link("access-link", [None, Some("14Mbit")]);
    let held = modelled(loaded(), Some(3));
    assert_eq!(held["rate"].as_str(), Some("14Mbit"));
    assert_eq!(held["load"].as_str(), Some("offered"));
    assert!(!held.contains_key("sessions"));
    // The default load also applies: 60 % of 20 Mbit/s.
    let usual = modelled(link("access-link", [None; 2]), Some(3));
    assert_eq!(usual["rate"].as_str(), Some("12Mbit"));
    // Without a comparison there are no preliminary simulations.
    let once = modelled(loaded(), None);
    assert!(once["sessions"].as_float() > Some(0.1) && !once.contains_key("rate"));
    // More copies than a target rate allows: the number of sessions is set instead.
    let fast = || link("smart-home", [Some("1Gbit"), Some("900Mbit")]);
    let many = modelled(fast(), Some(3));
    assert!(many["sessions"].as_float() > Some(MOST_COPIES) && !many.contains_key("rate"));
    let text = typed(fast(), Some(3));
    if let Err(problems) = Plan::resolve(&text, "under", Path::new(".")) {
        panic!("{problems}");
    }
}

/// A trace of one opportunity of 1500 bytes every 3 ms: 4 Mbit/s.
#[test]
fn the_usual_load_is_that_of_the_delivery_trace() {
    let scratch = swell_host::scratch::Scratch::new().unwrap();
    let file = scratch.path().join("lte.down");
    std::fs::write(&file, "3\n").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let trace = || {
        Some(Named(file::Deliveries {
            file: file.clone(),
            phase: None,
            sha256: None,
        }))
    };
    let load = |network: LinkKeys| {
        let own = Link::new("access-link", network);
        let text: Table = typed(own, Some(3)).parse().unwrap();
        let all = text["background"].as_array().unwrap();
        all[2]["rate"].as_str().unwrap().to_owned()
    };
    let ways = |rate: Option<&str>, deliveries| {
        Some(file::LinkOverrides {
            rate: rate.map(|r| r.parse().unwrap()),
            deliveries,
            ..file::LinkOverrides::default()
        })
    };
    assert_eq!(
        load(LinkKeys {
            down: ways(None, trace()),
            ..LinkKeys::default()
        }),
        "2.4Mbit"
    );
    let both = LinkKeys {
        deliveries: trace(),
        ..LinkKeys::default()
    };
    assert_eq!(load(both.clone()), "2.4Mbit");
    assert_eq!(
        load(LinkKeys {
            down: ways(Some("10Mbit"), None),
            ..both
        }),
        "6Mbit"
    );
}

#[test]
fn what_concerns_no_background_is_refused() {
    let refused = |link: &Link, background: &Background| {
        bridge(link, background, None).unwrap_err().to_string()
    };
    let mut own = link("none", [None, Some("5Mbit")]);
    assert!(refused(&own, &Background::None).contains("--load"));
    let silent = Background::Model(Known {
        model: "up.json".into(),
        kind: ("learnt", "sessions"),
        rate: 0.0,
        warm_up: WARM_UP,
    });
    assert!(refused(&own, &silent).contains("up.json sends nothing towards the client"));
    own.load = None;
    bridge(&own, &silent, None).unwrap();
    own.warmup = Some(WARM_UP);
    bridge(&own, &silent, None).unwrap();
    assert!(refused(&own, &Background::None).contains("--warmup"));
    assert!(refused(&own, &Background::greedy()).contains("scenario"));
}

#[test]
fn a_file_takes_no_name_of_another_background() {
    let titles = ["none", "none.pcap", "a/poisson.json", "campus.json"].map(title);
    assert_eq!(titles, ["none", "none-model", "poisson-model", "campus"]);
}

#[test]
fn every_bundled_background_makes_an_experiment() {
    for name in bundled::models() {
        let text = typed(link(name, [None; 2]), None);
        if let Err(problems) = Plan::resolve(&text, name, Path::new(".")) {
            panic!("{name}: {problems}");
        }
    }
}

#[test]
fn a_path_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt;

    let scratch = swell_host::scratch::Scratch::new().unwrap();
    let file = scratch
        .path()
        .join(std::ffi::OsStr::from_bytes(b"model-\xff"));
    std::fs::write(&file, bundled::model("smart-home").unwrap()).unwrap();
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let Err(error) = background(link.to_str().unwrap(), scratch.path(), |_| {}) else {
        panic!("it was taken");
    };
    assert!(error.message.contains("not UTF-8"), "{error}");
}

#[test]
fn changes_count_from_the_start_of_the_program() {
    let mut own = link("access-link", [None; 2]);
    let change = "at = \"1s\"\nqdisc = \"codel\"\nrate = \"5Mbit\"";
    own.network.change = vec![toml::from_str(change).unwrap()];
    let plan = Plan::resolve(&typed(own, None), "under", Path::new(".")).unwrap();
    let changes = &plan.file.network.link.change;
    assert_eq!(changes[0].at, WARM_UP + Dur::from_secs(1));
    assert_eq!(changes[0].rate, Some(Rate::from_bps(5_000_000)));
}
