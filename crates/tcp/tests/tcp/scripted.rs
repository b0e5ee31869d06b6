//! One endpoint against a script of what Linux sends, when, and in response to what. Some scripts are packetdrill's
//! own tests (github.com/google/packetdrill, `gtests/net/tcp`, named where used). The others follow from
//! `net/ipv4/tcp_input.c`, `tcp_recovery.c` and `tcp_timer.c` of 6.18, for branches without a packetdrill script.
//! Segments have 1000 bytes and are counted from 0; times are in milliseconds.

mod timeouts;

use std::sync::Arc;

use swell_base::{Dur, Flags, SackBlocks, Segment, Stamps, Time};
use swell_tcp::{Algorithm, Config, Endpoint, Stats};

const MSS: u64 = 1000;

/// A server with the `linux` profile, connected to a client without timestamps.
struct Script {
    end: Endpoint,
    now: Time,
    stamps: bool,
    /// (milliseconds, first segment, one past the last byte in segments), for new data and retransmissions.
    sent: Vec<(f64, f64, f64)>,
    window: u32,
}

fn linux() -> Config {
    Config {
        mss: MSS as u32,
        timestamps: false,
        recv_tuning: false,
        ..Config::linux()
    }
}

fn at(ms: f64) -> Time {
    Time::from_secs_f64(ms / 1000.0)
}

impl Script {
    fn new(cfg: Config, rtt: f64) -> Script {
        Script::within(cfg, rtt, 320 * 128)
    }

    /// The handshake takes `rtt` milliseconds and ends at time 0 of the script, one second after the clock's start.
    /// The client then allows `window` bytes.
    fn within(cfg: Config, rtt: f64, window: u32) -> Script {
        let stamps = cfg.timestamps;
        let mut s = Script {
            end: Endpoint::server(Arc::new(cfg)),
            now: at(1000.0 - rtt),
            stamps,
            sent: Vec::new(),
            window,
        };
        let syn = Segment {
            flags: Flags::SYN,
            window: 65_535,
            ..Segment::default()
        };
        s.hear(syn, &[]);
        s.now = at(1000.0);
        s.ack_at(0.0, 0.0, &[]);
        assert!(s.sent.is_empty());
        s
    }

    fn ms(&self) -> f64 {
        (self.now.as_secs_f64() - 1.0) * 1000.0
    }

    fn hear(&mut self, seg: Segment, blocks: &[(i64, i64)]) {
        let (mut sacks, mut seg) = (SackBlocks::default(), seg);
        for &(from, to) in blocks {
            sacks.push(&mut seg.sacks, from as i32, to as i32);
        }
        self.end.handle_segment(self.now, &seg, &sacks);
        self.drain();
    }

    fn drain(&mut self) {
        while self.end.poll().is_some() {}
        while let Some((seg, _)) = self.end.poll_transmit(self.now) {
            if seg.len > 0 || seg.seq > 0 && seg.ack == 1 && seg.flags == Flags::ACK {
                let first = (seg.seq as f64 - 1.0) / MSS as f64;
                let last = first + f64::from(seg.len) / MSS as f64;
                self.sent.push((self.ms(), first, last));
            }
        }
    }

    /// Runs the timers up to `ms`.
    fn until(&mut self, ms: f64) {
        let until = at(1000.0 + ms);
        while let Some(due) = self.end.poll_timeout().filter(|&t| t <= until) {
            self.now = due;
            self.end.handle_timeout(due);
            self.drain();
        }
        self.now = until;
    }

    fn write(&mut self, segments: f64) {
        self.end.send((segments * MSS as f64) as u64);
        self.drain();
    }

    /// Passes in an acknowledgement of all data below `ack`, with SACK blocks, all in segments.
    fn ack_at(&mut self, ms: f64, ack: f64, blocks: &[(f64, f64)]) {
        self.answer(ms, ack, blocks, Flags::ACK, ms);
    }

    /// The same with an echoed timestamp: that of a segment sent at `echo`.
    fn echo_at(&mut self, ms: f64, ack: f64, blocks: &[(f64, f64)], echo: f64) {
        self.answer(ms, ack, blocks, Flags::ACK, echo);
    }

