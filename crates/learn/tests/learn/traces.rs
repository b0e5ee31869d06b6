//! Real traces, if available: `SWELL_TRACES`, or `../shared/traces` beside the workspace.
#![expect(
    clippy::disallowed_methods,
    reason = "the traces lie where the tester has them"
)]

use std::path::PathBuf;

use crate::common::trace;
use swell_base::Code;
use swell_capture::Reader;
use swell_learn::{Learner, Options};
use swell_traffic::{Exchange, Marginals, Model, Quantity};

fn learn(path: &PathBuf) -> Model {
    let mut learner = Learner::new(Options::default());
    let mut reader = Reader::open(path).expect("the trace opens");
    while let Ok(Some(p)) = reader.next_packet() {
        learner.push(&p);
    }
    sound(learner)
}

fn sound(learner: Learner) -> Model {
    let m = learner.finish();
    m.check().expect("a learnt model holds together");
    assert_eq!(
        Model::from_slice(m.to_json().as_bytes()).expect("read back"),
        m
    );
    m
}

fn near(got: u64, want: u64, share: f64) {
    let off = (got as f64 / want as f64 - 1.0).abs();
    assert!(off <= share, "{got} where an independent count says {want}");
}

/// Against tshark's counts (the traces' README). Ours may differ by packets that tshark also finds inside
/// tunnels, and by connections split at silences: 1 %.
#[test]
fn composite() {
    let Some(path) = trace("derived/composite-access-link-5min.pcap.zst") else {
        return;
    };
    let m = learn(&path);
    near(m.totals.tcp_connections, 1_588, 0.01);
    near(m.totals.tcp_handshakes, 1_091, 0.01);
    near(m.totals.udp_flows, 1_933, 0.01);
    let file = m.to_zstd().expect("memory suffices");
    assert!(file.len() < 1_000_000, "{}", file.len());
    // tshark's figures are per connection, ours the median of each connection's server: 10 %.
    let mut rtts = Vec::new();
    for s in m
        .sessions
        .iter()
        .filter(|s| !m.classes[s.class as usize].udp)
    {
        let paths = s.connections().map(|c| m.server_paths[c.server as usize]);
        rtts.extend(
            paths
                .filter(|p| p.rtt_samples > 0)
                .map(|p| p.rtt.as_nanos()),
        );
    }
    rtts.sort_unstable();
    for (percent, want) in [(10, 4_230_000), (50, 52_310_000), (90, 215_470_000)] {
        near(rtts[rtts.len() * percent / 100], want, 0.1);
    }
    for code in [
        Code::FewHandshakes,
        Code::LeftCensored,
        Code::ShortTrace,
        Code::UdpOpenLoop,
    ] {
        assert!(
            m.warnings.iter().any(|w| w.code == code),
            "no warning {code}"
        );
    }
}

/// Against tshark's RTTs per connection (the traces' README).
#[test]
fn reddit() {
    let Some(path) = trace("link/reddit-ipv6-14s.pcap.zst") else {
        return;
    };
    let m = learn(&path);
    assert_eq!(m.totals.tcp_connections, 60);
    assert_eq!(m.totals.tcp_handshakes, 59);
    let x = Marginals::of(&m);
    let rtt = x.get("", Quantity::ServerRtt).expect("round trips");
    for (q, want) in [(0.1, 0.02584), (0.5, 0.03473), (0.9, 0.04466)] {
        let got = rtt.quantile(q).expect("round trips");
        assert!(
            (got / want - 1.0).abs() < 0.1,
            "quantile {q}: {got} for {want}"
        );
    }
    assert_eq!(m.sessions.len(), 1);
    near(m.sessions[0].bytes().iter().sum(), 2_194_000, 0.05);
}

#[test]
fn ssh_on_a_lan() {
    let Some(path) = trace("link/ssh-lan-494s.pcap.zst") else {
        return;
    };
    let m = learn(&path);
    assert_eq!(
        (m.totals.tcp_connections, m.totals.tcp_handshakes),
        (41, 40)
    );
    assert!(
        m.sessions
            .iter()
            .all(|s| m.classes[s.class as usize].name == "ssh")
    );
    near(
        m.sessions
            .iter()
            .map(|s| s.bytes().iter().sum::<u64>())
            .sum(),
        658_000,
        0.01,
    );
}

/// Every trace gives a sound model under a megabyte.
#[test]
fn every_link_trace_gives_a_sound_model() {
    let Some(dir) = trace("link") else {
        return;
    };
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let m = learn(&path);
        assert!(!m.sessions.is_empty(), "{}", path.display());
        assert!(m.to_json().len() < 1_000_000, "{}", path.display());
    }
}

