//! Datagram sources.

use swell_base::Rate;

use super::*;

#[test]
fn datagrams_keep_their_rate_and_are_answered() {
    let server = server();
    // 20 Mbit/s in datagrams of 1250 bytes are 2000 per second, in each direction.
    let gap = Dur::from_micros(500);
    let both = burst(1.0, 1_250);
    let script = Script(vec![source(
        UdpKind::ConstantRate,
        gap,
        Dur::from_secs(1),
        both,
        both,
    )]);
    let client = client(&server, script, Play::default());
    let (counts, flows) = play(&client);
    // The phase is random, but the number is not.
    assert_eq!(counts.datagrams_sent, 2_000);
    assert_eq!(counts.datagram_bytes_sent, 2_500_000);
    assert_eq!(counts.datagrams_refused, 0);
    let theirs = server.stop().counts;
    assert_eq!(theirs.datagrams_received, 2_000);
    assert_eq!(
        (theirs.datagrams_sent, theirs.datagram_bytes_sent),
        (2_000, 2_500_000)
    );
    assert_eq!(flows.len(), 1);
    assert!(flows[0].datagrams && flows[0].up == counts.datagram_bytes_sent);
    assert_eq!((flows[0].down, flows[0].again), (2_500_000, 2_000));
}

#[test]
fn a_servers_datagrams_are_asked_for() {
    let server = server();
    let (gap, span) = (Dur::from_millis(5), Dur::from_millis(500));
    let down = burst(130.0, 500);
    let script = Script(vec![source(
        UdpKind::Periodic,
        gap,
        span,
        burst(0.0, 0),
        down,
    )]);
    let (counts, _) = play(&client(&server, script, Play::default()));
    // A hundred exchanges; each needs several datagrams to request all answers.
    assert_eq!(counts.datagrams_sent, 300);
    assert_eq!(counts.datagrams_received, 13_000);
    assert_eq!(counts.datagram_bytes_received, 13_000 * 500);
}

#[test]
fn an_exchange_of_very_many_datagrams_is_sent_piece_by_piece() {
    let server = server();
    let (gap, span) = (Dur::from_millis(200), Dur::from_millis(300));
    let (up, down) = (burst(10_000.0, 100), burst(100.0, 30));
    let script = Script(vec![source(UdpKind::Periodic, gap, span, up, down)]);
    let (counts, flows) = play(&client(&server, script, Play::default()));
    let exchanges = counts.datagrams_sent / 10_000;
    assert!((1..=2).contains(&exchanges));
    assert_eq!(
        counts.datagrams_sent + counts.datagrams_refused,
        exchanges * 10_000
    );
    assert_eq!(flows[0].up, counts.datagram_bytes_sent);
    let theirs = server.stop().counts;
    // The requests for answers are spread over all datagrams of an exchange.
    assert!(theirs.datagrams_sent <= 100 * exchanges);
}

/// A source that ends before its first exchange has no row. If the kernel accepts none of its datagrams, it has
/// failed. No row ends before it begins.
#[test]
fn rows_of_sources_say_what_became_of_them() {
    let server = server();
    let second = Dur::from_secs(1);
    let one = |number: u64, until: Dur, payload: u32| {
        let all = source(
            UdpKind::Exponential,
            Dur::from_millis(200),
            until,
            burst(1.0, payload),
            burst(0.0, 0),
        );
        let Due::Datagrams(mut source) = all else {
            panic!("a source")
        };
        (source.number, source.kind) = (number, UdpKind::Other);
        source.exchanges = Some(u64::from(payload > 0));
        source.at = after(Dur::from_millis(300));
        source.until = source.at + until;
        Due::Datagrams(source)
    };
    // The largest payload of a UDP datagram, and a larger one: EMSGSIZE (udp(7)).
    let script = Script(vec![
        one(0, second, 0),
        one(1, second, 1_000),
        one(2, second, 65_600),
    ]);
    let (counts, mut flows) = play(&client(&server, script, Play::default()));
    flows.sort_by_key(|f| f.session);
    let rows: Vec<_> = flows.iter().map(|f| (f.session, f.outcome, f.up)).collect();
    assert_eq!(
        rows,
        [(1, Outcome::Done, 1_000), (2, Outcome::Failed, 0)],
        "{flows:?}"
    );
    assert_eq!((counts.datagrams_sent, counts.datagrams_refused), (1, 1));
    assert!(flows.iter().all(|f| f.begun <= f.end), "{flows:?}");
}