    fn answer(&mut self, ms: f64, ack: f64, blocks: &[(f64, f64)], flags: Flags, echo: f64) {
        self.until(ms);
        let number = |segments: f64| (segments * MSS as f64) as i64;
        let relative: Vec<(i64, i64)> = blocks
            .iter()
            .map(|&(s, e)| (number(s - ack), number(e - ack)))
            .collect();
        let seg = Segment {
            seq: 1,
            ack: 1 + number(ack) as u64,
            window: self.window,
            flags,
            stamps: if self.stamps {
                Stamps::new(0, (1000.0 + echo) as u32)
            } else {
                Stamps::default()
            },
            ..Segment::default()
        };
        self.hear(seg, &relative);
    }

    /// Segments sent since the last call: first segment numbers.
    fn sent(&mut self) -> Vec<f64> {
        self.sent.drain(..).map(|s| s.1).collect()
    }

    /// The same with their times.
    fn sent_at(&mut self) -> Vec<(f64, f64)> {
        self.sent
            .drain(..)
            .map(|s| ((s.0 * 1000.0).round() / 1000.0, s.1))
            .collect()
    }

    fn stats(&self) -> Stats {
        self.end.stats()
    }

    /// Congestion window and threshold in segments.
    fn windows(&self) -> (u64, u64) {
        let s = self.stats();
        (s.cwnd / MSS, s.ssthresh / MSS)
    }
}

fn range(from: u32, to: u32) -> Vec<f64> {
    (from..to).map(f64::from).collect()
}

/// `limited_transmit/limited-transmit-sack.pkt` (RFC 3042).
#[test]
fn limited_transmit_sends_new_data_for_the_first_two_duplicates() {
    let mut s = Script::new(linux(), 100.0);
    s.write(15.0);
    assert_eq!(s.sent(), range(0, 10));
    s.ack_at(110.0, 0.0, &[(1.0, 2.0)]);
    assert_eq!(s.sent(), [10.0]);
    s.ack_at(120.0, 0.0, &[(1.0, 3.0)]);
    assert_eq!(s.sent(), [11.0]);
    // It was only reordering.
    s.ack_at(130.0, 3.0, &[]);
    assert_eq!(s.sent(), [12.0, 13.0]);
    s.ack_at(150.0, 5.0, &[]);
    assert_eq!(s.sent(), [14.0]);
    assert_eq!((s.stats().retransmitted, s.stats().recoveries), (0, 0));
}

/// `fast_retransmit/fr-4pkt-sack.pkt`.
#[test]
fn three_segments_above_a_hole_retransmit_it_at_once() {
    let mut s = Script::new(linux(), 100.0);
    s.write(4.0);
    assert_eq!(s.sent(), range(0, 4));
    s.ack_at(100.0, 0.0, &[(1.0, 2.0)]);
    s.ack_at(100.0, 0.0, &[(1.0, 3.0)]);
    assert!(s.sent().is_empty());
    s.ack_at(100.0, 0.0, &[(1.0, 4.0)]);
    assert_eq!(s.sent(), [0.0]);
    s.ack_at(200.0, 4.0, &[]);
    assert_eq!((s.stats().retransmitted, s.stats().recoveries), (1, 1));
}

/// `fast_recovery/prr-ss-10pkt-lost-1.pkt` (RFC 9937).
#[test]
fn prr_sends_one_for_one_where_the_flight_is_the_threshold() {
    let mut s = Script::new(linux(), 100.0);
    s.write(10.0);
    assert_eq!(s.sent(), range(0, 10));
    for k in 2..5 {
        s.ack_at(90.0 + 10.0 * f64::from(k), 0.0, &[(1.0, f64::from(k))]);
    }
    assert_eq!(s.sent(), [0.0]);
    assert_eq!(s.windows(), (7, 7));
    s.until(140.0);
    s.write(7.0);
    assert!(s.sent().is_empty());
    for k in 5..11 {
        s.ack_at(100.0 + 10.0 * f64::from(k), 0.0, &[(1.0, f64::from(k))]);
        assert_eq!(s.sent(), [f64::from(k + 5)]);
    }
    s.ack_at(220.0, 10.0, &[]);
    assert_eq!(s.sent(), [16.0]);
    assert_eq!(s.windows(), (7, 7));
}

