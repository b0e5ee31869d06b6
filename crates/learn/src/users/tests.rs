//! Compares with the definition, applied to the whole list of events at once.

use std::collections::BTreeMap;

use proptest::prelude::*;
use swell_traffic::{Exchange, Turn};

use super::*;

const GROUP: u64 = 30;
const SESSION: u64 = 300;

fn users(items: usize) -> Users {
    Users::new(Dur::from_nanos(GROUP), Dur::from_nanos(SESSION), items)
}

/// A connection that carries its own number.
fn kept(id: usize) -> Connection {
    let turn = Turn {
        request: id as u64,
        ..Turn::default()
    };
    Connection {
        gap: Dur::ZERO,
        server: 0,
        exchange: Exchange::Sequential(vec![turn]),
        client_window: 0,
        server_window: 0,
        wire: swell_traffic::Wire::default(),
        writes: Default::default(),
        waits: Vec::new(),
        left_censored: false,
        right_censored: false,
        overlap: Some([1, 1]),
    }
}

fn id(c: &Connection) -> usize {
    let Exchange::Sequential(turns) = &c.exchange else {
        panic!("{c:?}")
    };
    turns[0].request as usize
}

/// (client, class, groups of (think, connections that began)).
type Begun = (u32, u8, Vec<(u64, Vec<usize>)>);

/// Activity of a connection: its start, then its data times; the last is its end. Dropped ones are not
/// kept.
#[derive(Clone, Debug)]
struct Talk {
    client: u32,
    class: u8,
    data: Vec<u64>,
    dropped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Data,
    Begin,
    End,
}

/// All steps of all connections, in time order.
fn steps(talks: &[Talk]) -> Vec<(u64, usize, Step)> {
    let mut all = Vec::new();
    for (i, t) in talks.iter().enumerate() {
        all.push((t.data[0], i, Step::Begin));
        all.extend(t.data[1..].iter().map(|&at| (at, i, Step::Data)));
        all.push((*t.data.last().expect("a start"), i, Step::End));
    }
    // At equal times, the steps of a connection keep their order.
    all.sort_by_key(|&(at, i, step)| (at, i, step == Step::End, step != Step::Begin));
    all
}

/// (client, class, start, groups of (think, (connection, gap))).
type Plain = (u32, u8, u64, Vec<(u64, Vec<(usize, u64)>)>);

fn plain(s: &Session) -> Plain {
    let groups = s.groups.iter().map(|g| {
        let own = g.connections.iter().map(|c| (id(c), c.gap.as_nanos()));
        (g.think.as_nanos(), own.collect())
    });
    (
        s.client,
        s.class as u8,
        s.start.as_nanos(),
        groups.collect(),
    )
}

fn run(talks: &[Talk], ticks: bool) -> (Vec<Session>, Users) {
    let mut users = users(0);
    let mut places: Vec<Option<ConnectionIndex>> = vec![None; talks.len()];
    let mut done = Vec::new();
    for (at, i, step) in steps(talks) {
        let t = &talks[i];
        match (step, places[i]) {
            (Step::Begin, _) => {
                places[i] = Some(users.begin(t.client, t.class, at, &mut |s, _| done.push(s)));
            }
            (Step::Data, Some(place)) => {
                users.active(place, at);
            }
            (Step::End, Some(place)) => {
                users.end(place, (!t.dropped).then(|| kept(i)), at, &mut |s, _| {
                    done.push(s)
                });
            }
            _ => unreachable!("a connection begins first"),
        }
        if ticks {
            users.tick(at, &mut |s, _| done.push(s));
        }
    }
    users.finish(&mut |s, _| done.push(s));
    (done, users)
}