/// A source whose socket cannot be made has a row, as every other one.
#[test]
fn a_source_without_a_socket_has_failed() {
    // No socket may connect to the broadcast address by itself: EACCES (connect(2)).
    let nowhere = pool("255.255.255.255");
    let role = Role::Server(Server {
        clients: vec![pool("127.0.0.0/8")],
        pool: nowhere.clone(),
        port: 0,
    });
    let server = Run::new(config(role)).unwrap();
    let second = Dur::from_secs(1);
    let one = burst(1.0, 100);
    let script = Script(vec![source(
        UdpKind::Periodic,
        second / 10,
        second,
        one,
        one,
    )]);
    let to = Target {
        pool: nowhere,
        ..target(&server)
    };
    let role = Role::Client(client_of(vec![to], script, Play::default()));
    let (counts, flows) = play(&Run::new(config(role)).unwrap());
    assert_eq!((counts.sources_begun, counts.sources_ended), (1, 1));
    assert_eq!((counts.sources_failed, counts.failed), (1, 0));
    assert_eq!(flows.len(), 1);
    assert!(flows[0].datagrams && flows[0].outcome == Outcome::Failed);
}

/// A client whose first source asks for answers that nobody gives, while the second one asks for none. With the socket
/// that takes their datagrams.
fn unanswered(server: &Run) -> (Run, std::net::UdpSocket) {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = Target {
        datagrams: silent.local_addr().unwrap().port(),
        ..target(server)
    };
    let (gap, span, one) = (Dur::from_millis(20), Dur::from_millis(100), burst(1.0, 100));
    let numbered = |number: u64, down: Burst| match source(UdpKind::Periodic, gap, span, one, down)
    {
        Due::Datagrams(source) => Due::Datagrams(UdpSource { number, ..source }),
        Due::Transfer(_) => panic!("a source"),
    };
    let script = Script(vec![numbered(0, one), numbered(1, burst(0.0, 0))]);
    let role = Role::Client(client_of(vec![to], script, Play::default()));
    (Run::new(config(role)).unwrap(), silent)
}

/// As a query of which nothing comes back.
#[test]
fn a_source_whose_requests_are_never_answered_has_failed() {
    let server = server();
    let (client, _silent) = unanswered(&server);
    let (counts, mut flows) = play(&client);
    flows.sort_by_key(|f| f.session);
    let outcomes: Vec<Outcome> = flows.iter().map(|f| f.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::Done], "{flows:?}");
    assert!(counts.datagrams_sent > 0 && counts.datagrams_received == 0);
    assert_eq!((counts.sources_ended, counts.sources_failed), (2, 1));
}

#[test]
fn a_source_that_is_cut_off_while_it_waits_for_answers_has_not_failed() {
    let server = server();
    let (client, _silent) = unanswered(&server);
    agreed(&client);
    client.start();
    // The second source ends half a second after its last datagram, and the first one still waits then.
    until(|| client.statistics().counts.sources_ended == 1);
    let counts = client.stop().counts;
    let mut flows = client.flows(0, usize::MAX).flows;
    flows.sort_by_key(|f| f.session);
    let outcomes: Vec<Outcome> = flows.iter().map(|f| f.outcome).collect();
    assert_eq!(outcomes, [Outcome::Unfinished, Outcome::Done], "{flows:?}");
    assert_eq!((counts.sources_ended, counts.sources_failed), (2, 0));
}

/// An exchange of many datagrams does not leave at once because there was room for the first one.
#[test]
fn datagrams_keep_to_the_rate_limit_within_an_exchange() {
    let server = server();
    let (gap, span) = (Dur::from_millis(400), Dur::from_millis(500));
    let script = Script(vec![source(
        UdpKind::Periodic,
        gap,
        span,
        burst(60.0, 1_000),
        burst(0.0, 0),
    )]);
    let limits = Limits {
        // A datagram takes 85 ms.
        budget: Some(Arc::new(Budget::new(Rate::from_bps(100_000)))),
        ..Limits::default()
    };
    let role = Role::Client(client_of(vec![target(&server)], script, Play::default()));
    let client = Run::new(Config {
        limits,
        ..config(role)
    })
    .unwrap();
    let (counts, _) = play(&client);
    let exchanges = (counts.datagrams_sent + counts.limited) / 60;
    assert!((1..=2).contains(&exchanges), "{counts:?}");
    assert!(
        (1..=exchanges).contains(&counts.datagrams_sent),
        "{counts:?}"
    );
}
