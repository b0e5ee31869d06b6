//! Endless transfers as a foreground and on/off sources as a background.

use super::*;

/// On/off sources below an endless transfer.
const FILLER: &str = r#"
name = "filler"
[network]
rate = "10Mbit"
[[foreground]]
name = "filler"
kind = "greedy"
[[background]]
name = "there"
kind = "on-off"
rate = "1Mbit"
"#;

#[test]
fn impossible_fillers_are_refused() {
    assert!(read(FILLER, "x.toml").is_ok());
    for (from, to, what) in [
        ("rate = \"1Mbit\"", "rate = \"0Mbit\"", "no traffic"),
        ("\"1Mbit\"", "\"1Mbit\"\nsources = 0", "0 sources"),
        ("\"1Mbit\"", "\"1Mbit\"\non = \"0s\"", "sends nothing"),
        ("\"1Mbit\"", "\"1Mbit\"\nshape = 1", "no mean"),
        ("\"1Mbit\"", "\"1Mbit\"\nsizes = []", "sum to"),
        (
            "\"1Mbit\"",
            "\"1Mbit\"\nsizes = [{ packet = \"20B\", share = 1 }]",
            "out of range",
        ),
        ("\"1Mbit\"", "\"100Gbit\"", "packets in a run"),
        (
            "\"1Mbit\"",
            "\"1Mbit\"\naccess = \"0bit\"",
            "carries nothing",
        ),
        (
            "\"greedy\"",
            "\"greedy\"\naccess = \"0bit\"",
            "carries nothing",
        ),
        ("\"greedy\"", "\"greedy\"\nconnections = 0", "0 connections"),
    ] {
        let found = complaint_in(FILLER, from, to);
        assert!(found.contains(what), "{to}: {found}");
    }
    let emulated =
        |file: &str| complaint_in(file, "[network]", "backend = \"emulated\"\n[network]");
    assert!(emulated(FILLER).contains("simulated only"));
    let nothing = FILLER.replace("greedy", "none");
    assert!(emulated(&nothing).contains("against the clock"));
    let waits = FILLER.replace("greedy", "web\"\nobject = \"1kB") + "[run.keep]\nwaits = true";
    assert!(emulated(&waits).contains("simulated runs only"));
}
