//! What acknowledgements change: the flight, the scoreboard, the window.

use swell_base::{Dur, Flags, SackBlocks, Segment, Stamps, Time};

use super::round_trip;
use super::state::{Phase, Sender, Timer};
use crate::Config;
use crate::cc::Acked;
use crate::scoreboard::Delivered;

impl Sender {
    /// Processes an arriving acknowledgement. Returns how far SND.UNA moved.
    pub(crate) fn on_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        seg: &Segment,
        sacks: &SackBlocks,
    ) -> u64 {
        let ack = seg.ack;
        if ack < self.una || ack > self.nxt {
            return 0; // old, or for data that was never sent
        }
        if self.ns2 {
            return self.packets_acked(cfg, now, seg);
        }
        let edge = ack.saturating_add(u64::from(seg.window));
        let same_edge = edge <= self.edge;
        if !same_edge {
            self.edge = edge;
            if self.timer == Timer::Persist {
                self.deadline = Time::MAX;
            }
        }
        let (una, moved) = (self.una, ack - self.una);
        let twice = if cfg.dsack && seg.sacks > 0 {
            self.hear_twice(cfg, una, seg, sacks)
        } else {
            None
        };
        if self.outstanding() == 0 {
            self.timeouts = 0; // an answer to a window probe
            if cfg.rack_tlp {
                self.probe_answered(cfg, now, moved, seg);
            }
            return 0;
        }
        if cfg.ecn && seg.flags.has(Flags::ECE) {
            self.marked(cfg, now, ack);
        }
        let echo = seg.stamps.echo();
        let mut d = self.board.account(cfg.echoes().then_some(echo));
        if moved > 0 {
            self.board.ack(ack, &mut d);
            self.una = ack;
        }
        if cfg.sack && seg.sacks > 0 {
            self.sack(seg, sacks, twice.is_some(), &mut d);
        }
        d.one_way = if cfg.stamps() { echo } else { 0 };
        let rtt = self.measured(cfg, now, moved, &d, echo);
        if moved > 0 {
            self.advance(cfg, now, rtt);
        } else {
            if let Some((rtt, newest)) = rtt {
                self.rtt.sample(cfg, rtt, self.round());
                self.note_delay(cfg, now, newest);
            }
            // RFC 9002 section 6.2.1: every packet that is acknowledged counts.
            if cfg.quic && d.bytes > 0 {
                self.timeouts = 0;
                self.rtt.end_backoff();
                self.rearm(cfg, now);
            }
        }
        if d.bytes > 0
            && let Some(w) = self.window.westwood()
        {
            let srtt = self.rtt.smoothed().unwrap_or(Dur::ZERO);
            w.on_ack(now, d.bytes, srtt, self.rtt.min().unwrap_or(Dur::ZERO));
        }
        let mut lost = 0;
        if cfg.sack {
            if moved > 0 {
                self.dupacks = 0;
            }
            self.probe_answered(cfg, now, moved, seg);
            lost = self.board.lost();
            self.recover_with_sack(cfg, now, moved, &d, echo);
            lost = self.board.lost().saturating_sub(lost);
        } else if moved > 0 {
            self.new_ack_without_sack(cfg, now, moved, &d);
        } else if seg.len == 0 && same_edge && seg.seq_len() == 0 {
            self.dup_ack(cfg, now); // duplicate as defined in RFC 5681 section 2
        }
        if self.paced {
            self.model(cfg, now, moved, &d, lost);
        }
        self.rest();
        moved
    }

    /// The RTT samples of an acknowledgement (Linux `tcp_ack_update_rtt`), for the RTO and for CUBIC. The first comes
    /// from the oldest acknowledged segment if all were sent once, else from the oldest selectively acknowledged one
    /// sent once, else from the timestamp. The second comes from the newest segment instead of the oldest.
    fn measured(
        &self,
        cfg: &Config,
        now: Time,
        moved: u64,
        d: &Delivered,
        echo: u32,
    ) -> Option<(Dur, Dur)> {
        if !cfg.rtt_every_ack {
            return None;
        }
        let acked = d.oldest.filter(|_| !d.any_resent);
        match acked.or(d.oldest_sacked) {
            Some(oldest) => {
                let newest = d.newest.unwrap_or(oldest);
                Some((now.since(oldest), now.since(newest)))
            }
            None if moved > 0 && cfg.echoes() => round_trip(now, echo).map(|rtt| (rtt, rtt)),
            None => None,
        }
    }

    /// Processes the SACK blocks. If `twice` is set, the first block is a D-SACK and is skipped.
    fn sack(&mut self, seg: &Segment, sacks: &SackBlocks, twice: bool, d: &mut Delivered) {
        let mut blocks = [(0, 0); 3];
        let mut n = 0;
        for (start, end) in sacks.first(seg.sacks).skip(usize::from(twice)) {
            // Data below SND.UNA is already acknowledged.
            let at = |offset: i32| seg.ack + u64::from(offset.max(0).unsigned_abs());
            let (start, end) = (at(start), at(end).min(self.nxt));
            if start < end {
                blocks[n] = (start, end);
                n += 1;
            }
        }
        self.board.sack(&blocks[..n], d);
    }

    /// SND.UNA moved: updates RTT estimate, counters and timer. `rtt` holds the samples for the RTO and for CUBIC, if
    /// every acknowledgement gives them.
    pub(super) fn advance(&mut self, cfg: &Config, now: Time, rtt: Option<(Dur, Dur)>) {
        self.timeouts = 0;
        let mut rtt = rtt;
        if !cfg.rtt_every_ack && self.timed.0 != 0 && self.una >= self.timed.0 {
            let timed = now.since(self.timed.1);
            rtt = Some((timed, timed));
            self.timed.0 = 0;
        }
        if let Some((rtt, newest)) = rtt {
            self.rtt.sample(cfg, rtt, self.round());
            self.note_delay(cfg, now, newest);
            self.mind_slow_start(now, newest, cfg);
        }
        // RFC 6582 section 3.2 step 3: in fast recovery without SACK only the first partial
        // acknowledgement restarts the timer.
        let keep = !cfg.sack && self.phase == Phase::Recovery && self.una < self.recover;
        if !(keep && std::mem::replace(&mut self.partial_acked, keep)) || self.outstanding() == 0 {
            self.rearm(cfg, now);
        }
    }

    #[inline]
    pub(super) fn grow(&mut self, cfg: &Config, now: Time, d: &Delivered) {
        if !self.window.is_plain() {
            let limited = self.may_grow(cfg);
            let acked = self.acked(now, d, limited);
            if limited || self.window.reacts_to_delay() {
                self.window.on_ack_measured(cfg, &acked);
            }
        } else {
            self.grow_plainly(cfg, now, d.bytes);
        }
    }

    #[inline]
    pub(super) fn grow_plainly(&mut self, cfg: &Config, now: Time, bytes: u64) {
        if self.may_grow(cfg) {
            let shortest = self.delay_min().unwrap_or(Dur::ZERO);
            self.window.on_ack(cfg, now, bytes, shortest);
        }
    }

    /// Collects the inputs for algorithms that use more than losses.
    pub(super) fn acked(&self, now: Time, d: &Delivered, limited: bool) -> Acked {
        let newest = d.last_sent.filter(|&(_, _, resent)| !resent);
        Acked {
            now,
            bytes: d.bytes,
            lost: 0,
            srtt: self.rtt.smoothed().unwrap_or(Dur::ZERO),
            rtt: newest.map(|(sent, ..)| now.since(sent)),
            min_rtt: self.rtt.min().unwrap_or(Dur::ZERO),
            delayed: false,
            one_way: (d.one_way > 0).then(|| Stamps::TICK * u64::from(d.one_way)),
            limited,
            flight: self.in_flight(),
            una: self.una,
            nxt: self.nxt,
        }
    }
}
