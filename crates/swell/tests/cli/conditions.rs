//! Conditions of `--fail-if`, and exit codes, where foregrounds differ in what is measured.

use crate::{Scratch, run, text};

/// A web page, packets, and a foreground that shows the background by itself.
const MIXED: &str = r#"name = "mixed"
[network]
rate = "10Mbit"
delay = "10ms"
[[foreground]]
name = "page"
kind = "web"
object = "20kB"
[[foreground]]
name = "feed"
kind = "cbr"
rate = "100kbit"
[[foreground]]
name = "alone"
kind = "none"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "8Mbit"
[run]
replications = 5
warmup = "1s"
duration = "6s"
"#;

/// Exit code and messages of a run with this condition.
fn judged(dir: &Scratch, condition: &str) -> (Option<i32>, String) {
    let out = run(
        dir,
        &["run", "mixed.toml", "-o", "out", "--fail-if", condition],
    );
    (out.status.code(), text(&out.stderr))
}

#[test]
fn a_condition_is_about_the_foregrounds_that_have_the_measure() {
    let dir = Scratch::new("conditions");
    dir.write("mixed.toml", MIXED);
    for (condition, code, words) in [
        ("p50.slowdown > 100", 0, ""),
        ("p50.slowdown > 0.5", 5, "page against poisson has"),
        ("poisson:p50.slowdown > 0.5", 5, "page against poisson has"),
        ("page:p50.slowdown > 100", 0, ""),
        (
            "page : poisson : p50.slowdown > 0.5",
            5,
            "page against poisson has",
        ),
        ("page:none:p50.seconds > 0", 5, "page against none has"),
        ("loss.ratio > 1e6", 0, ""),
        ("feed:loss.ratio > 1e6", 0, ""),
        // A foreground that is named must have the measure.
        (
            "feed:p50.slowdown > 100",
            2,
            "feed has no request times hint: it has goodput, loss, delay",
        ),
        (
            "goodputt.ratio < 0.1",
            2,
            "no foreground has measure `goodputt` hint: did you mean `goodput`?",
        ),
        ("feet:loss.ratio > 1e6", 2, "hint: did you mean `feed`?"),
    ] {
        let (found, said) = judged(&dir, condition);
        assert_eq!(found, Some(code), "{condition}: {said}");
        let said = said.replace('\n', " ");
        assert!(said.contains(words), "{condition}: {said}");
        assert!(!said.contains("alone against"), "{condition}: {said}");
    }
}

/// Traffic that ends before the measurement is no experiment, whichever percentile is asked for.
#[test]
fn no_condition_passes_where_every_answer_is_withheld() {
    let dir = Scratch::new("withheld");
    let active = "rate = \"8Mbit\"\nactive = { from = \"0s\", on = \"500ms\", off = \"100s\" }";
    let feed = "[[foreground]]\nname = \"feed\"\nkind = \"cbr\"\nrate = \"100kbit\"\n";
    let alone = "[[foreground]]\nname = \"alone\"\nkind = \"none\"\n";
    let silent = MIXED
        .replace("rate = \"8Mbit\"", active)
        .replace("\"20kB\"", "\"10kB\"\nthink = \"20ms\"")
        .replace("\"6s\"", "\"26s\"")
        .replace(feed, "")
        .replace(alone, "");
    dir.write("mixed.toml", &silent);
    for condition in [
        "p95.seconds > 5",
        "p99.seconds > 5",
        "request rate.value < 1",
    ] {
        let (code, said) = judged(&dir, condition);
        assert_eq!(code, Some(5), "{condition}: {said}");
        assert!(
            said.contains("cannot be told of page against poisson: "),
            "{condition}: {said}"
        );
    }
}

/// Without a background of kind `none` nothing is compared, and each case says so.
#[test]
fn without_a_reference_every_case_is_skipped() {
    let dir = Scratch::new("no-reference-junit");
    let none = "[[background]]\nname = \"none\"\nkind = \"none\"\n";
    dir.write("mixed.toml", &MIXED.replace(none, ""));
    let out = run(
        &dir,
        &["run", "mixed.toml", "-o", "out", "--junit", "out.xml"],
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let junit = std::fs::read_to_string(dir.0.join("out.xml")).unwrap();
    assert!(junit.contains("tests=\"2\""), "{junit}");
    assert!(junit.contains("skipped=\"2\""), "{junit}");
    assert!(junit.contains("no background of kind none"), "{junit}");
    let (code, said) = judged(&dir, "p95.slowdown > 2");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no background of kind none"), "{said}");
}

/// Nothing is asked of a foreground of kind `none`, so it leaves nothing open.
#[test]
fn a_foreground_that_shows_the_background_leaves_nothing_open() {
    let dir = Scratch::new("nothing-asked");
    let web = "name = \"page\"\nkind = \"web\"\nobject = \"20kB\"";
    let feed = "[[foreground]]\nname = \"feed\"\nkind = \"cbr\"\nrate = \"100kbit\"\n";
    let only = MIXED.replace(&format!("[[foreground]]\n{web}\n{feed}"), "");
    dir.write("mixed.toml", &only);
    let args = ["run", "mixed.toml", "-o", "out", "--junit", "out.xml"];
    let out = run(&dir, &args);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("alone: Mbit/s carried down"), "{said}");
    assert!(!said.contains("settled"), "{said}");
    let junit = std::fs::read_to_string(dir.0.join("out.xml")).unwrap();
    assert!(junit.contains("tests=\"0\""), "{junit}");
}
