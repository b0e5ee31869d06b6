use swell_base::{Dur, Rate};
use swell_traffic::{Exchange, Turn, Unit, Write};

use super::*;

const MS: u64 = 1_000_000;
const QUIET: u64 = 500 * MS;

/// Adds data whose sender had received everything that passed in the other direction.
fn push(c: &mut Chunks, down: bool, bytes: u64, at: u64, settled: bool) {
    let data = Data {
        down,
        bytes,
        at,
        settled,
        write: false,
        got: u64::MAX,
        free: 0,
        idle: Idle::No,
    };
    c.push(&data, QUIET);
}

fn line(rtt: u64) -> Line {
    Line {
        rtt: ms(rtt),
        ..Line::default()
    }
}

fn ms(n: u64) -> Dur {
    Dur::from_millis(n)
}

#[test]
fn requests_and_responses_with_their_pauses() {
    let mut c = Chunks::default();
    push(&mut c, false, 100, 0, true);
    push(&mut c, true, 1_000, 60 * MS, true);
    push(&mut c, true, 500, 70 * MS, false);
    push(&mut c, false, 200, 1_080 * MS, true);
    push(&mut c, true, 10, 1_150 * MS, true);
    let mut e = c.exchange(0).0;
    correct(&mut e, &[], &line(10), &line(50));
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

/// While packets wait in a queue, an answer comes later by that, too. It does not count where it was long ago, or where a quick
/// answer shows that there is no queue any more.
#[test]
fn waits_in_queues_are_no_pauses() {
    let thinks = |answers: &[(bool, u64, u64)], settled: Option<u64>| {
        let mut c = Chunks::default();
        for &(down, rtt, at) in answers.iter().filter(|a| a.2 < 1_000) {
            c.answered(down, rtt * MS, at * MS);
        }
        push(&mut c, false, 100, 1_000 * MS, true);
        push(&mut c, true, 1_000, 1_400 * MS, true);
        push(&mut c, true, 500, 1_500 * MS, false);
        for &(down, rtt, at) in answers.iter().filter(|a| a.2 > 1_400) {
            c.answered(down, rtt * MS, at * MS);
        }
        if let Some(at) = settled {
            c.settled(true, at * MS);
        }
        push(&mut c, false, 200, 2_500 * MS, true);
        let mut e = c.exchange(1_000 * MS).0;
        correct(&mut e, &c.dues(1_000 * MS), &line(10), &line(50));
        let Exchange::Sequential(turns) = e else {
            unreachable!()
        };
        [turns[0].server_think, turns[0].client_think].map(|t| t.as_nanos() / MS)
    };
    assert_eq!(thinks(&[], None), [350, 990]);
    // The server's path is known from the handshake, the client's from the answer to its data.
    let recent = [(false, 300, 900), (true, 700, 1_600)];
    assert_eq!(thinks(&recent, None), [100, 300]);
    assert_eq!(thinks(&[(false, 300, 400)], None), [350, 990]);
    // Shorter than the path: another way to know the same.
    assert_eq!(thinks(&[(false, 40, 900)], None), [350, 990]);
    // All data are acknowledged 200 ms after the last.
    assert_eq!(thinks(&recent, Some(1_700)), [100, 800]);
}

#[test]
fn a_time_out_of_tcp_splits_no_unit() {
    let turns = |again: Option<u64>| {
        let mut c = Chunks::default();
        push(&mut c, false, 100, 0, true);
        push(&mut c, true, 5_000, 60 * MS, true);
        if let Some(at) = again {
            c.late(true, 0, at);
        }
        // All earlier data were acknowledged, and the silence is longer than QUIET.
        push(&mut c, true, 9_000, 900 * MS, true);
        let Exchange::Sequential(turns) = c.exchange(0).0 else {
            panic!("one after the other")
        };
        turns.iter().map(|t| t.response).collect::<Vec<u64>>()
    };
    assert_eq!(turns(None), [5_000, 9_000]);
    assert_eq!(turns(Some(860 * MS)), [14_000]);
    // A long silence after the last retransmission is the application's.
    assert_eq!(turns(Some(300 * MS)), [5_000, 9_000]);
}

#[test]
fn a_queue_beyond_the_tap_splits_no_unit() {
    let turns = |free: u64| {
        let mut c = Chunks::default();
        push(&mut c, false, 100, 0, true);
        push(&mut c, true, 5_000, 60 * MS, true);
        // The sender waited for ACKs, which came late.
        let data = Data {
            down: true,
            bytes: 9_000,
            at: 900 * MS,
            settled: true,
            write: false,
            got: 0,
            free,
            idle: Idle::No,
        };
        c.push(&data, QUIET);
        let Exchange::Sequential(turns) = c.exchange(0).0 else {
            panic!("one after the other")
        };
        turns.iter().map(|t| t.response).collect::<Vec<u64>>()
    };
    assert_eq!(turns(100 * MS), [5_000, 9_000]);
    assert_eq!(turns(880 * MS), [14_000]);
}

#[test]
fn silence_splits_units_unless_data_is_under_way() {
    let mut c = Chunks::default();
    push(&mut c, true, 100, 0, true);
    push(&mut c, true, 100, 600 * MS, true);
    push(&mut c, true, 100, 1_300 * MS, false);
    let mut e = c.exchange(0).0;
    correct(&mut e, &[], &line(10), &line(50));
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
    push(&mut c, false, 100, 300 * MS, true);
    let Exchange::Sequential(turns) = c.exchange(100 * MS).0 else {
        panic!("not sequential");
    };
    assert_eq!((turns[0].request, turns[0].client_think), (0, ms(200)));
    assert_eq!((turns.len(), turns[1].request), (2, 100));
}

fn unit(pause: u64, bytes: u64, after: u32) -> Unit {
    Unit {
        pause: ms(pause),
        bytes,
        after,
    }
}

#[test]
fn concurrent_data_becomes_two_chains() {
    // Both sides have unacknowledged data in flight throughout: one unit each, until a pause.
    let mut c = Chunks::default();
    for i in 0..10 {
        for (down, bytes, at) in [
            (false, 10, i * 100 * MS),
            (true, 1_000, (i * 100 + 50) * MS),
        ] {
            let data = Data {
                down,
                bytes,
                at,
                settled: i == 0,
                write: false,
                got: 0,
                free: 0,
                idle: Idle::No,
            };
            c.push(&data, QUIET);
        }
    }
    push(&mut c, true, 7, 3_000 * MS, true);
    c.set_concurrent();
    assert_eq!(
        c.exchange(0).0,
        Exchange::Concurrent {
            up: vec![unit(0, 100, 0)],
            down: vec![unit(50, 10_000, 0), unit(2_100, 7, 1)],
        }
    );
}

#[test]
fn units_of_a_chain_wait_for_what_their_sender_had_got() {
    let mut c = Chunks::default();
    for (down, bytes, at, settled, got) in [
        (false, 10, 0, true, 0),
        (true, 1_000, 50, true, 10),
        // Sent during the response …
        (false, 20, 60, false, 500),
        (true, 2_000, 70, false, 10),
        // … and after it.
        (false, 30, 160, true, 3_000),
        (true, 3_000, 210, true, 60),
    ] {
        let data = Data {
            down,
            bytes,
            at: at * MS,
            settled,
            write: false,
            got,
            free: 0,
            idle: Idle::No,
        };
        c.push(&data, QUIET);
    }
    c.set_concurrent();
    let (mut e, _) = c.exchange(0);
    let chains = |pauses: [u64; 4]| Exchange::Concurrent {
        up: vec![unit(pauses[0], 30, 0), unit(pauses[1], 30, 1)],
        down: vec![unit(pauses[2], 3_000, 0), unit(pauses[3], 3_000, 2)],
    };
    assert_eq!(e, chains([0, 90, 50, 50]));
    // Only units that answer something include a round trip to the host.
    correct(&mut e, &[], &line(4), &line(30));
    assert_eq!(e, chains([0, 86, 50, 20]));
}

#[test]
fn writes_inside_a_unit_keep_their_places() {
    let mut c = Chunks::default();
    for (bytes, at, write) in [
        (300, 0, false),
        (1_448, 5, true),
        (1_448, 6, false),
        (90, 9, false),
    ] {
        let data = Data {
            down: true,
            bytes,
            at: at * MS,
            settled: at == 0,
            write,
            got: 0,
            free: 0,
            idle: Idle::No,
        };
        c.push(&data, QUIET);
    }
    // A large write: the data after its short last segment are not a separate write.
    for (bytes, at, write) in [(20_000, 10, true), (50, 300, true)] {
        let data = Data {
            down: true,
            bytes,
            at: at * MS,
            settled: false,
            write,
            got: 0,
            free: 0,
            idle: Idle::No,
        };
        c.push(&data, QUIET);
    }
    let (exchange, writes) = c.exchange(0);
    assert_eq!(exchange.bytes(), [0, 23_336]);
    let place = |after, gap| Write {
        after,
        gap: ms(gap),
    };
    assert_eq!(writes, [vec![], vec![place(300, 5), place(2_986, 5)]]);
}

/// Data of the server as (bytes, milliseconds, whether the segment before was short, whether the sender was
/// idle), and where writes begin: after so many bytes, at which time since the write before.
fn writes(pushes: impl IntoIterator<Item = (u64, u64, bool, Idle)>) -> Vec<(u64, u64)> {
    let mut c = Chunks::default();
    for (bytes, at, write, idle) in pushes {
        let data = Data {
            down: true,
            bytes,
            at: at * MS,
            settled: false,
            write,
            got: 0,
            free: 0,
            idle,
        };
        c.push(&data, QUIET);
    }
    let (_, [_, writes]) = c.exchange(0);
    let place = |w: Write| (w.after, w.gap.as_nanos() / MS);
    writes.into_iter().map(place).collect()
}

#[test]
fn a_large_write_hides_only_the_one_after_it() {
    let first_large =
        (0..5).map(|i| (if i == 0 { 20_000 } else { 8_000 }, 33 * i, i > 0, Idle::No));
    assert_eq!(
        writes(first_large),
        [(28_000, 66), (8_000, 33), (8_000, 33)]
    );
    // Large writes are told by idle times of their sender.
    let stream = |idle| (0..4).map(move |i| (25_000, 100 * i, i > 0, idle));
    for idle in [Idle::Written, Idle::Yes, Idle::Perhaps] {
        assert_eq!(writes(stream(idle)), [(25_000, 100); 3]);
    }
    assert_eq!(writes(stream(Idle::No)), []);
}

#[test]
fn writes_that_fill_their_segments_are_told_by_equal_runs() {
    let stream = |idle, size: fn(u64) -> u64| {
        (0..24).flat_map(move |i| {
            let rest = (1..size(i)).map(move |_| (1_460, 33 * i, false, Idle::No));
            std::iter::once((1_460, 33 * i, false, idle)).chain(rest)
        })
    };
    // The first run is not known to begin after an idle time.
    let found = writes(stream(Idle::Yes, |_| 6));
    assert_eq!(
        (found.len(), found[0], found[1]),
        (16, (70_080, 264), (8_760, 33))
    );
    assert_eq!(writes(stream(Idle::Written, |_| 6)), []);
    assert_eq!(writes(stream(Idle::Perhaps, |_| 6)), []);
    // What arrives between pauses of the network differs, or is more than a window.
    assert_eq!(writes(stream(Idle::Yes, |i| 6 + i % 2)), []);
    assert_eq!(writes(stream(Idle::Yes, |_| 32)), []);
}

#[test]
fn what_segments_take_on_the_hosts_line_is_no_thought() {
    let mut c = Chunks::default();
    push(&mut c, false, 1_948, 0, true);
    push(&mut c, true, 5_000, 60 * MS, true);
    let (mut e, _) = c.exchange(0);
    let server = Line {
        rtt: ms(30),
        up: Some(Rate::from_bps(1_200_000)),
        down: Some(Rate::from_bps(4_320_000)),
        sends: 1_448,
        gets: 1_448,
        headers: 52,
    };
    correct(&mut e, &[], &line(5), &server);
    // 500 + 52 bytes to the server, 1448 + 52 back.
    let Exchange::Sequential(turns) = e else {
        panic!("not in turn");
    };
    let took = Dur::from_nanos(1_022_222) + ms(10);
    let off = turns[0].server_think + took + ms(30) - ms(60);
    assert!(
        off < Dur::from_micros(1) && turns[0].server_think < ms(19),
        "{turns:?}"
    );
}

#[test]
fn an_endless_connection_needs_bounded_memory_and_keeps_its_bytes() {
    let mut c = Chunks::default();
    for i in 0..1_000_000u64 {
        push(&mut c, i % 2 == 1, 1 + i % 3, i * MS, true);
    }
    assert!(c.list.len() <= MAX_CHUNKS && c.merged());
    let up: u64 = (0..1_000_000u64).step_by(2).map(|i| 1 + i % 3).sum();
    let down: u64 = (1..1_000_000u64).step_by(2).map(|i| 1 + i % 3).sum();
    assert_eq!(c.exchange(0).0.bytes(), [up, down]);
}

/// Requests of a busy connection, of 20 kB or of 200 bytes. It gets the room that there is, and its bursts stay as they
/// were; without, they grow, and it says so.
#[test]
fn a_long_connection_gets_the_room_that_there_is() {
    let with = |room: usize, response: u64| {
        let mut c = Chunks::default();
        for i in 0..10_000u64 {
            let at = i * 20 * MS;
            c.spare = room.saturating_sub(c.granted());
            push(&mut c, false, 200, at, true);
            push(&mut c, true, response / 2, at + 2 * MS, true);
            push(&mut c, true, response / 2, at + 3 * MS, false);
        }
        let Exchange::Sequential(turns) = c.exchange(0).0 else {
            panic!("not in turn");
        };
        assert!(c.granted() <= room);
        assert_eq!(
            turns.iter().map(|t| t.response).sum::<u64>(),
            response * 10_000
        );
        (turns, c)
    };
    let (turns, whole) = with(50_000, 20_000);
    assert_eq!(
        (turns.len(), whole.merged(), whole.larger()),
        (10_000, false, (0, 0.0))
    );
    assert_eq!(whole.granted(), 4 * MAX_CHUNKS);
    let (more, part) = with(2 * MAX_CHUNKS, 20_000);
    assert!(part.merged() && more.len() > 4_000, "{}", more.len());
    let (fewest, none) = with(MAX_CHUNKS - 1, 20_000);
    assert!(fewest.len() < 2_048 && none.granted() == 0);
    let (bytes, times) = none.larger();
    assert!(bytes > 150_000_000, "{bytes}");
    let factor = times / bytes as f64;
    assert!((4.0..=16.0).contains(&factor), "{factor}");
    // A few small answers at once pass as one flight, as each did.
    let (_, small) = with(0, 200);
    assert!(small.merged() && small.larger() == (0, 0.0));
}

/// What both ends send at once without a pause is one unit, however often the list notes the other end's data.
#[test]
fn merging_makes_no_transfer_larger_that_has_no_pauses() {
    let mut c = Chunks::default();
    for i in 0..20_000u64 {
        push(&mut c, i % 2 == 1, 1_448, i * MS, i < 2);
        // Only what follows a pause is settled and knows more of the other end.
        c.ways.iter_mut().for_each(|w| w.got = u64::MAX);
    }
    c.set_concurrent();
    assert!(c.merged());
    assert_eq!(c.larger(), (0, 0.0));
}

/// Polls once a second, each answered after 20 ms. However often the list is halved, requests and responses
/// take as long as they took, and a piece of it passes at the rate of the whole.
#[test]
fn an_endless_connection_keeps_its_time() {
    let mut c = Chunks::default();
    let polls = 8_000u64;
    for i in 0..polls {
        let at = i * 1_000 * MS;
        push(&mut c, false, 100, at, true);
        push(&mut c, false, 100, at + 2 * MS, true);
        push(&mut c, true, 300, at + 22 * MS, true);
    }
    assert!((8..=16).contains(&c.together), "{}", c.together);
    let ends = c.list.windows(2).all(|w| w[0].last <= w[1].first);
    assert!(ends, "chunks overlap");
    let (exchange, _) = c.exchange(0);
    assert_eq!(exchange.bytes(), [200 * polls, 300 * polls]);
    // Less the 2 ms that each request took to send.
    let took = ms(1_000 * (polls - 1) + 20 - 2 * (polls - 1));
    let lost = took - exchange.pauses();
    assert!(lost < ms(4_000) && exchange.pauses() <= took, "{lost}");
    let Exchange::Sequential(turns) = exchange else {
        panic!("not in turn");
    };
    let quarter = &turns[..turns.len() / 4];
    let of = |t: &[Turn]| {
        let bytes = t.iter().map(|t| t.response).sum::<u64>() as f64;
        let pauses = t.iter().map(|t| t.server_think + t.client_think);
        bytes / pauses.sum::<Dur>().as_secs_f64()
    };
    let (part, whole) = (of(quarter), of(&turns));
    assert!((part / whole - 1.0).abs() < 0.01, "{part} {whole}");
}

/// Both ends at once: each chain keeps its time.
#[test]
fn endless_chains_keep_their_time() {
    let mut c = Chunks::default();
    c.set_concurrent();
    for i in 0..8_000u64 {
        let at = i * 1_000 * MS;
        push(&mut c, false, 100, at, true);
        push(&mut c, true, 300, at + 400 * MS, true);
    }
    let Exchange::Concurrent { up, down } = c.exchange(0).0 else {
        panic!("in turn");
    };
    // When each unit goes, without delays of a network.
    let chains = [up, down];
    let mut gone = [vec![Dur::ZERO], vec![Dur::ZERO]];
    let mut after = [0; 2];
    while let Some(end) = (0..2).find(|&end| {
        let next = chains[end].get(gone[end].len() - 1);
        next.is_some_and(|u| (u.after as usize) < gone[1 - end].len())
    }) {
        let unit = chains[end][gone[end].len() - 1];
        let since = match unit.after > after[end] {
            true => gone[1 - end][unit.after as usize],
            false => gone[end][gone[end].len() - 1],
        };
        after[end] = unit.after;
        gone[end].push(since + unit.pause);
    }
    assert_eq!(
        [0, 1].map(|end| gone[end].len() - 1),
        [0, 1].map(|end| chains[end].len())
    );
    let ended = gone.map(|g| g[g.len() - 1]);
    for end in ended {
        let off = end.as_secs_f64() - 8_000.0;
        assert!(off.abs() < 16.0, "{ended:?}");
    }
}
