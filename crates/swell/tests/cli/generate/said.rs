//! What `swell generate` says, and what it refuses.

use super::*;

#[test]
fn wrong_arguments_are_wrong_usage_with_a_hint() {
    let dir = Scratch::new("generate-usage");
    dir.secret("token", TOKEN);
    let base = [
        "generate",
        "--token-file",
        "token",
        "--servers",
        "127.0.0.1:1",
        "--closed",
    ];
    let clients = ["--clients", "127.0.0.1:2"];
    for (words, says) in [
        (&["0"][..], "hint: at least --closed 1"),
        (&["1", "--duration", "0s"], "hint: without --duration"),
        (&["1", "--lease", "0s"], "hint: 500ms to 60s"),
        (&["1", "--lease", "2min"], "hint: 500ms to 60s"),
        (
            &["1", "--fingerprint", "beef"],
            "`beef` is not a fingerprint",
        ),
        (&["1", "--ca", "none.pem"], "none.pem"),
        (&["1", "--load", "2"], "cannot be used with"),
        (&["1", "--seed", "2"], "cannot be used with"),
        (&["1", "--cycle"], "cannot be used with"),
    ] {
        let out = run(&dir, &[&base, words, &clients].concat());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains(says) && !said.contains("runs on every host"),
            "{said}"
        );
    }
    let out = run(
        &dir,
        &[&base[..], &["1", "--clients", "127.0.0.1"]].concat(),
    );
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("`:PORT` is missing"));
    let help = text(&run(&dir, &["generate", "--help"]).stdout);
    assert!(
        help.contains("Default: 100B") && help.contains("Default: 0B"),
        "{help}"
    );
}

/// An upload that the end cuts off is unfinished at both ends. A table without rows can be read.
#[test]
fn what_is_played_is_said_first_and_what_was_cut_off_at_the_end() {
    let dir = Scratch::new("generate-said");
    let (client, server) = (Agent::new(&dir, true), Agent::new(&dir, true));
    let base = [
        "generate",
        "--closed",
        "1",
        "--up",
        "5GB",
        "--counts-only",
        "--token-file",
        "token",
    ];
    let agents = ["--clients", &client.address, "--servers", &server.address];
    let out = run(
        &dir,
        &[&base[..], &agents, &["--duration", "1s", "-o", "kept"]].concat(),
    );
    let (said, table) = (text(&out.stderr), text(&out.stdout));
    assert!(out.status.success(), "{said}");
    let first = "playing 1 session of one transfer after the other, 5GB up and 0B down, for 1s, from 1 client to 1 server";
    assert!(
        said.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains(first),
        "{said}"
    );
    assert!(table.contains("un-") && table.contains("finished"), "{table}");
    let manifest = manifest(&dir.0.join("kept"));
    for part in ["clients", "servers"] {
        let counts = &manifest["agents"][part][0]["statistics"]["counts"];
        assert_eq!(
            (&counts["unfinished"], &counts["failed"]),
            (&json!(1), &json!(0)),
            "{part}"
        );
    }
    let flows = dir.0.join("kept/flows/00000.parquet");
    assert!(
        swell_experiment::store::read_live_flows(&flows)
            .unwrap()
            .is_empty()
    );
}
