//! The web foreground over an ideal network.

use crate::common::Ideal;
use swell_base::{Bytes, Dur, Time};
use swell_workload::{Access, Action, Outcome, Record, RequestRecord, Web, WebConfig};

fn config() -> WebConfig {
    WebConfig {
        clients: 1,
        objects: vec![Bytes(1000), Bytes(50)],
        request: Bytes(100),
        server_think: Dur::ZERO,
        think: Dur::ZERO,
        keep: false,
        count: Some(4),
        start: Dur::from_secs(1),
        client: Access::default(),
        server: Access::default(),
    }
}

fn requests(records: Vec<Record>) -> Vec<RequestRecord> {
    records
        .into_iter()
        .map(|r| match r {
            Record::Request(r) => r,
            Record::Flow(f) => panic!("a foreground left a flow record: {f:?}"),
        })
        .collect()
}

fn ms(t: Option<Time>) -> u64 {
    t.unwrap().as_nanos() / 1_000_000
}

#[test]
fn back_to_back_over_new_connections() {
    let mut net = Ideal::new(Web::new(config()), Dur::from_millis(10));
    let got = requests(net.run(Dur::from_secs(10)));
    assert_eq!(
        got.iter().map(|r| r.bytes).collect::<Vec<_>>(),
        [1000, 50, 1000, 50]
    );
    for (i, r) in got.iter().enumerate() {
        // Two round trips each: the handshake, then request and response. The request is queued when the connection
        // opens, and on this network it does not wait for the handshake.
        let start = 1000 + 20 * i as u64;
        assert_eq!((ms(Some(r.start)), r.index), (start, i as u32));
        assert_eq!((ms(r.connected), ms(r.last_byte)), (start + 20, start + 20));
        assert_eq!(r.outcome, Outcome::Done);
    }
    let opened = net
        .log
        .iter()
        .filter(|a| matches!(a.1, Action::Connect(..)))
        .count();
    assert_eq!(opened, 4);
}

#[test]
fn one_connection_is_kept_and_thinking_counts_from_completion() {
    let keep = WebConfig {
        keep: true,
        think: Dur::from_millis(300),
        ..config()
    };
    let keep = WebConfig {
        server_think: Dur::from_millis(7),
        ..keep
    };
    let mut net = Ideal::new(Web::new(keep), Dur::from_millis(10));
    let got = requests(net.run(Dur::from_secs(10)));
    let starts: Vec<_> = got.iter().map(|r| ms(Some(r.start))).collect();
    assert_eq!(starts, [1000, 1327, 1654, 1981]);
    assert!(got[1..].iter().all(|r| r.connected == Some(r.start)));
    let opened = net
        .log
        .iter()
        .filter(|a| matches!(a.1, Action::Connect(..)))
        .count();
    assert_eq!(opened, 1);
}

#[test]
fn what_the_end_of_the_run_cuts_off_is_recorded_as_unfinished() {
    use swell_workload::Workload;
    let mut net = Ideal::new(Web::new(config()), Dur::from_millis(10));
    assert_eq!(net.run(Dur::from_millis(1005)).len(), 0);
    net.workload.finish(&|_| Default::default());
    let cut = requests(net.workload.take_records());
    assert_eq!(cut.len(), 1);
    assert_eq!(
        (cut[0].outcome, cut[0].last_byte),
        (Outcome::Unfinished, None)
    );
}

/// People do not begin at the same instant, and not at the same ones in every run.
#[test]
fn clients_begin_at_independent_times() {
    let starts = |seed| -> Vec<u64> {
        let clients = WebConfig {
            clients: 200,
            count: Some(1),
            ..config()
        };
        let web = Web::new(clients).spread(Dur::from_secs(30), seed);
        let got = requests(Ideal::new(web, Dur::from_millis(10)).run(Dur::from_secs(40)));
        let mut starts: Vec<u64> = got.iter().map(|r| ms(Some(r.start))).collect();
        starts.sort_unstable();
        starts
    };
    let (one, other) = (starts(1), starts(2));
    assert_eq!((one.len(), &one), (200, &starts(1)));
    assert!(one != other);
    assert!(one[0] >= 1_000 && one[199] < 31_000);
    // Uniform: Kolmogorov-Smirnov at 1 % is 0.115 for 200.
    let far = |(i, &s): (usize, &u64)| ((s - 1_000) as f64 / 30e3 - i as f64 / 200.0).abs();
    let largest = one.iter().enumerate().map(far).fold(0.0, f64::max);
    assert!(largest < 0.12, "{largest}");
}

/// A server may close a connection while its client thinks. The client goes on when it has thought, as one client.
#[test]
fn a_connection_lost_while_its_client_thinks_is_replaced_once() {
    use swell_workload::{Conn, End, Event, Workload};
    let keep = WebConfig {
        keep: true,
        think: Dur::from_secs(3),
        count: None,
        ..config()
    };
    let mut net = Ideal::new(Web::new(keep), Dur::from_millis(10));
    assert_eq!(net.run(Dur::from_secs(2)).len(), 1);
    let mut actions = Vec::new();
    let lost = Event::Reset(Conn(0), End::Client);
    net.workload
        .handle(Time::ZERO + Dur::from_secs(2), lost, &mut actions);
    assert_eq!(actions, []);
    let got = requests(net.run(Dur::from_secs(9)));
    let starts: Vec<_> = got.iter().map(|r| ms(Some(r.start))).collect();
    assert_eq!(starts, [4_020, 7_040]);
    assert!(got.iter().all(|r| r.outcome == Outcome::Done));
}
