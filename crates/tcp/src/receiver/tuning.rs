//! Automatic tuning of the receive buffer as in Linux (`net/ipv4/tcp_input.c` of 6.18), after M. Fisk, W. Feng,
//! "Dynamic right-sizing in TCP", 2001. Sizes are window sizes: the kernel's memory overhead per payload byte is left
//! out on both sides of its formulas.

use std::num::NonZeroU32;

use swell_base::{Segment, Stamps, Time};

use crate::Config;
use crate::clock::{micros, millis};

/// Size of the first round in segments (`TCP_INIT_CWND`).
const FIRST_ROUND: u32 = 10;
/// Payloads shorter than this do not enlarge the window (`tcp_event_data_recv`), in bytes.
const LEAST: u32 = 128;
/// `TCP_MAX_QUICKACKS`: used after a pause, when the sender restarts slowly.
const AFTER_PAUSE: u8 = 16;
/// Upper limit of RTT samples in microseconds. It leaves room for sums of values stored times eight.
const LONGEST: u32 = u32::MAX / 16;

/// The buffer's size and the measurements that set it. Times are in microseconds and wrap, as the stamps do.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    /// The advertised window (`rcv_ssthresh`).
    window: u32,
    /// The maximum of `window` (`window_clamp`).
    clamp: u32,
    /// The largest number of bytes read in one RTT (`rcvq_space.space`).
    space: u32,
    /// The RTT times eight (`rcv_rtt_est.rtt_us`): the smallest sample; larger samples are smoothed. It is non-zero
    /// so that an `Option` of this struct needs no extra space before tuning starts.
    rtt: NonZeroU32,
    /// Start of the current measurement: sequence number and time.
    seq: u64,
    since: u32,
    /// The echo from which the last sample was taken, in milliseconds.
    echo: u32,
    /// When this end last sent data.
    asked: u32,
    /// When data last arrived.
    last: u32,
}

impl Tuning {
    /// Starts tuning at the first full segment, when `nxt` was the next expected sequence number.
    pub fn new(cfg: &Config, now: Time, seg: &Segment, nxt: u64) -> Tuning {
        let sample = by_echo(now, seg.stamps.echo());
        Tuning {
            window: cfg.first_window(),
            clamp: cfg.first_window(),
            space: FIRST_ROUND
                .saturating_mul(cfg.mss())
                .min(cfg.first_window()),
            rtt: eightfold(sample),
            seq: nxt + u64::from(seg.len),
            since: micros(now),
            echo: seg.stamps.echo(),
            asked: micros(now).wrapping_sub(sample),
            last: micros(now),
        }
    }

    /// The advertised window in bytes.
    #[inline]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Notes that this end has sent data. A response to it must be newer.
    #[inline]
    pub fn asked(&mut self, now: Time) {
        self.asked = micros(now);
    }

    /// Updates the tuning for an arriving data segment; `grows` says whether the window may grow. Returns the number
    /// of acknowledgements to send without delay, for a bitwise OR with the remaining number.
    #[inline]
    pub fn fill(&mut self, cfg: &Config, now: Time, seg: &Segment, grows: bool) -> u8 {
        let echo = seg.stamps.echo();
        if echo != self.echo && seg.len >= cfg.mss() {
            self.echo = echo;
            self.sample(micros(now), by_echo(now, echo));
        }
        let now = micros(now);
        let pause = now.wrapping_sub(self.last);
        self.last = now;
        // The sender's RTO is not known here, so it is estimated from the local RTT.
        let rto = u64::from(self.rtt.get() / 8) + cfg.min_rto.as_nanos() / 1000;
        let quick = if u64::from(pause) > rto {
            AFTER_PAUSE
        } else {
            0
        };
        // `tcp_grow_window`.
        let room = self.clamp.saturating_sub(self.window);
        if room == 0 || !grows || seg.len < LEAST {
            return quick;
        }
        self.window += room.min(cfg.mss().max(seg.len).saturating_mul(2));
        quick | 1
    }

    /// Notes that the application has read everything up to `nxt`. `beyond` bytes of data lie beyond that
    /// (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`).
    #[inline]
    pub fn taken(&mut self, cfg: &Config, now: Time, nxt: u64, beyond: u64) {
        let now = micros(now);
        if now.wrapping_sub(self.since) < self.rtt.get() / 8 {
            return;
        }
        let copied = u32::try_from(nxt.saturating_sub(self.seq)).unwrap_or(u32::MAX);
        if copied > self.space {
            self.widen(cfg, copied, beyond);
        }
        self.seq = nxt;
        self.since = now;
    }

    fn widen(&mut self, cfg: &Config, copied: u32, beyond: u64) {
        let (copied, space) = (u64::from(copied), u64::from(self.space.max(1)));
        // The measurement is one RTT old, and a sender in slow start has doubled its rate since.
        let window = 2 * copied;
        let growth =
            u128::from(window) * u128::from(copied - space.min(copied)) / u128::from(space);
        let wanted = u128::from(window) + 2 * growth + u128::from(beyond);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        self.clamp = self.clamp.max(wanted.min(cfg.recv_buffer));
        self.space = copied as u32; // it came as one
    }

