//! The receiving half: reassembly by ranges, acknowledgements and when to send them.

mod gaps;
mod tuning;

use gaps::Gaps;
use tuning::Tuning;

use swell_base::{Flags, SackBlocks, Segment, Stamps, Time, fetch};

use crate::Config;
use crate::clock::millis;

/// Full-segment size assumed before a segment arrives (Linux `tcp_initialize_rcv_mss`).
const FIRST_MSS: u32 = 536;

/// Congestion experienced (RFC 3168 section 5).
const CE: u8 = 3;

/// Clock for one-way delays.
pub(crate) fn ticks(now: Time) -> u32 {
    (now.as_nanos() / Stamps::TICK.as_nanos()) as u32 // wraps
}

/// One cache line, together with the settings before it and the counters after it.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// RCV.NXT.
    pub(crate) nxt: u64,
    /// When a delayed acknowledgement must be sent; `Time::MAX` for none.
    pub(crate) deadline: Time,
    /// Payload bytes received in order and not yet delivered to the application.
    pub(crate) undelivered: u64,
    /// State of the receive buffer. `None` while it is empty and has its initial size.
    buffer: Option<Box<Buffer>>,
    /// Largest payload seen.
    mss: u32,
    /// Payload bytes in order since the last acknowledgement sent.
    unacked: u32,
    /// The number to echo. With one-way delay measurement it is the delay of the last data segment, in ticks;
    /// otherwise TS.Recent of RFC 7323, in milliseconds.
    echoed: u32,
    pub(crate) fin_taken: bool,
    /// A mark is echoed until the sender confirms that it reduced its window (RFC 3168 section 6.1.3).
    pub(crate) echo: bool,
    /// Remaining acknowledgements that are sent without delay.
    quick: u8,
    pub(crate) ack_now: bool,
}

/// See [`Receiver::buffer`].
#[derive(Clone, Debug, Default)]
struct Buffer {
    tuning: Option<Tuning>,
    /// Present while data lies beyond a hole.
    gaps: Option<Box<Gaps>>,
}

impl Receiver {
    pub(crate) fn new(cfg: &Config) -> Receiver {
        Receiver {
            nxt: u64::from(!cfg.handshake()),
            fin_taken: false,
            echo: false,
            echoed: 0,
            buffer: None,
            mss: FIRST_MSS,
            unacked: 0,
            quick: cfg.quick_acks,
            ack_now: false,
            deadline: Time::MAX,
            undelivered: 0,
        }
    }

    /// Processes a segment's payload and FIN.
    pub(crate) fn on_segment(&mut self, cfg: &Config, now: Time, seg: &Segment) {
        let fin = seg.flags.has(Flags::FIN);
        if seg.len == 0 && !fin {
            return self.on_bare_ack(cfg, seg);
        }
        if self.fin_taken {
            self.ack_now = true; // repeated data or FIN: our acknowledgement was lost
            return;
        }
        let edge = self.nxt.saturating_add(u64::from(self.window(cfg)));
        let data_end = seg.seq.saturating_add(u64::from(seg.len));
        if seg.seq > edge || data_end < self.nxt {
            if data_end < self.nxt && cfg.dsack && cfg.sack {
                self.note_twice(seg.seq, data_end);
            }
            self.ack_now = true; // RFC 9293 section 3.10.7.4: not acceptable, so answer with an ACK
            return;
        }
        let mut last = self.gaps().map_or(u64::MAX, |g| g.fin);
        if fin && last == u64::MAX && data_end <= edge {
            last = data_end;
        }
        // Nothing can follow a FIN, which itself takes a sequence number.
        let mut end = data_end.min(edge).min(last);
        if fin && end == last {
            end += 1;
        }
        let before = self.nxt;
        self.hear(cfg, seg);
        if cfg.dsack && cfg.sack {
            self.note_twice(seg.seq, end);
        }
        self.fill(cfg, now, seg);
        if seg.seq <= self.nxt && !self.has_gap() {
            if end > self.nxt {
                self.in_order(cfg, now, end, seg.len);
            } else {
                self.ack_now = true; // duplicate
            }
        } else {
            let pending = self.deadline != Time::MAX;
            self.insert(cfg, seg.seq.max(self.nxt), end, last);
            // Out of order, or fills a gap (RFC 5681 section 4.2).
            let plain = self.nxt == end && self.has_gap() && end > before;
            if cfg.ack_filling || !plain || pending || !cfg.delayed_ack {
                self.ack_now = true;
            } else {
                self.deadline = now + cfg.ack_delay;
            }
        }
        self.taken(cfg, now);
        if self.nxt > last {
            self.fin_taken = true;
            self.ack_now = true;
            self.nxt = last + 1; // data beyond the peer's FIN is ignored
            self.buffer = None;
        }
        let readable = self.nxt - before - u64::from(self.fin_taken);
        self.undelivered += readable;
    }