/// The bundled model is what `swell learn` makes of its trace, which holds packets twice.
#[test]
fn the_bundled_video_app_is_what_is_learnt_of_its_trace() {
    let Some(path) = trace("link/1kxun-video-61s.pcapng") else {
        return;
    };
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models");
    let bundled = std::fs::read(format!("{models}/video-app.json.zst")).expect("bundled");
    let bundled = Model::from_slice(&bundled).expect("a bundled model reads");
    let mut learner = Learner::new(Options::default());
    let mut reader = Reader::open(&path).expect("the trace opens");
    let read = learner.read(&mut reader);
    assert!(read.damage.is_none(), "{read:?}");
    assert_eq!(read.doubts[0].code, Code::CapturedTwice);
    let learnt = sound(learner);
    assert_eq!(learnt.totals, bundled.totals);
    assert_eq!(learnt.sessions, bundled.sessions);
    // The copies would be a third of the packets up.
    assert!(learn(&path).totals.packets[0] > learnt.totals.packets[0]);
}

/// Users with known behaviour, simulated and written to a packet file by `scripts/traces`.
#[test]
fn known_users_are_found_again() {
    let Some(path) = crate::common::made("link/known-users.pcapng") else {
        return;
    };
    let m = learn(&path);
    // As in truth.json: three turns of 400 and 30 000 bytes, with think times of 50 and 900 ms.
    let mut found = 0;
    for c in m.sessions.iter().flat_map(|s| s.connections()) {
        if c.left_censored || c.right_censored {
            continue;
        }
        let Exchange::Sequential(turns) = &c.exchange else {
            panic!("{:?}", c.exchange);
        };
        let sizes: Vec<_> = turns.iter().map(|t| (t.request, t.response)).collect();
        assert_eq!(sizes, [(400, 30_000); 3]);
        let server = turns.iter().map(|t| (t.server_think, 0.05));
        // The tap is before the 10 Mbit/s queue. In the second flight two segments arrive for each that
        // leaves, so five full ones are ahead of the last, of 1092 bytes. The learner takes that time for
        // client think time.
        let queue = (5.0 * 1500.0 + 1092.0) * 8.0 / 10e6;
        let client = turns[..2].iter().map(|t| (t.client_think, 0.9 + queue));
        for (think, want) in server.chain(client) {
            let off = think.as_secs_f64() - want;
            assert!(off.abs() < 0.0005, "{think} for {want} s");
        }
        found += 1;
    }
    assert!((18..=22).contains(&found), "{found} of 20 users");
}

/// Bytes of UDP flows to port 443, of the client and of the server. The first count is of whole datagrams,
/// the second as replayed if the flow consists of requests and responses. In the second count, datagrams
/// of less than 64 bytes are ignored once the server has answered. From the others, 12 bytes are
/// subtracted, the difference of TCP's header. Counted by tshark, flow by flow.
fn quic_flows(path: &std::path::Path) -> Option<Vec<[[u64; 2]; 2]>> {
    let fields = ["udp.stream", "udp.dstport", "udp.length"];
    let mut command = std::process::Command::new("tshark");
    command.arg("-r").arg(path).args(["-Y", "udp.port == 443"]);
    command.args(["-T", "fields", "-E", "separator=;"]);
    fields.iter().for_each(|f| {
        command.args(["-e", f]);
    });
    let Ok(out) = command.output() else {
        assert!(!swell_needs::programs(&["tshark"]), "it does not start");
        return None;
    };
    let mut flows = std::collections::BTreeMap::<u64, ([[u64; 2]; 2], bool)>::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let row: Vec<u64> = line
            .split(';')
            .map(|x| x.parse().expect("a number"))
            .collect();
        let (end, payload) = (usize::from(row[1] != 443), row[2] - 8);
        let (sums, answered) = flows.entry(row[0]).or_default();
        *answered |= end == 1;
        sums[0][end] += payload;
        if payload >= 64 || !*answered {
            sums[1][end] += payload.saturating_sub(12);
        }
    }
    Some(flows.into_values().map(|f| f.0).collect())
}

/// Real QUIC: the bytes of each flow equal those that tshark counts, as requests and responses or as
/// datagrams. No think time is longer than its flow.
#[test]
fn quic_is_what_tshark_counts() {
    for (name, talks) in [("youtube-quic", 3), ("quic", 9)] {
        let Some(path) = trace(&format!("proto/{name}.pcap")) else {
            return;
        };
        let Some(mut flows) = quic_flows(&path) else {
            return;
        };
        let m = learn(&path);
        let mut seen = 0;
        for c in m.sessions.iter().flat_map(|s| s.connections()) {
            let (kind, bytes) = match &c.exchange {
                Exchange::Datagrams(d) => (0, d.bytes()),
                Exchange::Sequential(_) => (1, c.exchange.bytes()),
                other => panic!("{other:?}"),
            };
            // A request that consists only of ACKs counts as one byte.
            let same =
                |f: &[[u64; 2]; 2]| (0..2).all(|end| f[kind][end].max(1) == bytes[end].max(1));
            if let Some(i) = flows.iter().position(same) {
                flows.swap_remove(i);
                seen += kind;
            }
        }
        assert!(flows.is_empty(), "{name}: not found: {flows:?}");
        assert!(
            seen >= talks,
            "{name}: {seen} flows are requests and responses"
        );
    }
}
