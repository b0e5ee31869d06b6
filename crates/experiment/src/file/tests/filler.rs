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

/// In the default 120 s: 10000 sources that change every microsecond do so 1.2e12 times, three and a half
/// times as often were all periods as short as a shape of 1.4 lets them be.
#[test]
fn sources_that_change_too_often_are_refused() {
    let with = |more: &str| FILLER.replace("\"1Mbit\"", &format!("\"1Mbit\"\n{more}"));
    let often = "sources = 10000\non = \"1us\"\noff = \"1us\"";
    for (more, count) in [
        (often, "4.20e12"),
        // Half a second on and two off make 2.5 s, of which the minimum is a millionth of a millionth.
        ("shape = 1.000000000001", "4.80e15"),
        // With a tenth of the sources it is legal, below.
        ("sources = 10000\non = \"100ms\"\noff = \"1ns\"", "8.40e7"),
    ] {
        let found = read(&with(more), "x.toml").expect_err(more).to_string();
        assert!(found.contains("background[0].on"), "{found}");
        assert!(found.contains(count), "{found}");
        assert!(found.contains("further above 1"), "{found}");
    }
    for legal in [
        "sources = 10000",
        "sources = 1000\non = \"100ms\"\noff = \"1ns\"",
        "shape = 1.001",
        // Never off: no periods.
        "sources = 10000\non = \"1us\"\noff = \"0s\"",
    ] {
        assert!(read(&with(legal), "x.toml").is_ok(), "{legal}");
    }
}
