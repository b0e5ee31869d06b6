//! Rates that no link carries.

use super::*;

/// 20 Mbit/s down, 2 up.
fn with(foreground: &str, background: &str, network: &str) -> Result<File, Problems> {
    let text = format!(
        "name = \"x\"\n[network]\nrate = \"20Mbit\"\nup = {{ rate = \"2Mbit\" }}\n[[foreground]]\nname = \"f\"\n{foreground}\n\
         [[background]]\nname = \"b\"\n{background}\n[run]\nduration = \"20s\"\n{network}"
    );
    read(&text, "x.toml")
}

const WEB: &str = "kind = \"web\"\nobject = \"1MB\"";

/// The key and the message of the only problem, and the way out.
fn refused(file: Result<File, Problems>) -> (String, String, String) {
    let mut problems = file.unwrap_err().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    let one = problems.remove(0);
    (one.key, one.message, one.hint.unwrap())
}

#[test]
fn a_rate_above_the_links_is_refused_for_every_kind() {
    for kind in [
        "kind = \"learnt\"\nmodel = \"access-link\"",
        "kind = \"sessions\"\nmodel = \"m.json\"",
        "kind = \"replay\"\ntrace = \"t.pcap\"",
        "kind = \"cbr\"",
        "kind = \"poisson\"",
        "kind = \"on-off\"\nsizes = [{ packet = \"1000B\", share = 1.0 }]\nsources = 10\non = \"1s\"\noff = \"1s\"\nshape = 1.5",
    ] {
        let background = format!("{kind}\nrate = \"200Mbit\"");
        let (key, message, hint) = refused(with(WEB, &background, ""));
        assert_eq!(key, "background[0].rate", "{kind}");
        assert_eq!(
            message,
            "200Mbit are more than the link carries down, which is 20Mbit"
        );
        assert!(hint.contains("such as 12Mbit"), "{hint}");
        assert!(
            with(WEB, &background.replace("200", "20"), "").is_ok(),
            "{kind}"
        );
    }
}

#[test]
fn the_way_up_has_its_own_rate() {
    let both = "kind = \"cbr\"\nrate = \"3Mbit\"\nrate_up = \"3Mbit\"";
    let (key, message, _) = refused(with(WEB, both, ""));
    assert_eq!(key, "background[0].rate_up");
    assert_eq!(
        message,
        "3Mbit are more than the link carries up, which is 2Mbit"
    );
    // Packets over TCP wait.
    let waits = format!("{both}\ntransport = \"tcp\"");
    assert!(with(WEB, &waits, "").is_ok());
    // The link becomes faster during the run, one way or the other.
    let change = |way: &str| {
        format!("[[network.change]]\nat = \"5s\"\ndirection = \"{way}\"\nrate = \"4Mbit\"\n")
    };
    assert!(with(WEB, both, &change("up")).is_ok());
    assert_eq!(
        refused(with(WEB, both, &change("down"))).0,
        "background[0].rate_up"
    );
}

#[test]
fn what_cannot_slow_down_must_fit_together() {
    let video = "kind = \"cbr\"\nrate = \"12Mbit\"";
    let (key, message, hint) = refused(with(video, "kind = \"poisson\"\nrate = \"9Mbit\"", ""));
    assert_eq!(key, "foreground[0].rate");
    assert!(
        message.contains("12Mbit and the 9Mbit of background `b`"),
        "{message}"
    );
    assert!(hint.contains("neither of them slows down"), "{hint}");
    assert!(with(video, "kind = \"poisson\"\nrate = \"8Mbit\"", "").is_ok());
    // Users wait for each other and for the video.
    let users = "kind = \"learnt\"\nmodel = \"access-link\"\nrate = \"9Mbit\"";
    assert!(with(video, users, "").is_ok());
    // A deliberate overload is allowed.
    let overload = "kind = \"cbr\"\nrate = \"21Mbit\"";
    assert!(with(overload, users, "").is_ok());
}

/// A mix of the backgrounds `b` and `c`, which have these keys.
fn mix_of(foreground: &str, b: &str, c: &str) -> Result<File, Problems> {
    let both = format!(
        "{b}\n[[background]]\nname = \"c\"\n{c}\n[[background]]\nname = \"m\"\nkind = \"mix\"\nof = [\"b\", \"c\"]"
    );
    with(foreground, &both, "")
}

#[test]
fn parts_of_a_mix_that_cannot_slow_down_must_fit_together() {
    let poisson = |rate: u32| format!("kind = \"poisson\"\nrate = \"{rate}Mbit\"");
    let (key, message, hint) = refused(mix_of(WEB, &poisson(12), &poisson(9)));
    assert_eq!(key, "background[2].of");
    assert_eq!(
        message,
        "the 21Mbit of its parts that do not slow down are together more than the link carries down, which is 20Mbit"
    );
    assert!(hint.contains("lower their rates"), "{hint}");
    assert!(mix_of(WEB, &poisson(12), &poisson(8)).is_ok());
    // Users wait, and so do packets over TCP.
    let users = "kind = \"learnt\"\nmodel = \"access-link\"\nrate = \"12Mbit\"";
    assert!(mix_of(WEB, &poisson(12), users).is_ok());
    let waits = format!("{}\ntransport = \"tcp\"", poisson(12));
    assert!(mix_of(WEB, &poisson(12), &waits).is_ok());
    // Parts that never send at the same time add nothing to each other.
    let early = format!("{}\nactive = {{ on = \"10s\" }}", poisson(12));
    let late = |from: &str| format!("{}\nactive = {{ from = \"{from}\" }}", poisson(12));
    assert!(mix_of(WEB, &early, &late("10s")).is_ok());
    assert_eq!(
        refused(mix_of(WEB, &early, &late("9s"))).0,
        "background[2].of"
    );
}

#[test]
fn a_foreground_and_a_mix_that_cannot_slow_down_must_fit_together() {
    let video = "kind = \"cbr\"\nrate = \"6Mbit\"";
    let (key, message, _) = refused(mix_of(
        video,
        "kind = \"poisson\"\nrate = \"7Mbit\"",
        "kind = \"cbr\"\nrate = \"8Mbit\"",
    ));
    assert_eq!(key, "foreground[0].rate");
    assert!(
        message.contains("6Mbit and the 15Mbit of background `m`"),
        "{message}"
    );
}
