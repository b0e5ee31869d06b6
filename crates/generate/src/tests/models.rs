//! Flow-level models, and changes while they run.

use std::time::Duration;

use swell_traffic::flowlevel::{
    self, Configurator, FlowModel, Histogram, Options, Playback, Record, UdpKind, UdpSources,
    Uniflow,
};

use super::*;

/// A flow-level model with four intervals and these numbers of sessions. Each session makes a transfer every 10 ms.
fn model(sessions: [u64; 4]) -> FlowModel {
    let mut c = Configurator::new(Options {
        interval: Dur::from_secs(1),
        ..Options::default()
    });
    for i in 0..300i64 {
        let seen = Uniflow {
            packets: 4,
            bytes: 4_160,
            flags: Some(0x1b),
            first: i * 10_000_000,
            last: i * 10_000_000 + 1,
        };
        c.add(&Record {
            source: 1,
            destination: 2,
            source_port: 80,
            destination_port: 2_000 + i as u16,
            protocol: 6,
            header: 40,
            forward: seen,
            reverse: None,
            continues: false,
            sampling: 1.0,
        });
    }
    let mut model = c.finish("test", Default::default()).unwrap();
    let intervals = &mut model.tcp.intervals;
    intervals.resize(4, Default::default());
    model.span[1] = 4_000_000_000;
    for (interval, n) in intervals.iter_mut().zip(sessions) {
        interval.sessions = n;
    }
    model
}

fn plan(model: &FlowModel, playback: Playback) -> Arc<Model> {
    let plan = flowlevel::Plan::new(model, &playback).unwrap();
    Arc::new(Model { plan, seed: 1 })
}

#[test]
fn a_model_is_played_interval_by_interval_and_faster_when_compressed() {
    let server = server();
    let model = model([3, 0, 7, 1]);
    let playback = Playback {
        compression: 4.0,
        ..Playback::default()
    };
    let role = Role::Client(Client {
        plan: plan(&model, playback),
        ..client_of(vec![target(&server)], Script(Vec::new()), Play::default())
    });
    let (counts, flows) = play(&Run::new(config(role)).unwrap());
    assert_eq!((counts.failed, counts.withheld), (0, 0));
    // Gaps are not compressed: each session makes 25 transfers in a quarter of a second, give or take one.
    let in_interval = |k: u64| flows.iter().filter(|f| f.due / 250_000_000 == k).count();
    for (k, sessions) in [(0, 3), (1, 0), (2, 7), (3, 1)] {
        let n = in_interval(k);
        assert!((24 * sessions..=26 * sessions).contains(&n), "{k}: {n}");
    }
    assert!(
        flows
            .iter()
            .all(|f| f.down >= 3_990 && f.outcome == Outcome::Done)
    );
}

#[test]
fn load_changes_and_other_traffic_take_effect_while_it_runs() {
    let server = server();
    let model = model([10; 4]);
    let loaded = |load| {
        plan(
            &model,
            Playback {
                load,
                cycle: true,
                ..Playback::default()
            },
        )
    };
    let role = Role::Client(Client {
        plan: loaded(1.0),
        ..client_of(vec![target(&server)], Script(Vec::new()), Play::default())
    });
    let client = Run::new(config(role)).unwrap();
    agreed(&client);
    assert_eq!(client.statistics().sessions, 0, "not before the start");
    client.start();
    for (load, sessions) in [(1.0, 10), (2.5, 25), (0.3, 3), (1.0, 10)] {
        client.set_load(loaded(load));
        until(|| client.statistics().sessions == sessions);
    }
    client.set_plan(Arc::new(Script(Vec::new())));
    until(|| client.is_played() && client.statistics().sessions == 0);
    let done = client.statistics().counts.done;
    assert!(done > 0);
    client.set_plan(loaded(1.0));
    until(|| client.statistics().counts.done > done);
}

/// 200 sources that send a datagram every 100 ms, each for minutes.
pub fn steady() -> FlowModel {
    steady_of(200)
}

