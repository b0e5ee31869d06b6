//! Agents that dial out to their controller. `scripts/nat-check` plays with them.

use crate::{Scratch, run, text};

const FLEET: &str = "token_file = \"token\"\n\
    [[agents]]\nname = \"a\"\nrole = \"client\"\ndial = true\nfingerprint = \"";
const SERVER: &str = "\"\n[[agents]]\naddress = \"127.0.0.1:1\"\nrole = \"server\"\n";

#[test]
fn who_dials_and_who_listens_have_to_fit() {
    let dir = Scratch::new("dial");
    dir.secret("token", "a token of the tests");
    let print = "0".repeat(64);
    dir.write("dials.toml", &format!("{FLEET}{print}{SERVER}"));
    let listens =
        format!("{FLEET}{print}{SERVER}").replace("dial = true", "address = \"127.0.0.1:2\"");
    dir.write("listens.toml", &listens);
    let play = ["generate", "--closed", "1", "--fleet"];
    let listen = ["--listen", "127.0.0.1:0"];
    let state = ["--state", "own"];
    let agent = ["agent", "--token-file", "token", "--dial"];
    for (words, says) in [
        (
            [&play[..], &["dials.toml"]].concat(),
            "agents of the fleet dial in, but nobody listens",
        ),
        ([&play[..], &["dials.toml"], &listen].concat(), "--state"),
        (
            [&play[..], &["listens.toml"], &listen, &state].concat(),
            "--listen: no agent of the fleet dials in",
        ),
        (
            [&agent[..], &["c.example:1"]].concat(),
            "whom to trust to be the controller?",
        ),
        (
            [&agent[..], &["c.example:1", "--plain"]].concat(),
            "--plain",
        ),
        (
            [&agent[..], &["c.example", "--fingerprint", &print]].concat(),
            "--dial c.example: this is not HOST:PORT",
        ),
        (
            [&agent[..], &["c.example:1", "--fingerprint", "beef"]].concat(),
            "`beef` is not a fingerprint",
        ),
        (
            [&agent[..], &["c.example:1", "--ca", "none.pem"]].concat(),
            "none.pem",
        ),
    ] {
        let out = run(&dir, &words);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
}
