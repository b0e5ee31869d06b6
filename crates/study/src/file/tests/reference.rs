//! The length of a reference's runs, and which of our runs are compared with them.

use swell_base::Code;

use super::*;
use crate::Study;

/// A study with a reference, extra text and equal numbers throughout.
fn page(study: &str, reference: &str, quick: bool) -> Study {
    let (dir, path) = written(&format!(
        "{study}\n[quick]\nset = [\"run.duration=3s\"]\n[reference]\nfile = \"ref.csv\"\nname = \"ns-2\"\n{reference}\n"
    ));
    let table = "column,line,load,seeds,arrived,arrived_sd\n\
                 slow,fifo,0.5,3,10,0.1\nslow,fifo,1,3,10,0.1\nslow,codel,1,3,10,0.1\n";
    std::fs::write(dir.path().join("ref.csv"), table).unwrap();
    let overrides = Overrides {
        quick,
        ..Overrides::default()
    };
    let read = FileStudy::read(&path, &overrides).unwrap_or_else(|e| panic!("{e}"));
    let numbers = vec![vec![10.0, 1.0]; read.cells().len()];
    read.study(&numbers)
}

/// The facts about the comparison, whether there is a doubt, and whether the ledger has the reference's numbers.
fn said_of(page: &Study) -> (Vec<&str>, bool, bool) {
    let mut facts: Vec<&str> = Vec::new();
    for (what, value) in &page.facts {
        if what.contains("ns-2") || what == "the others" {
            facts.push(value);
        }
    }
    let doubted = page.doubts.iter().any(|d| d.code == Code::ReferenceLength);
    let beside = page.sections.iter().any(|s| s.title.starts_with("Beside"));
    let theirs = !page.ledgers[0].entries[0].findings[0].reference.is_empty();
    assert!(beside || !theirs, "numbers beside ours and no section");
    (facts, doubted, theirs)
}

#[test]
fn runs_of_another_length_are_not_compared() {
    // The experiment's runs last 6 s, those of a quick run 3 s.
    for (reference, quick) in [
        ("", false),
        ("duration = \"6s\"", false),
        ("duration = \"6000ms\"", false),
        ("quick = true\nduration = \"3s\"", true),
        ("quick = true", true),
    ] {
        let made = page(STUDY, reference, quick);
        let expected = (vec!["3 of 3"], false, true);
        assert_eq!(said_of(&made), expected, "{reference}, {quick}");
    }
    for (reference, quick, why) in [
        (
            "duration = \"7s\"",
            false,
            "not compared: ns-2's runs are of 7 s, and ours of 6 s",
        ),
        (
            "duration = \"5999ms\"",
            false,
            "not compared: ns-2's runs are of 5.999 s, and ours of 6 s",
        ),
        (
            "quick = true\nduration = \"6s\"",
            true,
            "not compared: ns-2's runs are of 6 s, and ours of 3 s",
        ),
        (
            "duration = \"6s\"",
            true,
            "not compared: ns-2's runs are of 6 s, and ours of 3 s",
        ),
        ("duration = \"3s\"", true, "not compared in a first look"),
        ("", true, "not compared in a first look"),
    ] {
        let made = page(STUDY, reference, quick);
        // A quick run has its own doubt.
        assert_eq!(said_of(&made), (vec![why], !quick, false), "{reference}");
    }
}

#[test]
fn of_runs_of_several_lengths_those_that_fit_are_compared() {
    let longer = "set = [\"network.qdisc=codel\", \"run.duration=9s\"]";
    let study = STUDY.replacen("set = [\"network.qdisc=codel\"]", longer, 1);
    assert_ne!(study, STUDY);
    let made = page(&study, "duration = \"6s\"", false);
    let why = "not compared: ns-2's runs are of 6 s, and ours of 9 s";
    assert_eq!(said_of(&made), (vec!["2 of 2", why], true, true));
}

#[test]
fn a_length_is_a_duration() {
    let text =
        format!("{STUDY}\n[reference]\nfile = \"ref.csv\"\nname = \"ns-2\"\nduration = 600\n");
    let why = read(&text).unwrap_err();
    assert!(why.contains("reference.duration"), "{why}");
}

#[test]
fn runs_of_no_length_are_no_reference() {
    let text =
        format!("{STUDY}\n[reference]\nfile = \"ref.csv\"\nname = \"ns-2\"\nduration = \"0s\"\n");
    let why = read(&text).unwrap_err();
    assert!(
        why.contains("of no length") && why.contains("key reference.duration"),
        "{why}"
    );
}

#[test]
fn many_lengths_are_told_by_their_ends() {
    // The reference has the runs of every load, each with a length of its own.
    let values: Vec<String> = (1..=5).map(|i| (f64::from(i) / 10.0).to_string()).collect();
    let study = STUDY
        .replacen("[0.5, 1]", &format!("[{}]", values.join(", ")), 1)
        .replacen(
            "set = [\"background",
            "set = [\"run.duration=${2.0 + load}s\", \"background",
            1,
        )
        .replacen("load: 1}", "load: 0.2}", 1)
        .replacen("load: 0.5}", "load: 0.1}", 1);
    let (dir, path) = written(&format!(
        "{study}\n[reference]\nfile = \"ref.csv\"\nname = \"ns-2\"\nduration = \"6s\"\n"
    ));
    let rows = values.iter().map(|v| format!("slow,fifo,{v},3,10,0.1\n"));
    let table = "column,line,load,seeds,arrived,arrived_sd\n".to_owned();
    let table = table + rows.collect::<String>().as_str();
    std::fs::write(dir.path().join("ref.csv"), table).unwrap();
    let made = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let theirs = made.reference.as_ref().expect("a reference");
    let named = made.compiled.file.reference.as_ref().expect("its name");
    let why = ": ns-2's runs are of 6 s, and ours of 2.1 to 2.5 s, 5 lengths";
    assert_eq!(
        made.comparable(named, theirs).left_out.as_deref(),
        Some(why)
    );
}