/// `fast_recovery/prr-ss-30pkt-lost1_4.pkt`.
#[test]
fn prr_repairs_four_losses_one_for_each_acknowledgement() {
    let mut s = Script::new(linux(), 10.0);
    s.write(10.0);
    s.sent();
    s.ack_at(10.0, 0.0, &[(4.0, 5.0)]);
    s.ack_at(12.0, 0.0, &[(4.0, 6.0)]);
    assert!(s.sent().is_empty());
    for k in 0..4 {
        s.ack_at(12.0, 0.0, &[(4.0, 7.0 + f64::from(k))]);
        assert_eq!(s.sent(), [f64::from(k)]);
    }
    for k in 1..4 {
        s.ack_at(22.0, f64::from(k), &[(4.0, 10.0)]);
    }
    s.ack_at(22.0, 10.0, &[]);
    s.until(32.0);
    s.write(10.0);
    assert_eq!(s.sent(), range(10, 17));
}

/// `fast_recovery/prr-ss-30pkt-lost-1_4-11_16.pkt`: proportional reduction, then limited by the delivered data, then
/// slow start towards the threshold.
#[test]
fn prr_goes_through_all_its_parts() {
    let mut s = Script::new(linux(), 10.0);
    s.write(20.0);
    assert_eq!(s.sent(), range(0, 10));
    let mut now = 10.0;
    for (block, wanted) in [
        (5.0, 10.0),
        (6.0, 11.0),
        (7.0, 0.0),
        (8.0, 1.0),
        (9.0, 2.0),
        (10.0, 3.0),
        (11.0, 12.0),
        (12.0, 13.0),
    ] {
        s.ack_at(now, 0.0, &[(4.0, block)]);
        assert_eq!(s.sent(), [wanted], "{block}");
        now += 2.0;
    }
    now += 8.0;
    s.ack_at(now, 1.0, &[(4.0, 12.0)]);
    assert_eq!(s.sent(), [14.0, 15.0]);
    // The lost segment was sent before a retransmission that arrived, so segment 1 is lost again.
    s.ack_at(now + 2.0, 1.0, &[(2.0, 12.0)]);
    assert_eq!(s.sent(), [1.0, 16.0]);
    s.ack_at(now + 4.0, 1.0, &[(2.0, 13.0)]);
    assert_eq!(s.sent(), [17.0]);
    s.ack_at(now + 6.0, 1.0, &[(2.0, 14.0)]);
    assert_eq!(s.sent(), [18.0]);
}

/// `cwnd_moderation/cwnd-moderation-ecn-enter-cwr-no-moderation-700.pkt`: marks reduce the window by PRR. There,
/// three segments in flight and one delivered gave a window of four. `tcp_cwnd_reduction` has since added one when
/// SND.UNA moves without a loss. There is no further reduction in the same window of data.
#[test]
fn marks_reduce_the_window_within_a_round_trip() {
    let mut s = Script::new(
        Config {
            ecn: true,
            ..linux()
        },
        100.0,
    );
    s.write(4.0);
    s.sent();
    let ece = Flags::ACK.with(Flags::ECE);
    s.answer(100.0, 1.0, &[], ece, 0.0);
    assert_eq!(s.windows(), (5, 7));
    s.answer(101.0, 2.0, &[], ece, 0.0);
    s.answer(102.0, 4.0, &[], ece, 0.0);
    assert_eq!((s.stats().marks, s.windows().1), (1, 7));
    // The reduction ends when data sent since then is acknowledged.
    s.write(1.0);
    s.ack_at(200.0, 5.0, &[]);
    assert_eq!(s.windows(), (7, 7));
}

/// `tcp_slow_start_after_idle_check`: the window shrinks after silence although a reduction by marks is not over. The
/// threshold stays (`tcp_current_ssthresh`).
#[test]
fn silence_shrinks_a_window_that_marks_still_reduce() {
    let mut s = Script::within(
        Config {
            ecn: true,
            ..linux()
        },
        100.0,
        1_000_000,
    );
    // Slow start doubles the window to 40 segments.
    s.write(10.0);
    s.ack_at(100.0, 10.0, &[]);
    s.write(20.0);
    s.ack_at(200.0, 30.0, &[]);
    s.write(40.0);
    s.answer(300.0, 70.0, &[], Flags::ACK.with(Flags::ECE), 0.0);
    assert_eq!((s.stats().marks, s.windows()), (1, (28, 28)));
    assert_eq!(s.sent(), range(0, 70));
    // More than three time-outs of 300 ms.
    s.until(1300.0);
    s.write(28.0);
    assert_eq!(s.windows(), (10, 28));
    assert_eq!(s.sent(), range(70, 80));
}