/// The sessions by definition. A pause is the silence since the last data of the previous group. Times
/// between starts remain even if a connection is dropped.
fn defined(talks: &[Talk]) -> Vec<Plain> {
    let mut sessions: Vec<Begun> = Vec::new();
    // The session whose last group is current, by user.
    let mut current: BTreeMap<(u32, u8), usize> = BTreeMap::new();
    let mut begun: Vec<usize> = (0..talks.len()).collect();
    begun.sort_by_key(|&i| (talks[i].data[0], i));
    for i in begun {
        let (t, at) = (&talks[i], talks[i].data[0]);
        let before = |x: u64, c: usize| (x, c) < (at, i);
        let silence = current.get(&(t.client, t.class)).map(|&s| {
            let (_, group) = sessions[s].2.last().expect("a group");
            let heard = |c: usize| talks[c].data.iter().filter(move |&&x| before(x, c));
            let last = group.iter().flat_map(|&c| heard(c)).max();
            let silence = at - last.expect("a start");
            (s, silence)
        });
        match silence {
            Some((s, silence)) if silence <= GROUP => {
                sessions[s].2.last_mut().expect("a group").1.push(i);
            }
            Some((s, silence)) if silence <= SESSION => sessions[s].2.push((silence, vec![i])),
            _ => {
                current.insert((t.client, t.class), sessions.len());
                sessions.push((t.client, t.class, vec![(0, vec![i])]));
            }
        }
    }
    let started = |i: usize| talks[i].data[0];
    let mut out = Vec::new();
    for (client, class, groups) in sessions {
        let mut start = started(groups[0].1[0]);
        let mut think = 0;
        let mut left: Vec<(u64, Vec<(usize, u64)>)> = Vec::new();
        for (silence, all) in groups {
            think += silence;
            let own: Vec<usize> = all.iter().copied().filter(|&i| !talks[i].dropped).collect();
            let Some(&first) = own.first() else {
                think += started(all[all.len() - 1]) - started(all[0]);
                continue;
            };
            think += started(first) - started(all[0]);
            if left.is_empty() {
                start += think;
                think = 0;
            }
            // A group ends where all connections before are over.
            let mut part: Vec<(usize, u64)> = Vec::new();
            for (n, &i) in own.iter().enumerate() {
                let end = own[..n].iter().filter_map(|&c| talks[c].data.last()).max();
                match end {
                    Some(&end) if end < started(i) => {
                        left.push((think, std::mem::take(&mut part)));
                        think = started(i) - end;
                        part.push((i, 0));
                    }
                    Some(_) => part.push((i, started(i) - started(own[n - 1]))),
                    None => part.push((i, 0)),
                }
            }
            left.push((std::mem::take(&mut think), part));
        }
        if !left.is_empty() {
            out.push((client, class, start, left));
        }
    }
    out
}

fn talk() -> impl Strategy<Value = Talk> {
    // Pauses on both sides of both time-outs, including their exact values.
    let pause = prop_oneof![
        0..10u64,
        Just(GROUP),
        Just(GROUP + 1),
        Just(SESSION),
        Just(SESSION + 1),
        0..2 * SESSION,
    ];
    let first = prop_oneof![0..3_000u64, (0..10u64).prop_map(|n| n * GROUP)];
    (
        (0..2u32, 0..2u8, first),
        proptest::collection::vec(pause, 0..4),
        any::<bool>(),
    )
        .prop_map(|((client, class, start), pauses, dropped)| {
            let mut data = vec![start];
            for silence in pauses {
                data.push(data[data.len() - 1] + silence);
            }
            Talk {
                client,
                class,
                data,
                dropped,
            }
        })
}

proptest! {
    /// Sessions, groups, pauses and gaps match the definition, with or without ticks in between.
    #[test]
    fn sessions_are_those_of_the_definition(talks in proptest::collection::vec(talk(), 1..12)) {
        for ticks in [false, true] {
            let (done, users) = run(&talks, ticks);
            let mut found: Vec<Plain> = done.iter().map(plain).collect();
            let mut expected = defined(&talks);
            found.sort();
            expected.sort();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(users.cut, 0);
            for s in &done {
                prop_assert_eq!(s.weight, 1.0);
                prop_assert!(!s.outside);
                let (last, before) = s.groups.split_last().expect("a group");
                // Nothing comes after the last group; connections of the others keep their progress.
                prop_assert!(last.connections.iter().all(|c| c.overlap.is_none()));
                let mut others = before.iter().flat_map(|g| &g.connections);
                prop_assert!(others.all(|c| c.overlap == Some([1, 1])));
            }
        }
    }
}

