//! When a unit of a learnt connection is sent after others of the same end.

use swell_base::Dur;
use swell_traffic::{Exchange, Group};

use crate::structural::{MS, connection, play, sends, turn, unit};

/// Requests overlap. A unit of the server that answers the second counts its pause from that request, which arrived
/// while the first answer was still due.
#[test]
fn pauses_after_overlapping_requests_run_beside_each_other() {
    let exchange = Exchange::Concurrent {
        up: vec![unit(0, 100, 0), unit(10, 100, 0)],
        down: vec![unit(30, 5000, 1), unit(30, 6000, 2), unit(5, 7000, 2)],
    };
    let group = Group {
        think: Dur::ZERO,
        connections: vec![connection(Dur::ZERO, exchange)],
    };
    let (_, log) = play(vec![group]);
    // The requests arrive at 1030 and 1040.
    assert_eq!(
        sends(&log),
        [
            (1020, 100),
            (1030, 100),
            (1060, 5000),
            (1070, 6000),
            (1075, 7000)
        ]
    );
}

/// More than an initial window in a row: the network decides how much of it leaves at once.
#[test]
fn units_in_a_row_wait_for_nothing_but_their_pauses() {
    let row = (0..5).map(|i| unit(if i == 0 { 20 } else { 2 }, 8200, 1));
    let units = Exchange::Concurrent {
        up: vec![unit(0, 100, 0), unit(50, 100, 5)],
        down: row.collect(),
    };
    let mut turns = vec![turn(100, 20, 8200, 0)];
    turns.extend([turn(0, 2, 8200, 0); 4]);
    turns[4].client_think = MS * 50;
    turns.push(turn(100, 0, 10, 0));
    for exchange in [units, Exchange::Sequential(turns)] {
        let group = Group {
            think: Dur::ZERO,
            connections: vec![connection(Dur::ZERO, exchange)],
        };
        let (_, log) = play(vec![group]);
        let [a, b, c, d, e] = [1050, 1052, 1054, 1056, 1058].map(|at| (at, 8200));
        assert_eq!(sends(&log)[..7], [(1020, 100), a, b, c, d, e, (1118, 100)]);
    }
}

#[test]
fn both_directions_at_once() {
    let exchange = Exchange::Concurrent {
        up: vec![unit(0, 100, 0), unit(500, 200, 0), unit(10, 300, 3)],
        down: vec![
            unit(30, 1000, 0),
            unit(1, 50, 1),
            unit(600, 20_000, 1),
            unit(7, 70, 1),
        ],
    };
    let group = Group {
        think: Dur::ZERO,
        connections: vec![connection(Dur::ZERO, exchange)],
    };
    let (flows, log) = play(vec![group]);
    let mut sent = sends(&log);
    sent.sort_unstable();
    // The pause after a unit starts when the unit has left, which is at once in this network. A unit that follows a new
    // unit of the other end counts its pause from that unit's arrival: the second of the server was due at 1031, but
    // the first left at 1050.
    assert_eq!(
        sent,
        [
            (1020, 100),
            (1050, 50),
            (1050, 1000),
            (1520, 200),
            (1650, 20_000),
            (1657, 70),
            (1670, 300),
        ]
    );
    assert_eq!((flows[0].up, flows[0].down), (600, 21_120));
}