/// RFC 8985 section 6.2 and `tcp_rack_reo_wnd`: once reordering was seen, a segment may be late by a quarter of the
/// smallest RTT. The timer then marks it lost.
#[test]
fn rack_waits_a_quarter_of_a_round_trip_where_the_path_reorders() {
    let mut s = Script::new(linux(), 100.0);
    s.write(10.0);
    // The second segment overtakes the first.
    s.ack_at(100.0, 0.0, &[(1.0, 2.0)]);
    s.ack_at(101.0, 2.0, &[]);
    s.write(20.0);
    s.sent();
    // Segment 2 is missing, and the seven segments above it arrive. All were sent at time 0.
    for k in 0..7 {
        s.ack_at(201.0, 2.0, &[(3.0, 4.0 + f64::from(k))]);
    }
    assert!(!s.sent().contains(&2.0), "seven above it, and not lost yet");
    s.until(300.0);
    let again: Vec<(f64, f64)> = s.sent_at().into_iter().filter(|x| x.1 == 2.0).collect();
    // The latest delivered segment was sent at 0 and took 201 ms. The smallest RTT is 100 ms, and the timer adds 2 ms.
    assert_eq!(again, [(228.0, 2.0)]);
}

/// `TCP_TIMEOUT_MIN_US`: however short the RTT, Linux waits for 2 ms more before it sends a probe, or takes a segment
/// for lost that others overtook.
#[test]
fn timers_of_short_paths_wait_for_two_milliseconds() {
    let mut tail = Script::new(linux(), 0.2);
    tail.write(3.0);
    tail.until(10.0);
    // Twice the RTT, and 2 ms. The RTO would be later.
    assert_eq!(tail.sent_at()[3..], [(2.4, 2.0)]);

    let mut late = Script::new(linux(), 0.2);
    late.write(10.0);
    // The second segment overtakes the first.
    late.ack_at(0.2, 0.0, &[(1.0, 2.0)]);
    late.ack_at(0.2, 2.0, &[]);
    late.ack_at(0.2, 2.0, &[(3.0, 10.0)]);
    late.sent();
    late.until(10.0);
    // RACK's RTT, a quarter of it, and 2 ms.
    assert_eq!(late.sent_at(), [(2.25, 2.0)]);
}

/// RFC 8985 section 7 and `tcp_process_tlp_ack`: the probe repeats the last segment after two RTTs.
#[test]
fn a_probe_that_repairs_a_loss_halves_and_one_that_does_not_does_not() {
    for (loss, copies) in [(true, false), (false, true)] {
        let mut s = Script::new(linux(), 100.0);
        s.write(3.0);
        s.ack_at(100.0, 2.0, &[]);
        s.sent();
        // With one segment outstanding, 200 ms are added for a delayed acknowledgement, but the probe is never later
        // than the RTO.
        s.until(399.0);
        assert!(s.sent().is_empty());
        s.until(401.0);
        assert_eq!(s.sent_at(), [(400.0, 2.0)]);
        s.ack_at(450.0, 3.0, &[]);
        assert!(s.windows().1 > 1000, "nothing is known yet");
        if copies {
            // The duplicate arrived too: RFC 2883.
            s.ack_at(500.0, 3.0, &[(2.0, 3.0)]);
        }
        s.write(1.0);
        s.ack_at(600.0, 4.0, &[]);
        assert_eq!(s.windows().1 == 7, loss, "{:?}", s.windows());
        assert_eq!(s.stats().rtos, 0);
    }
}

/// RFC 3708 and `tcp_try_undo_dsack`: every retransmission of a recovery is reported as a duplicate.
#[test]
fn a_needless_fast_retransmission_is_undone_when_its_copy_is_reported() {
    let mut s = Script::new(linux(), 100.0);
    s.write(30.0);
    s.sent();
    // The first segment is overtaken by all others of its flight.
    for k in 2..11 {
        s.ack_at(100.0, 0.0, &[(1.0, f64::from(k))]);
    }
    assert!(s.sent().contains(&0.0));
    assert_eq!(s.windows().1, 7);
    // It arrives, and its retransmission a little later.
    s.ack_at(110.0, 10.0, &[]);
    assert_eq!((s.windows(), s.stats().undone), ((7, 7), 0));
    s.ack_at(200.0, 10.0, &[(0.0, 1.0)]);
    let after = s.windows();
    assert!(after.0 >= 10 && after.1 > 1000, "{after:?}");
    assert_eq!(s.stats().undone, 1);
}