    /// Payload bytes received in order: excludes the SYN, which has number 0, and the FIN.
    pub(crate) fn delivered(&self) -> u64 {
        self.nxt.saturating_sub(1 + u64::from(self.fin_taken))
    }

    /// Processes a segment with neither payload nor FIN.
    #[inline]
    pub(crate) fn on_bare_ack(&mut self, cfg: &Config, seg: &Segment) {
        self.hear(cfg, seg);
        // A window probe or keep-alive carries an old sequence number and expects an answer. Other old segments
        // without payload are acknowledgements overtaken by later ones.
        self.ack_now |= seg.seq.saturating_add(1) == self.nxt;
    }

    /// Fast path for in-order data with nothing special. Returns false, without any effect, for other segments.
    #[inline]
    pub(crate) fn on_expected(&mut self, cfg: &Config, now: Time, seg: &Segment) -> bool {
        let expected = seg.seq == self.nxt
            && (1..=self.window(cfg)).contains(&seg.len)
            && self.gaps().is_none()
            && !self.fin_taken;
        if expected {
            let len = u64::from(seg.len);
            self.hear(cfg, seg);
            self.fill(cfg, now, seg);
            self.in_order(cfg, now, seg.seq.saturating_add(len), seg.len);
            self.taken(cfg, now);
            self.undelivered += len;
        }
        expected
    }

    /// The receive window in bytes.
    #[inline]
    pub(crate) fn window(&self, cfg: &Config) -> u32 {
        if !cfg.is_tuned() {
            return cfg.recv_buffer;
        }
        let tuning = self.buffer.as_ref().and_then(|b| b.tuning.as_ref());
        tuning.map_or_else(|| cfg.first_window(), Tuning::window)
    }

    /// Updates TS.Recent (RFC 7323 section 4.3). The next acknowledgement echoes the timestamp of the oldest segment
    /// that it covers, so that the RTT includes the delay of acknowledgements. While there is a hole, it echoes that
    /// of the last in-order segment.
    #[inline]
    fn hear(&mut self, cfg: &Config, seg: &Segment) {
        if !cfg.is_timed() {
            return;
        }
        // Last.ACK.sent.
        let said = self.nxt.saturating_sub(u64::from(self.unacked));
        let value = seg.stamps.value();
        if seg.seq <= said && Stamps::since(value, self.echoed) >= 0 {
            self.echoed = value;
        }
    }

    /// Processes the peer's first segment, whose timestamp is echoed unconditionally.
    pub(crate) fn hear_syn(&mut self, cfg: &Config, seg: &Segment) {
        if cfg.is_timed() {
            self.echoed = seg.stamps.value();
        }
    }

    /// The stamps of a segment sent at `now`.
    #[inline]
    pub(crate) fn stamps(&mut self, cfg: &Config, now: Time, data: bool) -> Stamps {
        if !cfg.is_timed() {
            return Stamps::new(0, self.echoed); // a one-way delay; data has its time of sending, too
        }
        if data
            && let Some(Buffer {
                tuning: Some(tuning),
                ..
            }) = self.buffer.as_deref_mut()
        {
            tuning.asked(now);
        }
        Stamps::new(millis(now), self.echoed)
    }

    /// Notes the part of `start..end` that had already arrived. The next acknowledgement reports it (RFC 2883).
    fn note_twice(&mut self, start: u64, end: u64) {
        let below = end.min(self.nxt);
        let twice = if start < below {
            Some((start, below))
        } else {
            self.gaps().and_then(|g| g.overlap(start, end))
        };
        if let Some(twice) = twice {
            let gaps = &mut self.buffer.get_or_insert_default().gaps;
            gaps.get_or_insert_default().twice = Some(twice);
        }
    }

    /// Updates the buffer tuning for arriving data, before the application reads it.
    #[inline]
    fn fill(&mut self, cfg: &Config, now: Time, seg: &Segment) {
        if !cfg.is_tuned() {
            return;
        }
        match self.buffer.as_deref_mut() {
            Some(Buffer {
                tuning: Some(tuning),
                ..
            }) => {
                // Without SACK, a growing window would hide a duplicate acknowledgement (`tcp_data_queue_ofo`).
                let grows = seg.seq <= self.nxt || cfg.sack;
                self.quick |= tuning.fill(cfg, now, seg, grows);
            }
            // Small requests need no buffer state.
            _ if seg.len < FIRST_MSS => {}
            _ => {
                self.buffer.get_or_insert_default().tuning =
                    Some(Tuning::new(cfg, now, seg, self.nxt))
            }
        }
    }

    /// Notes that the application has read everything up to `nxt`.
    #[inline]
    fn taken(&mut self, cfg: &Config, now: Time) {
        if let Some(Buffer {
            gaps,
            tuning: Some(tuning),
        }) = self.buffer.as_deref_mut()
        {
            let last = gaps.as_ref().and_then(|g| g.ranges.last());
            let beyond = last.map_or(0, |r| r.1 - self.nxt);
            tuning.taken(cfg, now, self.nxt, beyond);
        }
    }

