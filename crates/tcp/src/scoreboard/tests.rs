//! The scoreboard against a naive implementation of RFC 6675 that scans everything each time.

use swell_base::Stream;

use super::*;

/// RFC 6675 section 4, literally, with whole segments of 10 bytes.
#[derive(Default)]
struct Naive {
    una: u64,
    sacked: Vec<bool>,
    resent: Vec<bool>,
}

impl Naive {
    fn is_lost(&self, i: usize) -> bool {
        let above = self.sacked[i + 1..].iter().filter(|&&s| s).count();
        !self.sacked[i] && above >= 3
    }
    /// Bytes lost and not retransmitted, from `una` on.
    fn lost(&self) -> u64 {
        let first = (self.una / 10) as usize;
        let n = (first..self.sacked.len())
            .filter(|&i| self.is_lost(i) && !self.resent[i])
            .count();
        10 * n as u64
    }
    fn sacked(&self) -> u64 {
        10 * self.sacked[(self.una / 10) as usize..]
            .iter()
            .filter(|&&s| s)
            .count() as u64
    }
}

fn fly(board: &mut Scoreboard, i: u64, now: Time) {
    let record = Record {
        seq: 10 * i,
        sent_at: now,
        len: 10,
        place: SegmentState::Flying,
        resent: false,
        fin: false,
    };
    board.push(record, i.is_multiple_of(2));
}

#[test]
fn counts_agree_with_the_definitions() {
    for seed in 0..300 {
        let mut s = Stream::new(seed, "scoreboard");
        let mut board = Scoreboard::default();
        let mut naive = Naive::default();
        let mut delivered = 0;
        for step in 0..200 {
            let now = Time::from_nanos(step);
            let sent = naive.sacked.len() as u64;
            match s.below(4) {
                0 | 1 if sent < naive.una / 10 + 40 => {
                    fly(&mut board, sent, now);
                    naive.sacked.push(false);
                    naive.resent.push(false);
                }
                2 => {
                    let before = board.lost();
                    if let Some(r) = board.resend(now, f64::INFINITY, false) {
                        let i = (r.seq / 10) as usize;
                        // NextSeg rule 1: the lowest segment that is lost and was not retransmitted.
                        let expected = (0..=i).find(|&j| {
                            10 * j as u64 >= naive.una && naive.is_lost(j) && !naive.resent[j]
                        });
                        assert_eq!(expected, Some(i));
                        naive.resent[i] = true;
                    } else {
                        assert_eq!(before, 0);
                    }
                }
                _ => {
                    // An acknowledgement with up to three blocks, as a receiver would send it. A block never touches
                    // the cumulative acknowledgement.
                    let mut d = board.account(None);
                    let ack =
                        naive.una + 10 * s.below((sent * 10 - naive.una) / 10 + 1) * s.below(2);
                    board.ack(ack, &mut d);
                    for i in naive.una / 10..ack / 10 {
                        delivered += 10 * u64::from(!naive.sacked[i as usize]);
                    }
                    naive.una = ack;
                    let mut blocks = Vec::new();
                    for _ in 0..s.below(4) {
                        let room = sent.saturating_sub(ack / 10 + 1);
                        let from = ack / 10 + 1 + s.below(room);
                        let to = (from + 1 + s.below(4)).min(sent);
                        if room > 0 && from < to {
                            blocks.push((10 * from, 10 * to));
                            for i in from..to {
                                delivered += 10 * u64::from(!naive.sacked[i as usize]);
                                naive.sacked[i as usize] = true;
                            }
                        }
                    }
                    board.sack(&blocks, &mut d);
                    delivered -= d.bytes;
                    assert_eq!(delivered, 0, "seed {seed}: delivered bytes are told once");
                    board.judge_by_count(3);
                }
            }
            assert_eq!(board.sacked(), naive.sacked(), "seed {seed}, step {step}");
            assert_eq!(board.lost(), naive.lost(), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn memory_is_given_back_when_nothing_is_in_flight() {
    let mut board = Scoreboard::default();
    for i in 0..1000 {
        fly(&mut board, i, Time::ZERO);
    }
    let mut d = board.account(None);
    board.sack(&[(100, 9000)], &mut d);
    board.judge_by_count(3);
    assert!(board.resend(Time::ZERO, f64::INFINITY, true).is_some());
    board.ack(10_000, &mut d);
    assert!(board.records.capacity() <= KEEP && board.losses.is_none());
    assert_eq!((board.sacked(), board.lost(), board.len()), (0, 0, 0));
    assert!(size_of::<Record>() * KEEP <= 24);
    // The other ways to take acknowledgements free the memory as well.
    for way in [
        |b: &mut Scoreboard| u64::from(b.take_flying(10_000).is_some()),
        |b: &mut Scoreboard| u64::from(b.take_acked(10_000).0),
    ] {
        for i in 0..20 {
            fly(&mut board, i, Time::ZERO);
        }
        assert!(way(&mut board) > 0);
        assert!(board.len() == 0 && board.records.capacity() <= KEEP);
    }
}

#[test]
fn a_timeout_loses_all_that_is_not_selectively_acknowledged() {
    let mut board = Scoreboard::default();
    for i in 0..10 {
        fly(&mut board, i, Time::ZERO);
    }
    let mut d = board.account(None);
    board.sack(&[(30, 50)], &mut d);
    board.lose_all(|_| false);
    assert_eq!((board.lost(), board.sacked()), (80, 20));
    let again: Vec<u64> = std::iter::from_fn(|| board.resend(Time::ZERO, f64::INFINITY, false))
        .map(|r| r.seq)
        .collect();
    assert_eq!(again, [0, 10, 20, 50, 60, 70, 80, 90]);
}