/// `tcp_try_undo_partial` and `_recovery`: with timestamps, the same is known without waiting for the duplicate.
#[test]
fn a_needless_fast_retransmission_is_undone_by_the_time_stamp() {
    let mut s = Script::new(
        Config {
            timestamps: true,
            ..linux()
        },
        100.0,
    );
    s.write(30.0);
    for k in 2..11 {
        s.echo_at(100.0, 0.0, &[(1.0, f64::from(k))], 0.0);
    }
    assert_eq!(s.windows().1, 7);
    s.echo_at(110.0, 10.0, &[], 0.0);
    let after = s.windows();
    assert!(after.0 >= 10 && after.1 > 1000, "{after:?}");
    assert_eq!(s.stats().undone, 1);
}

/// `tcp_fastretrans_alert`: a retransmission that is still unacknowledged when recovery ends starts the next
/// recovery, with a further reduction.
#[test]
fn a_retransmission_outstanding_at_the_end_of_recovery_reduces_again() {
    let reno = Config {
        algorithm: Algorithm::NewReno,
        ..linux()
    };
    let mut s = Script::new(reno, 100.0);
    s.write(60.0);
    assert_eq!(s.sent(), range(0, 10));
    // Segment 0 is lost. 10 and 11 are sent by limited transmit, others during recovery.
    for k in 2..11 {
        s.ack_at(100.0, 0.0, &[(1.0, f64::from(k))]);
    }
    let sent = s.sent();
    assert!(sent.contains(&0.0) && sent.contains(&12.0), "{sent:?}");
    assert_eq!(s.windows().1, 5);
    let recover = 12.0;
    // Of the segments sent since, 12 is lost and is detected as lost from those above it.
    s.ack_at(200.0, 0.0, &[(1.0, 12.0)]);
    for k in 0..4 {
        s.ack_at(200.0, 0.0, &[(13.0, 14.0 + f64::from(k)), (1.0, 12.0)]);
    }
    assert!(s.sent().contains(&12.0));
    assert_eq!((s.stats().recoveries, s.windows().1), (1, 5));
    s.ack_at(205.0, recover, &[(13.0, 17.0)]);
    assert_eq!((s.stats().recoveries, s.windows().1), (2, 2));
}

/// RFC 2883 section 4: a Linux receiver reports a duplicate once, before all other blocks.
#[test]
fn a_receiver_reports_what_arrives_twice() {
    let mut end = Endpoint::server(Arc::new(Config {
        handshake: false,
        ..linux()
    }));
    let mut take = |ms: f64, seq: u64, len: u64| {
        let seg = Segment {
            seq: 1 + seq * MSS,
            len: (len * MSS) as u32,
            ack: 1,
            window: 65_535,
            flags: Flags::ACK,
            ..Segment::default()
        };
        end.handle_segment(at(ms), &seg, &SackBlocks::default());
        let (answer, sacks) = end.poll_transmit(at(ms)).expect("at once");
        let number = |offset: i32| (answer.ack as i64 - 1 + i64::from(offset)) / MSS as i64;
        let said: Vec<(i64, i64)> = sacks
            .first(answer.sacks)
            .map(|(s, e)| (number(s), number(e)))
            .collect();
        ((answer.ack - 1) / MSS, said)
    };
    assert_eq!(take(0.0, 0, 1), (1, vec![]));
    // Below SND.UNA.
    assert_eq!(take(1.0, 0, 1), (1, vec![(0, 1)]));
    // Beyond a hole, twice; the second duplicate lies inside the other block.
    assert_eq!(take(2.0, 3, 2), (1, vec![(3, 5)]));
    assert_eq!(take(3.0, 4, 1), (1, vec![(4, 5), (3, 5)]));
    assert_eq!(take(4.0, 7, 1), (1, vec![(7, 8), (3, 5)]));
    // Partly below SND.UNA.
    assert_eq!(take(5.0, 0, 2), (2, vec![(0, 1), (7, 8), (3, 5)]));
    assert_eq!(take(6.0, 2, 1), (5, vec![(7, 8)]));
}
