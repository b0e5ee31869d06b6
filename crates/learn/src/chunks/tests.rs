use super::*;

const MS: u64 = 1_000_000;
const QUIET: u64 = 500 * MS;

fn ms(n: u64) -> Dur {
    Dur::from_millis(n)
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
    correct(&mut e, ms(10), ms(50));
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
    correct(&mut e, ms(10), ms(50));
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
    // Both sides keep data under way: one unit each, until a pause.
    let mut c = Chunks::default();
    for i in 0..10 {
        c.push(false, 10, i * 100 * MS, i == 0, QUIET);
        c.push(true, 1_000, (i * 100 + 50) * MS, i == 0, QUIET);
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
fn an_answer_begins_a_unit_of_a_chain_once_all_before_was_acknowledged() {
    let mut c = Chunks::default();
    for (down, bytes, at, settled) in [
        (false, 10, 0, true),
        (true, 1_000, 50, true),
        // Sent into the response …
        (false, 20, 60, false),
        (true, 2_000, 70, false),
        // … and after it.
        (false, 30, 160, true),
        (true, 3_000, 210, true),
    ] {
        c.push(down, bytes, at * MS, settled, QUIET);
    }
    c.set_concurrent();
    assert_eq!(
        c.exchange(0),
        Exchange::Concurrent {
            up: vec![(ms(0), 30), (ms(100), 30)],
            down: vec![(ms(50), 3_000), (ms(140), 3_000)],
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
