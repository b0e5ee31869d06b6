//! Tests with known users behind a queue that drops. They compare the users' actions with the model that the learner
//! derives from the packet file, and with the output of tshark, which shares no code with the learner.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use swell_base::{Bytes, Dur, QueueLimit, Rate};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_traffic::{Connection, Exchange, Model, Session};

use super::law::{USERS, learnt_again, only, world};

/// Payload of every stream from the left and from the right, each byte once, and the number of segments that do not
/// advance the sequence number. Decoded from the file by tshark, which shares no code with ours.
fn by_tshark(scratch: &Path, path: &Path) -> (Vec<[u64; 2]>, u64) {
    let mut command = Command::new("tshark");
    command
        .env("WIRESHARK_CONFIG_DIR", scratch)
        .arg("-r")
        .arg(path);
    command.args(["-T", "fields", "-E", "separator=;", "-E", "occurrence=f"]);
    for field in ["tcp.stream", "frame.interface_id", "tcp.seq", "tcp.len"] {
        command.args(["-e", field]);
    }
    let out = command.output().unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let mut streams: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    let mut again = 0;
    for line in String::from_utf8(out.stdout).unwrap().lines() {
        let row: Vec<u64> = line.split(';').map(|n| n.parse().unwrap()).collect();
        let [stream, interface, seq, len] = row[..] else {
            panic!("{line}")
        };
        let known = &mut streams.entry(stream).or_default()[interface as usize];
        if len > 0 {
            // Relative sequence numbers; the SYN is number 0.
            let end = seq + len - 1;
            again += u64::from(end <= *known);
            *known = end.max(*known);
        }
    }
    (streams.into_values().collect(), again)
}

/// Compares both the learner and an independent decoder with the known input.
#[test]
fn what_is_learnt_beside_a_congested_queue_is_what_was_played() {
    if !swell_needs::programs(&["tshark"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("congested");
    let mut model = world();
    let exchanges = (model.sessions.iter_mut().zip(0..))
        .map(|(s, i)| (&mut s.groups[0].connections[0].exchange, i));
    for (exchange, i) in exchanges {
        if let Exchange::Sequential(turns) = exchange {
            turns.iter_mut().for_each(|t| t.response = 20_000 + 100 * i);
        }
    }
    let packets = 8;
    let link = LinkConfig {
        rate: Some(Rate::from_bps(800_000)),
        queue: QueueLimit::Packets(packets),
        ..LinkConfig::default()
    };
    let found = learnt_again(&model, Config::linux(), link, &path);
    let (streams, again) = by_tshark(scratch.path(), &path);
    let dropped = found.dropped[0] + found.dropped[1];
    assert!(dropped > 100, "it is congested: {:?}", found.dropped);

    // Bytes of every connection, from all three sources.
    let sorted = |mut all: Vec<[u64; 2]>| {
        all.iter_mut().for_each(|way| way.sort_unstable());
        all.sort_unstable();
        all
    };
    let carried = |m: &Model| sorted(m.sessions.iter().map(Session::bytes).collect());
    assert_eq!(
        sorted(streams),
        carried(&model),
        "tshark and what was put in"
    );
    assert_eq!(
        carried(&found.model),
        carried(&model),
        "the learner and what was put in"
    );

    // Dropped segments were retransmitted: tshark's count agrees with the learner's loss estimates. For hosts with only
    // one or two samples, the learner cannot separate the link's queue from their own paths.
    assert!(again >= found.dropped[1], "{again} again of {dropped}");
    let lost: f64 = (found.model.client_paths.iter())
        .map(|p| p.loss_down * f64::from(p.loss_samples))
        .sum();
    let gone = found.dropped[1] as f64;
    assert!(
        (0.75..1.25).contains(&(lost / gone)),
        "{lost} lost of {gone}"
    );

    // Compare medians of times, because single values contain retransmissions and queueing.
    let longest = Rate::from_bps(800_000).transmit(Bytes(packets * 1500));
    let mut off: [Vec<f64>; 4] = Default::default();
    let mut whole = 0;
    for s in &found.model.sessions {
        let (connection, turns) = only(s);
        let truth = &model.sessions[turns[0].request as usize - 200];
        let (wanted, asked) = only(truth);
        whole += u32::from(turns.len() == asked.len());
        let client = |m: &Model, of: &Session| m.client_paths[of.client as usize].rtt;
        let server = |m: &Model, c: &Connection| m.server_paths[c.server as usize].rtt;
        let ms = |a: Dur, b: Dur| (a.as_secs_f64() - b.as_secs_f64()) * 1e3;
        off[0].push(ms(client(&found.model, s), client(&model, truth)));
        off[1].push(ms(server(&found.model, connection), server(&model, wanted)));
        off[2].push(ms(turns[0].server_think, asked[0].server_think));
        off[3].push(ms(turns[0].client_think, asked[0].client_think));
    }
    let median = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let [client, server, served, thought] = off.each_mut().map(median);
    // The queue is between the tap and the clients. Its delay stays below the maximum.
    let queue = longest.as_secs_f64() * 1e3;
    assert!((0.0..queue / 2.0).contains(&client), "{client} ms");
    assert!((0.0..5.0).contains(&server), "{server} ms");
    assert!((-5.0..15.0).contains(&served), "{served} ms");
    assert!((-15.0..queue).contains(&thought), "{thought} ms");
    // A TCP timeout in the middle of a response is not a pause of the server. ACKs also wait in the other queue, where
    // they cannot always be distinguished from a server's think time: 51 of 60 were recovered completely when this was
    // written, and which ones is random. The learner's own tests cover each rule.
    assert!(10 * whole >= 7 * USERS, "{whole} of {USERS}");
}
