//! Agents that were cut off or restarted, and come back.

use super::*;

/// Readmits agents and fetches flows, with their clients.
fn fetch(controller: &mut Controller, flows: &mut Vec<(usize, crate::Flow)>) {
    controller.admit();
    for batch in controller.flows() {
        flows.extend(batch.flows.into_iter().map(|f| (batch.client, f)));
    }
}

/// Fetches until `enough` is true.
fn go_on(
    controller: &mut Controller,
    flows: &mut Vec<(usize, crate::Flow)>,
    mut enough: impl FnMut(&Controller) -> bool,
) {
    until(|| {
        fetch(controller, flows);
        enough(controller)
    });
}

fn client(controller: &Controller, n: usize) -> Standing {
    controller.standing().0.swap_remove(n)
}

fn count(controller: &Controller, n: usize) -> u64 {
    let statistics = client(controller, n).statistics;
    statistics.map_or(0, |s| s.counts.done)
}

/// Checks that every counted transfer was either fetched or reported as lost.
fn accounted(controller: &mut Controller, flows: &mut Vec<(usize, crate::Flow)>) {
    controller.stop();
    loop {
        let before = flows.len();
        for batch in controller.flows() {
            flows.extend(batch.flows.into_iter().map(|f| (batch.client, f)));
        }
        if flows.len() == before {
            break;
        }
    }
    let (clients, _) = controller.standing();
    for (n, standing) in clients.iter().enumerate() {
        let c = standing.statistics.as_ref().unwrap().counts;
        let rows = flows.iter().filter(|f| f.0 == n).count() as u64;
        let over = c.done + c.failed + c.unfinished;
        assert_eq!(
            rows + standing.lost + standing.waiting,
            over,
            "client {n}: {standing:?}"
        );
    }
}

#[test]
fn a_client_that_was_cut_off_plays_again_and_nothing_of_it_is_lost() {
    let (one, two, server) = (Running::new(None), Running::new(None), Running::new(None));
    let way = Way::to(one.address);
    let mut order = order(&[&one, &two], &[&server], Trust::Loopback);
    order.clients[0] = way.address.to_string().as_str().into();
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    let mut flows = Vec::new();
    go_on(&mut controller, &mut flows, |c| count(c, 0) > 20);
    way.lost.store(true, Ordering::Release);
    let state = || one.get("/v1/status")["runs"][0]["state"].clone();
    until(|| state() == "expired");
    go_on(&mut controller, &mut flows, |c| client(c, 0).missing);
    way.lost.store(false, Ordering::Release);
    go_on(&mut controller, &mut flows, |c| client(c, 0).returns == 1);
    let before = count(&controller, 0);
    go_on(&mut controller, &mut flows, |c| count(c, 0) > before + 100);
    let back = client(&controller, 0);
    assert!(!back.missing && back.returns == 1, "{back:?}");
    assert!(back.away > Duration::from_secs(1), "its lease was a second");
    assert_eq!(client(&controller, 1).returns, 0);
    // Its times continue with those of the others: no new transfer is due before the cut.
    let elapsed = back.statistics.unwrap().run.elapsed_s;
    let other = client(&controller, 1).statistics.unwrap().run.elapsed_s;
    assert!((elapsed - other).abs() < 2.0, "{elapsed} {other}");
    assert!(one.get("/v1/status")["runs"].as_array().unwrap().len() == 1);
    accounted(&mut controller, &mut flows);
    let (clients, _) = controller.standing();
    assert_eq!((clients[0].lost, clients[0].waiting), (0, 0));
    controller.end();
}

#[test]
fn agents_that_are_started_anew_play_again() {
    let (mut one, mut server) = (Running::new(None), Running::new(None));
    let two = Running::new(None);
    let order = order(&[&one, &two], &[&server], Trust::Loopback);
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    let mut flows = Vec::new();
    go_on(&mut controller, &mut flows, |c| count(c, 0) > 20);
    // The client restarts.
    let address = one.address;
    one.end();
    one = Running::at(address, None);
    let before = count(&controller, 0);
    go_on(&mut controller, &mut flows, |c| {
        client(c, 0).returns == 1 && count(c, 0) > before + 100
    });
    // The server restarts. Its clients know its ports, so it must use them again.
    let port = server.get("/v1/status")["runs"][0]["port"].clone();
    let address = server.address;
    server.end();
    server = Running::at(address, None);
    go_on(&mut controller, &mut flows, |c| {
        c.standing().1[0].returns == 1
    });
    let before = [count(&controller, 0), count(&controller, 1)];
    go_on(&mut controller, &mut flows, |c| {
        count(c, 0) > before[0] + 200 && count(c, 1) > before[1] + 200
    });
    assert_eq!(server.get("/v1/status")["runs"][0]["port"], port);
    assert_eq!(controller.standing().1[0].returns, 1);
    assert!(one.get("/v1/status")["runs"].as_array().unwrap().len() == 1);
    accounted(&mut controller, &mut flows);
    controller.end();
}