    /// Processes ECN mark and stamp of a data segment.
    #[inline(never)]
    pub(crate) fn note(&mut self, cfg: &Config, now: Time, seg: &Segment) {
        if cfg.ecn {
            self.echo &= !seg.flags.has(Flags::CWR);
            let marked = seg.ecn == CE;
            // The first mark is echoed at once.
            self.ack_now |= marked && !self.echo;
            self.echo |= marked;
        }
        if cfg.stamps() {
            // Zero means that nothing was measured.
            let delay = ticks(now).wrapping_sub(seg.stamps.value()) % Stamps::RANGE;
            self.echoed = delay.max(1);
        }
    }

    #[inline]
    fn in_order(&mut self, cfg: &Config, now: Time, end: u64, len: u32) {
        // The difference is within the window, so it fits into 32 bits.
        self.unacked = self.unacked.saturating_add((end - self.nxt) as u32);
        self.nxt = end;
        self.mss = self.mss.max(len);
        // RFC 1122 section 4.2.3.2: at least every second full segment.
        let most = u32::from(cfg.ack_every.max(1) - 1).saturating_mul(self.mss);
        if !cfg.delayed_ack || self.quick > 0 || self.unacked > most {
            self.ack_now = true;
        } else if self.deadline == Time::MAX {
            self.deadline = now + cfg.ack_delay;
        }
    }

    /// Adds `start..end` to the ranges and delivers what becomes contiguous. `fin` is the sequence number of the FIN,
    /// `u64::MAX` if unknown.
    #[inline(never)]
    fn insert(&mut self, cfg: &Config, start: u64, end: u64, fin: u64) {
        if start >= end {
            return;
        }
        // An honest peer creates at most one hole per full segment of the window.
        let most = (self.window(cfg) / cfg.mss()).max(64) as usize;
        let buffer = &mut **self.buffer.get_or_insert_default();
        let gaps = &mut **buffer.gaps.get_or_insert_default();
        gaps.fin = fin;
        let (s, e) = gaps.insert(start, end, most);
        if s <= self.nxt {
            // Touching ranges are merged, so only the first can reach `nxt`.
            self.nxt = e;
            gaps.ranges.remove(0);
        } else if cfg.quic && s != u64::MAX {
            let end = end.min(fin); // the FIN is not data
            gaps.early = (start < end).then_some((start, end));
        }
        if gaps.is_empty() {
            buffer.gaps = None;
            if buffer.tuning.is_none() {
                self.buffer = None;
            }
        }
    }

    /// The state of data beyond a hole, if any.
    #[inline]
    fn gaps(&self) -> Option<&Gaps> {
        self.buffer.as_ref()?.gaps.as_deref()
    }

    /// [Prefetches](fetch()) the buffer state, if allocated.
    #[inline]
    pub(crate) fn fetch_buffer(&self) {
        if let Some(buffer) = self.buffer.as_deref() {
            fetch(buffer);
        }
    }

    /// Prefetches the state of data beyond a hole.
    #[inline]
    pub(crate) fn fetch_gaps(&self) {
        if let Some(gaps) = self.gaps() {
            fetch(gaps);
        }
    }

    /// Takes the range of data beyond a hole that arrived last, as sequence numbers.
    #[cold]
    pub(crate) fn take_early(&mut self) -> Option<(u64, u64)> {
        self.buffer.as_mut()?.gaps.as_mut()?.early.take()
    }

    /// Writes the SACK blocks to report, latest first, and returns their number.
    pub(crate) fn blocks(&self, out: &mut SackBlocks) -> u8 {
        self.gaps().map_or(0, |g| g.blocks(self.nxt, out))
    }

    /// Frees state at the end of the connection.
    pub(crate) fn release(&mut self) {
        self.buffer = None;
        self.deadline = Time::MAX;
    }

    /// Whether bytes are missing below others that arrived.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        self.gaps().is_some_and(|g| !g.ranges.is_empty())
    }

    /// Whether there are SACK blocks to report.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.gaps()
            .is_some_and(|g| !g.ranges.is_empty() || g.twice.is_some())
    }

    /// Updates state after an acknowledgement was sent.
    #[inline]
    pub(crate) fn acked(&mut self) {
        if self.unacked > 0 {
            self.quick = self.quick.saturating_sub(1);
        }
        self.unacked = 0;
        self.ack_now = false;
        self.deadline = Time::MAX;
        if self.buffer.is_some() {
            self.forget_twice();
        }
    }

    /// A duplicate is reported only once.
    fn forget_twice(&mut self) {
        let Some(buffer) = self.buffer.as_deref_mut() else {
            return;
        };
        let Some(gaps) = buffer.gaps.as_deref_mut() else {
            return;
        };
        gaps.twice = None;
        if gaps.is_empty() {
            buffer.gaps = None;
            if buffer.tuning.is_none() {
                self.buffer = None;
            }
        }
    }
}
