//! How runs end, and configurations that are refused.

use std::time::Duration;

use swell_base::Code;

use super::*;

#[test]
fn what_nobody_renews_ends() {
    let server = server();
    let endless = Closed {
        sessions: 2,
        up: 100,
        down: 100,
    };
    let client = client(&server, endless, Play::default());
    agreed(&client);
    client.start();
    for _ in 0..30 {
        client.renew(Dur::from_secs(2));
        server.renew(Dur::from_secs(2));
        std::thread::sleep(Duration::from_millis(100));
    }
    // Three seconds, while the lease is two.
    assert!(client.is_running() && server.is_running());
    until(|| !client.is_running() && !server.is_running());
    assert!(client.is_expired() && server.is_expired());
    let counts = client.statistics().counts;
    let flows = client.flows(0, usize::MAX).flows.len() as u64;
    assert!(counts.done > 0 && flows == counts.done + counts.failed + counts.unfinished);
}

/// Uploads and downloads that the end of the client's part cuts off have failed at neither end.
#[test]
fn what_the_end_cuts_off_is_unfinished_at_both_ends() {
    for (up, down) in [(1 << 40, 0), (0, 1 << 40)] {
        let server = server();
        let plan = Closed {
            sessions: 2,
            up,
            down,
        };
        let client = client(&server, plan, Play::default());
        agreed(&client);
        client.start();
        let begun = |run: &Run| {
            let counts = run.statistics().counts;
            counts.begun == 2 && counts.sent_bytes + counts.received_bytes > 1 << 20
        };
        until(|| begun(&client) && begun(&server));
        let own = client.stop().counts;
        assert_eq!((own.unfinished, own.failed), (2, 0));
        until(|| {
            let theirs = server.statistics().counts;
            theirs.unfinished + theirs.failed == 2
        });
        let theirs = server.stop().counts;
        assert_eq!((theirs.unfinished, theirs.failed), (2, 0));
    }
}

#[test]
fn when_one_side_goes_the_other_stops() {
    let big = |_| (48, 1 << 40);
    for gone in ["client", "server"] {
        let server = server();
        let traffic = transfers(3, 1, Dur::from_millis(10), big);
        let client = client(&server, traffic, Play::default());
        agreed(&client);
        client.start();
        until(|| client.statistics().counts.received_bytes > 1 << 20);
        // Three transfers and the lease.
        until(|| server.statistics().open == 4);
        if gone == "client" {
            drop(client);
            until(|| server.statistics().open == 0);
            let counts = server.statistics().counts;
            assert_eq!(counts.lost_parties, 0, "it said so");
            until(|| server.statistics().counts.unfinished == 3);
            assert_eq!(server.statistics().counts.failed, 0);
        } else {
            drop(server);
            // The client keeps trying to get a new lease.
            until(|| client.statistics().counts.failed == 3 && client.statistics().open <= 1);
            let statistics = client.statistics();
            assert_eq!((statistics.parties, statistics.counts.lost_parties), (0, 0));
            assert!(
                statistics
                    .doubts()
                    .iter()
                    .any(|d| d.code == Code::TransfersFailed)
            );
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let wrong = |role| Run::new(config(role)).err().map(|e| e.to_string());
    assert!(wrong(Role::Server(Server::default())).is_some());
    let traffic = || transfers(1, 1, Dur::ZERO, |_| (1, 1));
    let good = client_of(vec![target(&server())], traffic(), Play::default());
    let no_server = Client {
        servers: Vec::new(),
        ..good.clone()
    };
    let six = Client {
        pool: pool("fd00::/64"),
        ..good.clone()
    };
    let clients = [
        no_server,
        six,
        Client {
            index: 1,
            ..good.clone()
        },
    ];
    for client in clients {
        assert!(wrong(Role::Client(client)).is_some());
    }
    let taken = server();
    let role = Role::Server(Server {
        clients: vec![pool("127.0.0.1")],
        port: 1,
        ..Server::default()
    });
    // Port 1 may be in use, privileged or free. There must never be a panic.
    drop(Run::new(config(role)));
    drop(taken);
}

/// Traffic that ends one of two threads.
struct Faulty(Script);

struct Panics;

impl Plan for Faulty {
    fn part(&self, share: Share, now: Time) -> Box<dyn Traffic> {
        match share.index {
            0 => self.0.part(share, now),
            _ => Box::new(Panics),
        }
    }
}

impl Traffic for Panics {
    fn poll_at(&self) -> Option<Time> {
        Some(Time::ZERO)
    }
    fn pop(&mut self, _: Time) -> Option<Due> {
        panic!("on purpose")
    }
    fn active(&self) -> u64 {
        1
    }
}

#[test]
fn a_thread_that_panics_is_reported_and_nobody_waits_for_it() {
    let server = server();
    let plan = Faulty(transfers(2, 5, Dur::from_millis(10), |_| (100, 100)));
    let role = Role::Client(client_of(vec![target(&server)], plan, Play::default()));
    let client = Run::new(Config {
        threads: 2,
        ..config(role)
    })
    .unwrap();
    let (counts, _) = play(&client);
    assert_eq!(counts.done, 5);
    let doubts = client.statistics().doubts();
    let codes: Vec<&str> = doubts.iter().map(|d| d.code.as_str()).collect();
    assert_eq!(codes, ["thread-panicked"]);
}