/// So many of these sources.
fn steady_of(sources: u64) -> FlowModel {
    let of = |value: u64| {
        let mut histogram = Histogram::default();
        histogram.add_many(value, sources);
        histogram
    };
    let each = 4_000;
    let mut model = model([0; 4]);
    model.interval = Dur::from_secs(100);
    model.span[1] = model.span[0] + 400_000_000_000;
    model.udp = vec![UdpSources {
        kind: UdpKind::ConstantRate,
        sources,
        flows: sources,
        packets: sources * each,
        bytes: sources * each * 100,
        answers: 0,
        answer_bytes: 0,
        spacing: of(100_000),
        durations: of(400_000_000),
        pauses: Histogram::default(),
        datagrams: of(100),
        volumes: of(each * 100),
        lifetimes: of(400_000_000),
        active: vec![sources; 4],
    }];
    model
}

#[test]
fn a_new_load_changes_the_rate_of_running_sources() {
    let server = server();
    let model = steady();
    let loaded = |load| {
        plan(
            &model,
            Playback {
                load,
                cycle: true,
                ..Playback::default()
            },
        )
    };
    let role = Role::Client(Client {
        plan: loaded(1.0),
        ..client_of(vec![target(&server)], Script(Vec::new()), Play::default())
    });
    let client = Run::new(config(role)).unwrap();
    for run in [&client, &server] {
        run.renew(Dur::from_secs(600));
    }
    agreed(&client);
    client.start();
    let now = || {
        let sent = client.statistics().counts.datagrams_sent as f64;
        (client.elapsed().as_secs_f64(), sent)
    };
    // Datagrams per second: of each load, within five standard errors of the number of sources.
    for (load, least, most) in [
        (1.0, 1_900.0, 2_100.0),
        (0.25, 200.0, 800.0),
        (1.0, 800.0, 3_200.0),
    ] {
        client.set_load(loaded(load));
        let mut before = now();
        until(|| {
            std::thread::sleep(Duration::from_secs(1));
            let after = now();
            let rate = (after.1 - before.1) / (after.0 - before.0);
            before = after;
            (least..most).contains(&rate)
        });
    }
    let counts = client.stop().counts;
    assert_eq!((counts.withheld, counts.datagrams_refused), (0, 0));
    let flows = client.flows(0, usize::MAX).flows;
    let ended = flows.iter().filter(|f| f.outcome == Outcome::Unfinished);
    assert!(ended.count() > 100, "the lower load ends sources");
}

/// Sixteen threads have about one source each. Some of them end, and some stay.
#[test]
fn every_thread_draws_for_itself_which_sources_end() {
    let server = server();
    let model = steady_of(16);
    let loaded = |load| {
        let playback = Playback {
            load,
            ..Playback::default()
        };
        plan(&model, playback)
    };
    let role = Role::Client(Client {
        plan: loaded(1.0),
        ..client_of(vec![target(&server)], Script(Vec::new()), Play::default())
    });
    let client = Run::new(Config {
        threads: 16,
        elapsed: Dur::from_secs(50),
        ..config(role)
    });
    let client = client.unwrap();
    for run in [&client, &server] {
        run.renew(Dur::from_secs(600));
    }
    agreed(&client);
    client.start();
    let counts = || client.statistics().counts;
    until(|| counts().datagrams_sent > 200);
    let begun = counts().sources_begun;
    assert!((8..32).contains(&begun), "{begun}");
    client.set_load(loaded(0.5));
    until(|| counts().sources_ended > 0);
    std::thread::sleep(Duration::from_secs(1));
    let ended = counts().sources_ended;
    assert!((2..begun - 1).contains(&ended), "{ended} of {begun}");
}

/// A running client of this plan.
fn playing(server: &Run, plan: Arc<Model>, elapsed: Dur) -> Run {
    let role = Role::Client(Client {
        plan,
        ..client_of(vec![target(server)], Script(Vec::new()), Play::default())
    });
    let client = Run::new(Config {
        elapsed,
        ..config(role)
    });
    let client = client.unwrap();
    for run in [&client, server] {
        run.renew(Dur::from_secs(600));
    }
    agreed(&client);
    client.start();
    client
}