/// The datagram sources of a client that is started again are in progress at once. Those of its earlier life have no row.
#[test]
fn sources_in_progress_are_played_after_a_restart() {
    let (mut one, server) = (Running::new(None), Running::new(None));
    let part = json!({ "model": { "model": crate::tests::models::steady().to_json() } });
    let order = Order {
        traffic: serde_json::from_value(part).unwrap(),
        ..order(&[&one], &[&server], Trust::Loopback)
    };
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    let counts = |c: &Controller| {
        client(c, 0)
            .statistics
            .map_or_else(Default::default, |s| s.counts)
    };
    until(|| counts(&controller).datagrams_sent > 1_000);
    let address = one.address;
    one.end();
    one = Running::at(address, None);
    let mut flows = Vec::new();
    go_on(&mut controller, &mut flows, |c| client(c, 0).returns == 1);
    let before = counts(&controller);
    // 200 sources send ten datagrams a second each. One begins in two seconds.
    go_on(&mut controller, &mut flows, |c| {
        counts(c).datagrams_sent > before.datagrams_sent + 2_000
    });
    let begun = counts(&controller).sources_begun;
    assert!((390..450).contains(&begun), "{begun}");
    controller.stop();
    let without_row = counts(&controller).in_progress();
    assert!((190..210).contains(&without_row), "{without_row}");
    drop(one);
    controller.end();
}

#[test]
fn another_controllers_run_after_a_restart_is_left_alone() {
    let (mut one, server) = (Running::new(None), Running::new(None));
    let order = order(&[&one], &[&server], Trust::Loopback);
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    until(|| done(&controller) > 0);
    let own = one.run();
    let address = one.address;
    one.end();
    one = Running::at(address, None);
    // After the restart, another controller creates a run first. It is not renewed, so its lease must expire.
    let mut run: Value = serde_json::from_str(&server_run()).unwrap();
    run["lease_s"] = json!(2.0);
    let (status, said) = one.ask(Some(TOKEN), "POST", "/v1/runs", &run.to_string());
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(status, 201);
    let id = said["id"].as_u64().unwrap();
    // JavaScript, for one, has exact numbers up to 2^53.
    assert!(id < 1 << 53, "{id}");
    let theirs = format!("/v1/runs/{id}");
    assert_ne!(
        own, theirs,
        "a request about the one would change the other"
    );
    until(|| {
        controller.admit();
        client(&controller, 0).returns == 1
    });
    until(|| one.get(&theirs)["state"] == "expired");
    let playing = format!("/v1/runs/{}", id + 1);
    assert_eq!(one.get(&playing)["state"], "playing");
    controller.end();
    assert_eq!(one.get(&theirs)["state"], "expired", "not deleted either");
}

/// An agent deletes runs that ended long ago. Its controller may have been cut off for longer.
#[test]
fn an_agent_that_no_longer_has_the_run_plays_again() {
    let (one, server) = (Running::new(None), Running::new(None));
    let order = order(&[&one], &[&server], Trust::Loopback);
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    // At least one report, so that flows are known to be lost.
    until(|| count(&controller, 0) > 20);
    assert_eq!(one.ask(Some(TOKEN), "DELETE", &one.run(), "").0, 204);
    until(|| {
        controller.admit();
        client(&controller, 0).returns == 1
    });
    let before = count(&controller, 0);
    assert!(client(&controller, 0).lost > 20);
    let mut flows = Vec::new();
    go_on(&mut controller, &mut flows, |c| count(c, 0) > before + 20);
    controller.end();
}

#[test]
fn flows_of_an_earlier_part_come_with_its_beginning() {
    let (one, server) = (Running::new(None), Running::new(None));
    let way = Way::to(one.address);
    let mut order = order(&[&one], &[&server], Trust::Loopback);
    order.clients[0] = way.address.to_string().as_str().into();
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    until(|| count(&controller, 0) > 20);
    way.lost.store(true, Ordering::Release);
    until(|| client(&controller, 0).missing);
    // Nothing more is heard of this part, so what is known of its beginning stays.
    let earlier = client(&controller, 0).beginning.unwrap();
    way.lost.store(false, Ordering::Release);
    until(|| {
        controller.admit();
        client(&controller, 0).returns == 1
    });
    assert_ne!(client(&controller, 0).beginning, Some(earlier));
    let mut beginnings = Vec::new();
    until(|| {
        for batch in controller.flows() {
            // Whoever gets flows of an earlier part has to ask for those of the present one.
            assert!(batch.more || batch.beginning != Some(earlier));
            beginnings.push(batch.beginning.unwrap());
        }
        beginnings.last().is_some_and(|last| *last != earlier)
    });
    assert_eq!(beginnings[0], earlier);
    controller.end();
}

/// The load is set while one of two clients does not answer. Its run survives.
#[test]
fn a_client_that_misses_a_load_gets_it_when_it_answers_again() {
    let (one, two, server) = (Running::new(None), Running::new(None), Running::new(None));
    let way = Way::to(one.address);
    let part = json!({ "model": { "model": crate::tests::models::steady().to_json() } });
    let mut order = Order {
        traffic: serde_json::from_value(part).unwrap(),
        lease: Dur::from_secs(6),
        ..order(&[&one, &two], &[&server], Trust::Loopback)
    };
    order.clients[0] = way.address.to_string().as_str().into();
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    let sources = |c: &Controller, n: usize| {
        let statistics = client(c, n).statistics;
        statistics.map_or(0, |s| s.counts.sources_begun - s.counts.sources_ended)
    };
    // Each client has half of 200 sources.
    until(|| (0..2).all(|n| sources(&controller, n) > 90));
    way.lost.store(true, Ordering::Release);
    controller.set_load(2.0).unwrap();
    way.lost.store(false, Ordering::Release);
    until(|| {
        controller.admit();
        (0..2).all(|n| sources(&controller, n) > 180)
    });
    assert!((0..2).all(|n| sources(&controller, n) < 230));
    // No client takes what is no load, and none needs to answer for that.
    way.lost.store(true, Ordering::Release);
    for load in [-1.0, 0.0, f64::NAN, 1e300] {
        assert!(controller.set_load(load).is_err(), "{load}");
    }
    controller.end();
}