/// A queue that an answer told of a while before the last data has no part in the pause that follows them.
#[test]
fn old_answers_tell_of_no_queue() {
    let second = 1_000_000_000;
    let due = |answered: u64, last: u64| {
        let mut users = Users::new(Dur::from_secs(30), Dur::from_secs(300), 1_000);
        let mut done = Vec::new();
        let mut take = |s: Session, d: Delays| done.push((s, d));
        for (id, at) in [(0, 0), (1, 100 * second)] {
            let place = users.begin(1, 0, at, &mut take);
            if id == 0 {
                users.answered(place, 400_000_000, answered);
                users.active(place, last);
            }
            users.end(place, Some(kept(id)), at.max(last), &mut take);
        }
        users.finish(&mut take);
        done[0].1.groups[1]
    };
    assert_eq!(due(20 * second, 20 * second), 400_000);
    assert_eq!(due(20 * second, 60 * second), 0);
}

/// A session holds at most a quarter of the model's items, and at least 2000 connections; cuts are
/// counted.
#[test]
fn sessions_are_cut_where_they_are_too_long() {
    for (items, most) in [(0, 2_000), (8_004, 2_001), (12_000, 3_000)] {
        let mut users = users(items);
        let mut done = Vec::new();
        for i in 0..2 * most + 1 {
            let place = users.begin(1, 0, i as u64, &mut |s, _| done.push(s));
            users.end(place, Some(kept(i)), i as u64, &mut |s, _| done.push(s));
        }
        assert_eq!(users.cut, 2);
        users.finish(&mut |s, _| done.push(s));
        let sizes: Vec<usize> = done.iter().map(|s| s.connections().count()).collect();
        assert_eq!(sizes, [most, most, 1], "{items} items");
    }
}

/// A full session that a silence ends is whole.
#[test]
fn a_session_that_ends_by_itself_is_not_cut() {
    for (silence, cut) in [(SESSION, 1), (SESSION + 1, 0)] {
        let mut users = users(0);
        for at in [0; LEAST_HELD].into_iter().chain([silence]) {
            let place = users.begin(1, 0, at, &mut |_, _| {});
            users.end(place, Some(kept(0)), at, &mut |_, _| {});
        }
        assert_eq!(users.cut, cut, "{silence}");
    }
}

/// Silent users are removed: memory grows with the number of users active at one time.
#[test]
fn the_silent_make_room() {
    let mut users = users(0);
    let mut done = 0;
    // One user per time unit, each checked now and then: at most 300 are within the time-out.
    for i in 0..20_000u64 {
        let place = users.begin(i as u32, 0, i, &mut |_, _| done += 1);
        users.end(place, Some(kept(0)), i, &mut |_, _| done += 1);
        for _ in 0..4 {
            users.tick(i, &mut |_, _| done += 1);
        }
    }
    assert!(users.users.len() < 600, "{} users", users.users.len());
    assert!(users.sessions.len() < 600, "{} held", users.sessions.len());
    assert!(done > 19_000, "{done}");
    users.finish(&mut |_, _| done += 1);
    assert_eq!(done, 20_000);
}

/// An open connection keeps its user, however long the silence. Its session is emitted when it ends, with
/// its number and the host that it is measured as.
#[test]
fn an_open_connection_keeps_its_session() {
    let mut users = users(0);
    let mut done = Vec::new();
    let first = users.begin(7, 0, 0, &mut |s, _| done.push(s));
    users.tick(5_000, &mut |s, _| done.push(s));
    assert!(users.current(first));
    // The next session of the same user begins; the first waits for its end.
    let second = users.begin(7, 0, 5_000, &mut |s, _| done.push(s));
    assert!(!users.current(first) && users.current(second));
    assert_eq!((users.serial(first), users.serial(second)), (1, 2));
    users.measured(first, 9);
    assert!(done.is_empty());
    users.end(first, Some(kept(1)), 5_000, &mut |s, _| done.push(s));
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].client, done[0].start), (9, Dur::ZERO));
    users.end(second, Some(kept(2)), 5_000, &mut |s, _| done.push(s));
    assert_eq!(done.len(), 1, "the user may go on");
    users.finish(&mut |s, _| done.push(s));
    assert_eq!((done.len(), done[1].client), (2, 7));
}