/// The client that joins after 50 s sends 200 times ten datagrams a second, all of sources that began before.
#[test]
fn a_part_that_joins_later_plays_the_sources_in_progress() {
    let server = server();
    let plan = plan(&steady(), Playback::default());
    let client = playing(&server, plan, Dur::from_secs(50));
    // Nearly none begins meanwhile: one each two seconds.
    until(|| client.statistics().counts.datagrams_sent > 1_000);
    let sent = client.stop().counts.datagrams_sent;
    let rate = sent as f64 / (client.elapsed().as_secs_f64() - 50.0);
    assert!(rate < 2_200.0, "{rate}");
}

/// A load that is set before the sources in progress have been entered does not lose them.
#[test]
fn a_load_set_at_once_keeps_the_sources_in_progress() {
    let server = server();
    let loaded = |load| {
        let playback = Playback {
            load,
            ..Playback::default()
        };
        plan(&steady(), playback)
    };
    let client = playing(&server, loaded(1.0), Dur::from_secs(50));
    client.set_load(loaded(2.0));
    until(|| client.statistics().counts.datagrams_sent > 2_000);
    let sent = client.stop().counts.datagrams_sent;
    let rate = sent as f64 / (client.elapsed().as_secs_f64() - 50.0);
    assert!((3_000.0..4_400.0).contains(&rate), "{rate}");
}

/// Other traffic ends the sources of the earlier one, and its own are in progress at once.
#[test]
fn other_traffic_replaces_running_sources() {
    let server = server();
    let (one, mut other) = (steady(), steady());
    let mut of = Histogram::default();
    of.add_many(333, 200);
    other.udp[0].datagrams = of;
    let client = playing(&server, plan(&one, Playback::default()), Dur::ZERO);
    let bytes = |run: &Run| run.statistics().counts.datagram_bytes_sent;
    until(|| bytes(&client) > 50_000);
    client.set_plan(plan(&other, Playback::default()));
    let flows = |run: &Run| run.flows_logged();
    until(|| flows(&client) >= 200);
    let before = client.statistics().counts;
    until(|| client.statistics().counts.datagrams_sent > before.datagrams_sent + 500);
    let after = client.stop().counts;
    let sent = after.datagrams_sent - before.datagrams_sent;
    assert_eq!(
        after.datagram_bytes_sent - before.datagram_bytes_sent,
        sent * 333
    );
    let ended = client.flows(0, usize::MAX).flows;
    let earlier = ended.iter().filter(|f| f.up % 100 == 0 && f.up % 333 != 0);
    assert!(earlier.count() > 150);
}

#[test]
fn a_plan_that_comes_with_the_start_is_the_one_that_is_played() {
    let server = server();
    let model = model([10; 4]);
    let playback = Playback {
        cycle: true,
        ..Playback::default()
    };
    for _ in 0..20 {
        let client = client(&server, Script(Vec::new()), Play::default());
        client.set_plan(plan(&model, playback));
        client.start();
        until(|| client.statistics().sessions == 10);
    }
}

#[test]
fn closed_sessions_stay_closed_when_other_traffic_takes_over() {
    let server = server();
    let closed = |down| Closed {
        sessions: 2,
        up: 48,
        down,
    };
    let client = client(&server, closed(50_000), Play::default());
    agreed(&client);
    client.start();
    for n in 1..=20 {
        until(|| client.statistics().counts.done > 3 * n);
        client.set_plan(Arc::new(closed(50_000 + n)));
    }
    let last = |f: &&Flow| f.down == 50_020;
    let mut flows = Vec::new();
    until(|| {
        flows.extend(client.flows(flows.len() as u64, usize::MAX).flows);
        flows.iter().filter(last).count() > 400
    });
    for session in [0, 1] {
        let mut own: Vec<&Flow> = flows.iter().filter(last).collect();
        own.retain(|f| f.session == session);
        own.sort_by_key(|f| f.begun);
        assert!(own.len() > 1 && own.windows(2).all(|w| w[0].end <= w[1].begun));
    }
}
