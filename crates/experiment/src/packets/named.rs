//! Which hosts the packets of a workload have.

use std::collections::BTreeSet;
use std::sync::Arc;

use swell_base::{Bytes, Dur, Rate, Side, Tag};
use swell_capture::Reader;
use swell_learn::{Learner, Options};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_workload::{Access, Greedy, GreedyConfig, Web, WebConfig};
use swell_world::World;

use super::*;

/// The connections of one client are those of one host, and all are to one server: sessions are learnt by host.
#[test]
fn a_client_keeps_its_address_from_connection_to_connection() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("web.pcapng");
    let link = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        ..LinkConfig::default()
    };
    let far = Access {
        delay: Dur::from_millis(10),
        ..Access::default()
    };
    let tcp = Arc::new(Config::linux());
    let mut world = World::new(&[link.clone(), link], 3);
    let source = Source {
        tcp: Arc::clone(&tcp),
        classes: Vec::new(),
        port: 80,
    };
    let recorder =
        Recorder::create(&path, "bottleneck", SharedHeaders::new(vec![source], 3)).unwrap();
    world.set_tap(recorder.tap());
    let web = Web::new(WebConfig {
        clients: 3,
        objects: vec![Bytes(5_000)],
        request: Bytes(120),
        server_think: Dur::ZERO,
        think: Dur::from_millis(200),
        keep: false,
        count: None,
        start: Dur::ZERO,
        client: far,
        server: far,
    });
    world.add(Box::new(web), Tag::Background, tcp);
    world.advance(Time::from_secs_f64(10.0));
    recorder.finish().unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let (mut clients, mut servers) = (BTreeSet::new(), BTreeSet::new());
    let mut ports = BTreeSet::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        if packet.interface == 0 {
            clients.insert(packet.src);
            servers.insert(packet.dst);
            if let Transport::Tcp(segment) = packet.transport {
                ports.insert((packet.src, segment.src_port));
            }
        }
    }
    assert_eq!((clients.len(), servers.len()), (3, 1));
    assert!(ports.len() > 60, "{} connections", ports.len());
}

/// Endless downloads, whose senders on the right open the connections, are learnt as downloads.
#[test]
fn downloads_are_learnt_as_downloads_whoever_opens_them() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("greedy.pcapng");
    let link = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        ..LinkConfig::default()
    };
    let tcp = Arc::new(Config::linux());
    let mut world = World::new(&[link.clone(), link], 3);
    let source = Source {
        tcp: Arc::clone(&tcp),
        classes: Vec::new(),
        port: 5001,
    };
    let recorder = Recorder::create(&path, "access", SharedHeaders::new(vec![source], 3)).unwrap();
    world.set_tap(recorder.tap());
    let greedy = Greedy::new(GreedyConfig {
        connections: 4,
        from: Side::Right,
        ..GreedyConfig::default()
    });
    world.add(Box::new(greedy), Tag::Background, tcp);
    world.advance(Time::from_secs_f64(5.0));
    recorder.finish().unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let mut learner = Learner::new(Options::default());
    while let Some(packet) = reader.next_packet().unwrap() {
        learner.push(&packet);
    }
    let model = learner.finish();
    let [up, down] = model.totals.bytes;
    assert!(down > 20 * up, "{up} and {down}");
    assert!(model.sessions.iter().all(|s| s.outside));
    let played = model.sessions.iter().map(|s| s.bytes()[0]).sum::<u64>();
    assert!(played > 5_000_000, "{played}");
}
