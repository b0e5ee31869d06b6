//! Data that a server sends after a silence, without being asked, and slow answers, which are not that.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// A request of 300 bytes with its answer of 3000, and a silence of this many seconds.
fn kept(seconds: u64) -> Script {
    let mut script = Script::opened(0);
    script.ask(&asked(300, 3000));
    script.now += seconds * SECOND;
    script
}

/// The requests are where the script has them, and all of them are answered.
fn assert_true(script: &Script) -> Connection {
    let seen = script.seen();
    assert_eq!(times(&seen), script.truth);
    let answered = |e: &Exchange| e.outcome == Outcome::Answered;
    assert!(seen.exchanges.iter().all(answered), "{seen:#?}");
    seen
}

/// Like close_notify of TLS before the FIN.
#[test]
fn the_announcement_of_a_close_is_no_part_of_the_answer() {
    let mut script = kept(5);
    script.message(false, 24, |_| false);
    script.close(false);
    let seen = assert_true(&script);
    assert_eq!(
        (seen.exchanges[0].bytes, seen.unasked),
        ([300, 3000], [1, 0])
    );
}

/// Pings and pongs every 20 s, a real request long after the last of them, and another ping, which is on its way when
/// the run ends.
#[test]
fn pings_extend_no_answer_and_pongs_begin_no_request() {
    let mut script = kept(0);
    for _ in 0..4 {
        script.now += 20 * SECOND;
        script.message(false, 6, |_| false);
        script.message(true, 6, |_| false);
    }
    script.now += 7 * SECOND;
    script.ask(&asked(300, 3000));
    script.now += 20 * SECOND;
    script.message(false, 6, |_| false);
    script.segments.pop();
    let seen = assert_true(&script);
    assert!(seen.exchanges.iter().all(|e| e.bytes == [300, 3000]));
    assert_eq!(seen.unasked, [4, 0]);
}

#[test]
fn a_pong_is_not_open_at_the_end() {
    let mut script = kept(20);
    script.message(false, 6, |_| false);
    script.message(true, 6, |_| false);
    script.now += 3 * SECOND;
    assert_true(&script);
}

/// The client answers a notice with a small request, whose answer takes its time.
#[test]
fn a_small_request_after_a_notice_is_one() {
    let mut script = kept(5);
    script.message(false, 60, |_| false);
    script.ask(&Asked {
        waits: [SECOND / 2, 0],
        ..asked(100, 3000)
    });
    let seen = assert_true(&script);
    assert_eq!(seen.exchanges[1].bytes, [100, 3000]);
}

#[test]
fn a_request_that_crosses_a_notice_is_one() {
    let mut script = kept(5);
    let sent = script.now;
    script.message(false, 60, |_| false);
    script.now = sent + CROSSING / 2;
    script.ask(&asked(100, 3000));
    assert_true(&script);
}

#[test]
fn a_small_request_may_still_be_answered_at_the_end() {
    let mut script = kept(5);
    script.message(false, 60, |_| false);
    script.message(true, 100, |_| false);
    script.now += SECOND / 2;
    let last = script.seen().exchanges.pop().unwrap();
    assert_eq!((last.bytes, last.outcome), ([100, 0], Outcome::CutOff));
}

#[test]
fn a_small_answer_that_the_client_waits_for_is_one() {
    let mut script = kept(0);
    script.ask(&Asked {
        waits: [8 * SECOND, 0],
        ..asked(100, 20)
    });
    assert_eq!(assert_true(&script).unasked, [0, 0]);
}

/// It was sent at once, and is lost for more than a second.
#[test]
fn the_last_part_of_an_answer_that_was_lost_is_part_of_it() {
    let mut script = kept(0);
    let seq = script.next[1];
    script.now -= 5_000_000;
    let last = script.put(script.now, false, seq, ACK | PSH, 20, 8);
    script.now = last + 1;
    let seen = script.seen();
    assert_eq!(times(&seen), [(script.truth[0].0, last)]);
    assert_eq!(seen.unasked, [0, 0]);
}

/// The window of the client closes in the middle of an answer. The server marks no end of a write there.
#[test]
fn the_rest_of_an_answer_after_a_closed_window_is_part_of_it() {
    let mut script = Script::opened(0);
    let start = script.now;
    script.message(true, 300, |_| false);
    let seq = script.next[1];
    script.put(script.now, false, seq, ACK, 1000, 1);
    script.now += 5 * SECOND;
    let rest = seq.wrapping_add(1000);
    let last = script.put(script.now, false, rest, ACK | PSH, 20, 1);
    script.now = last;
    let seen = script.seen();
    assert_eq!((times(&seen), seen.unasked), (vec![(start, last)], [0, 0]));
}

/// Nothing shows whether it was asked for, and this is told.
#[test]
fn much_data_after_a_silence_is_part_of_the_answer() {
    let mut script = kept(5);
    script.message(false, 4000, |_| false);
    let seen = script.seen();
    assert_eq!(times(&seen), [(script.truth[0].0, script.now)]);
    assert_eq!((seen.unasked, seen.exchanges[0].bytes[1]), ([0, 1], 7000));
}

/// A small request after a notice, whose answer takes longer than the silence that a notice comes after.
#[test]
fn a_slow_answer_to_a_small_request_after_a_notice_is_its_answer() {
    for size in [3000, 60] {
        let mut script = kept(20);
        script.message(false, 6, |_| false);
        script.now += SECOND;
        script.ask(&Asked {
            waits: [3 * SECOND / 2, 0],
            ..asked(100, size)
        });
        let seen = assert_true(&script);
        assert_eq!(seen.exchanges[1].bytes, [100, size]);
    }
}

/// A pong, and soon after it a request.
#[test]
fn a_request_soon_after_a_pong_is_one() {
    let mut script = kept(20);
    script.message(false, 6, |_| false);
    script.message(true, 6, |_| false);
    script.now += SECOND / 2;
    script.ask(&Asked {
        waits: [11 * SECOND / 10, 0],
        ..asked(300, 3000)
    });
    let seen = assert_true(&script);
    assert_eq!(seen.exchanges[1].bytes, [300, 3000]);
}
