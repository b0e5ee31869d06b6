//! `swell study`.

use crate::{Scratch, run, text};

#[test]
fn a_first_look_leaves_ledger_pictures_and_runs() {
    let dir = Scratch::new("study");
    let first = run(&dir, &["study", "burstiness", "--quick"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let said = text(&first.stdout);
    for expected in [
        "S2.1",
        "S2.8b",
        "F2",
        "A10",
        "report: studies/burstiness-quick/report.html",
    ] {
        assert!(said.contains(expected), "no {expected} in {said}");
    }
    let widest = said.lines().map(|l| l.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?} columns in {said}");
    assert!(text(&first.stderr).contains("[quick-study]"));
    let study = dir.0.join("studies/burstiness-quick");
    let page = std::fs::read_to_string(study.join("report.html")).unwrap();
    assert!(page.contains("S2.4b") && page.contains("Figure 8"));
    for name in [
        "figure2-era.svg",
        "figure2-era.png",
        "figure8-today.svg",
        "startup-modern.svg",
    ] {
        assert!(study.join("pictures").join(name).is_file(), "{name}");
    }

    // Nothing is run again, nothing changes, and the same is there as JSON.
    let runs = std::fs::read(study.join("runs.csv")).unwrap();
    let again = run(&dir, &["study", "burstiness", "--quick", "--json"]);
    assert!(
        text(&again.stderr).contains("runs are there"),
        "{}",
        text(&again.stderr)
    );
    let json: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(json["study"]["ledgers"][0]["entries"][0]["id"], "S2.1");
    assert_eq!(json["study"]["ledgers"][0]["columns"][0], "era");
    assert_eq!(std::fs::read(study.join("runs.csv")).unwrap(), runs);
    assert_eq!(
        std::fs::read_to_string(study.join("report.html")).unwrap(),
        page
    );

    // A table of something else is not overwritten.
    std::fs::write(study.join("runs.csv"), "a,b\n").unwrap();
    let other = run(&dir, &["study", "burstiness", "--quick"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("line 1") && text(&other.stderr).contains("--fresh"));
}
