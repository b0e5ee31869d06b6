use super::*;

const MS: u64 = 1_000_000;
const QUIET: u64 = 500 * MS;

fn ms(n: u64) -> Dur {
    Dur::from_millis(n)
}

fn path(rtt: u64, rate: Option<Rate>) -> Path {
    Path {
        rtt: ms(rtt),
        up: rate,
        down: rate,
        loss_up: 0.0,
        loss_down: 0.0,
        rtt_samples: 1,
        capacity_samples: 0,
        loss_samples: 0,
    }
}

#[test]
fn packets_take_their_time_on_slow_lines() {
    let turn = |ms: u64| Turn {
        request: 1_448 + 948,
        server_think: Dur::from_millis(ms),
        response: 10_000,
        ..Turn::default()
    };
    let mut e = Exchange::Sequential(vec![turn(100)]);
    // 1 Mbit/s: 8 ms for the request's last 1000 bytes, 12 ms for the response's first 1500.
    let slow = path(50, Some(Rate::from_bps(1_000_000)));
    correct(&mut e, &path(10, None), &slow);
    assert_eq!(e, Exchange::Sequential(vec![turn(30)]));
}

#[test]
fn requests_and_responses_with_their_pauses() {
    let mut c = Chunks::default();
    c.push(false, 100, 0, true, QUIET);
    c.push(true, 1_000, 60 * MS, true, QUIET);
    c.push(true, 500, 70 * MS, false, QUIET);
    c.push(false, 200, 1_080 * MS, true, QUIET);
    c.push(true, 10, 1_150 * MS, true, QUIET);
    let mut e = c.exchange(0);
    correct(&mut e, &path(10, None), &path(50, None));
    let turn = |request, server, response, client| Turn {
        request,
        server_think: ms(server),
        response,
        client_think: ms(client),
    };
    assert_eq!(
        e,
        Exchange::Sequential(vec![turn(100, 10, 1_500, 1_000), turn(200, 20, 10, 0)])
    );
}

#[test]
fn silence_splits_units_unless_data_is_under_way() {
    let mut c = Chunks::default();
    c.push(true, 100, 0, true, QUIET);
    c.push(true, 100, 600 * MS, true, QUIET);
    c.push(true, 100, 1_300 * MS, false, QUIET);
    let mut e = c.exchange(0);
    correct(&mut e, &path(10, None), &path(50, None));
    let Exchange::Sequential(turns) = e else {
        panic!("{e:?}");
    };
    let got: Vec<_> = turns
        .iter()
        .map(|t| (t.request, t.server_think, t.response))
        .collect();
    assert_eq!(got, [(0, ms(0), 100), (0, ms(600), 200)]);
}

#[test]
fn a_client_that_waits_after_connecting() {
    let mut c = Chunks::default();
    c.push(false, 100, 300 * MS, true, QUIET);
    let Exchange::Sequential(turns) = c.exchange(100 * MS) else {
        panic!("not sequential");
    };
    assert_eq!((turns[0].request, turns[0].client_think), (0, ms(200)));
    assert_eq!((turns.len(), turns[1].request), (2, 100));
}

#[test]
fn concurrent_data_becomes_two_chains() {
    let mut c = Chunks::default();
    for i in 0..10 {
        c.push(false, 10, i * 100 * MS, true, QUIET);
        c.push(true, 1_000, (i * 100 + 50) * MS, true, QUIET);
    }
    c.push(true, 7, 3_000 * MS, true, QUIET);
    c.set_concurrent();
    assert_eq!(
        c.exchange(0),
        Exchange::Concurrent {
            up: vec![(ms(0), 100)],
            down: vec![(ms(50), 10_000), (ms(2_050), 7)],
        }
    );
}

#[test]
fn an_endless_connection_needs_bounded_memory_and_keeps_its_bytes() {
    let mut c = Chunks::default();
    for i in 0..1_000_000u64 {
        c.push(i % 2 == 1, 1 + i % 3, i * MS, true, QUIET);
    }
    assert!(c.list.len() <= MAX_CHUNKS && c.merged > 0);
    let up: u64 = (0..1_000_000u64).step_by(2).map(|i| 1 + i % 3).sum();
    let down: u64 = (1..1_000_000u64).step_by(2).map(|i| 1 + i % 3).sum();
    assert_eq!(c.exchange(0).bytes(), [up, down]);
}