    /// `tcp_rcv_rtt_measure_ts`, `tcp_rcv_rtt_update`.
    fn sample(&mut self, now: u32, measured: u32) {
        let sample = measured.min(now.wrapping_sub(self.asked)).clamp(1, LONGEST);
        self.rtt = if sample * 8 < self.rtt.get() {
            eightfold(sample)
        } else {
            NonZeroU32::MIN.saturating_add(self.rtt.get() - self.rtt.get() / 8 + sample - 1)
        };
    }
}

/// The RTT according to an echoed timestamp, in microseconds. It is at least one millisecond, the resolution of
/// timestamps.
fn by_echo(now: Time, echo: u32) -> u32 {
    let elapsed = Stamps::since(millis(now), echo).max(1).unsigned_abs();
    elapsed.saturating_mul(1000).min(LONGEST)
}

/// Eight times an RTT in microseconds, after clamping the RTT to 1 and [`LONGEST`].
fn eightfold(rtt: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(rtt * 8 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FIRST_WINDOW;
    use swell_base::Dur;

    const MSS: u32 = 1448;
    const RTT: u64 = 100;

    fn at(ms: u64) -> Time {
        Time::ZERO + Dur::from_millis(ms)
    }

    /// Feeds rounds of the given numbers of segments, 100 ms apart, each answering the stamps of the round before.
    /// Returns for each round the window and the number of segments to acknowledge at once.
    fn rounds(sizes: &[u32], cfg: &Config) -> Vec<(u32, u32)> {
        let mut nxt = 1;
        let mut tuning = None;
        let mut out = Vec::new();
        for (i, &n) in sizes.iter().enumerate() {
            let now = at(1000 + RTT * i as u64);
            let mut quick = 0;
            for _ in 0..n {
                let seg = Segment {
                    seq: nxt,
                    len: MSS,
                    stamps: Stamps::new(0, millis(now) - RTT as u32),
                    ..Segment::default()
                };
                match &mut tuning {
                    None => tuning = Some(Tuning::new(cfg, now, &seg, nxt)),
                    Some(t) => quick += u32::from(t.fill(cfg, now, &seg, true) & 1),
                }
                nxt += u64::from(MSS);
                if let Some(t) = &mut tuning {
                    t.taken(cfg, now, nxt, 0);
                }
            }
            out.push((tuning.as_ref().map_or(0, |t| t.window), quick));
        }
        out
    }

    #[test]
    fn the_window_follows_slow_start_two_segments_for_each_that_comes() {
        // The bytes read in one RTT are known when the next round begins, one segment into it.
        let got = rounds(&[10, 20, 40, 80, 80], &Config::linux());
        assert_eq!(got[0], (FIRST_WINDOW, 0));
        assert_eq!(got[1], (FIRST_WINDOW, 0));
        // 20 in one RTT after 10 in the one before. Twice 20 is 40, and the growth by 10/10 adds twice 40 more: 120
        // segments.
        assert_eq!(
            got[2],
            (120 * MSS, (120 * MSS - FIRST_WINDOW).div_ceil(2 * MSS))
        );
        // 40: 240 segments, but only two for each segment that arrives.
        assert_eq!(got[3], (240 * MSS, 60));
        // 80: 480 segments, which the segments that arrive do not reach.
        assert_eq!(got[4], ((240 + 2 * 79) * MSS, 79));
    }

    #[test]
    fn no_more_than_the_buffer_is_offered() {
        let cfg = Config {
            recv_buffer: 100_000,
            ..Config::linux()
        };
        assert_eq!(rounds(&[10, 20, 40, 80, 80], &cfg)[4].0, 100_000);
        let small = Config {
            recv_buffer: 20_000,
            ..Config::linux()
        };
        assert_eq!(rounds(&[10, 20, 40, 80, 80], &small)[4], (20_000, 0));
    }

    #[test]
    fn a_pause_is_no_round_trip() {
        let cfg = Config::linux();
        let seg = |seq: u64, stamp: Time| Segment {
            seq,
            len: MSS,
            stamps: Stamps::new(0, millis(stamp)),
            ..Segment::default()
        };
        let mut t = Tuning::new(&cfg, at(1100), &seg(1, at(1000)), 1);
        assert_eq!(t.rtt.get() / 8, 100_000);
        // The application pauses for ten seconds and then sends another request.
        t.asked(at(11_100));
        let quick = t.fill(&cfg, at(11_200), &seg(1449, at(1100)), true);
        assert_eq!(quick & !1, AFTER_PAUSE);
        assert_eq!(t.rtt.get() / 8, 100_000);
        // The echo of that request gives a sample of 400 ms, which is smoothed with weight 1/8.
        t.fill(&cfg, at(11_500), &seg(2897, at(11_100)), true);
        assert_eq!(t.rtt.get() / 8, 100_000 - 12_500 + 50_000);
    }
}
