//! The receiving half: reassembly by ranges, acknowledgements and when to send them.

mod gaps;
mod tuning;

use gaps::Gaps;
use tuning::Tuning;

use swell_base::{Flags, SackBlocks, Segment, Stamps, Time, fetch};

use crate::Config;

/// Full-segment size assumed before one was seen (Linux `tcp_initialize_rcv_mss`).
const FIRST_MSS: u32 = 536;

/// Congestion experienced (RFC 3168 section 5).
const CE: u8 = 3;

/// The clock of one-way delays and of the receive buffer.
pub(crate) fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32 // wraps, as stamps do
}

/// The clock of time stamps (Linux `tcp_time_stamp_ms`).
pub(crate) fn millis(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32 // wraps
}

/// With the settings before it and the counters behind a cache line.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// RCV.NXT.
    pub(crate) nxt: u64,
    /// When a delayed acknowledgement must go; `Time::MAX` for none.
    pub(crate) deadline: Time,
    /// Payload bytes received in order and not yet delivered to the application.
    pub(crate) undelivered: u64,
    /// The receive buffer, where there is more to say of it than that it is empty and as large as at first.
    buffer: Option<Box<Buffer>>,
    /// Largest payload seen.
    mss: u32,
    /// Payload bytes in order since the last acknowledgement sent.
    unacked: u32,
    /// The stamp that goes back: of a transport that measures one-way delays that of the last data, in
    /// microseconds; otherwise TS.Recent of RFC 7323, in milliseconds.
    echoed: u32,
    pub(crate) fin_taken: bool,
    /// A mark is to be echoed until the sender says that it acted (RFC 3168 section 6.1.3).
    pub(crate) echo: bool,
    /// Immediate acknowledgements left.
    quick: u8,
    pub(crate) ack_now: bool,
}

/// See [`Receiver::buffer`].
#[derive(Clone, Debug, Default)]
struct Buffer {
    tuning: Option<Tuning>,
    /// While something lies beyond a hole.
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

    /// Takes a segment's payload and FIN.
    pub(crate) fn on_segment(&mut self, cfg: &Config, now: Time, seg: &Segment) {
        let fin = seg.flags.has(Flags::FIN);
        if seg.len == 0 && !fin {
            return self.on_bare_ack(cfg, seg);
        }
        if self.fin_taken {
            self.ack_now = true; // data or FIN again: our acknowledgement was lost
            return;
        }
        let edge = self.nxt.saturating_add(u64::from(self.window(cfg)));
        let data_end = seg.seq.saturating_add(u64::from(seg.len));
        if seg.seq > edge || data_end < self.nxt {
            if data_end < self.nxt && cfg.dsack && cfg.sack {
                self.note_twice(seg.seq, data_end);
            }
            self.ack_now = true; // RFC 9293 section 3.10.7.4: not acceptable, say what is
            return;
        }
        let mut last = self.gaps().map_or(u64::MAX, |g| g.fin);
        if fin && last == u64::MAX && data_end <= edge {
            last = data_end;
        }
        // Nothing follows a FIN, which takes a sequence number itself.
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
                self.ack_now = true; // seen before
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
            self.nxt = last + 1; // what a peer sent past its FIN is not taken
            self.buffer = None;
        }
        let readable = self.nxt - before - u64::from(self.fin_taken);
        self.undelivered += readable;
    }

    /// Payload bytes taken in order: what was taken but the SYN, which has number 0, and the FIN.
    pub(crate) fn delivered(&self) -> u64 {
        self.nxt.saturating_sub(1 + u64::from(self.fin_taken))
    }

    /// Neither payload nor FIN.
    #[inline]
    pub(crate) fn on_bare_ack(&mut self, cfg: &Config, seg: &Segment) {
        self.hear(cfg, seg);
        // A window probe or keep-alive carries an old number and wants an answer; other old
        // segments without payload are acknowledgements overtaken by later ones.
        self.ack_now |= seg.seq.saturating_add(1) == self.nxt;
    }

    /// Takes a segment if it is data in order and nothing else; false if it is not, and nothing was done.
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

    /// RFC 7323 section 4.3: what the next segment echoes is the time stamp of the oldest that it acknowledges, so
    /// that a delayed acknowledgement counts in the round trip, and of the last in order while there is a hole.
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

    /// The first segment of the peer's: its time stamp is echoed whatever was before.
    pub(crate) fn hear_syn(&mut self, cfg: &Config, seg: &Segment) {
        if cfg.is_timed() {
            self.echoed = seg.stamps.value();
        }
    }

    /// What a segment carries that goes out at `now`.
    #[inline]
    pub(crate) fn stamps(&mut self, cfg: &Config, now: Time, data: bool) -> Stamps {
        if !cfg.is_timed() {
            return Stamps::one_way(self.echoed);
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

    /// What of `start..end` was here before is said with the next acknowledgement (RFC 2883).
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

    /// Data has come, of which nothing was read yet.
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
                // Without SACK a window that grew would hide a duplicate (`tcp_data_queue_ofo`).
                let grows = seg.seq <= self.nxt || cfg.sack;
                self.quick |= tuning.fill(cfg, now, seg, grows);
            }
            // Small requests need no buffer.
            _ if seg.len < FIRST_MSS => {}
            _ => {
                self.buffer.get_or_insert_default().tuning =
                    Some(Tuning::new(cfg, now, seg, self.nxt))
            }
        }
    }

    /// The application has read everything up to `nxt`.
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

    /// Marks and stamps of a segment with data.
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
            self.echoed = micros(now).wrapping_sub(seg.stamps.micros());
        }
    }

    #[inline]
    fn in_order(&mut self, cfg: &Config, now: Time, end: u64, len: u32) {
        // Within the window, so within 32 bits.
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

    /// Adds `start..end` to the ranges and takes what became contiguous; `fin` is where the FIN stands.
    #[inline(never)]
    fn insert(&mut self, cfg: &Config, start: u64, end: u64, fin: u64) {
        if start >= end {
            return;
        }
        // One hole per full segment of the window is the most an honest peer makes.
        let most = (self.window(cfg) / cfg.mss()).max(64) as usize;
        let buffer = &mut **self.buffer.get_or_insert_default();
        let gaps = &mut **buffer.gaps.get_or_insert_default();
        gaps.fin = fin;
        let (s, e) = gaps.insert(start, end, most);
        if s <= self.nxt {
            // Touching ranges are merged, so only the first can reach `nxt`.
            self.nxt = e;
            gaps.ranges.remove(0);
        }
        if gaps.is_empty() {
            buffer.gaps = None;
            if buffer.tuning.is_none() {
                self.buffer = None;
            }
        }
    }

    /// What is known to lie beyond a hole.
    #[inline]
    fn gaps(&self) -> Option<&Gaps> {
        self.buffer.as_ref()?.gaps.as_deref()
    }

    /// [Asks](fetch()) for the buffer, where there is more to say of it.
    #[inline]
    pub(crate) fn fetch_buffer(&self) {
        if let Some(buffer) = self.buffer.as_deref() {
            fetch(buffer);
        }
    }

    /// Asks for what is kept of data beyond a hole.
    #[inline]
    pub(crate) fn fetch_gaps(&self) {
        if let Some(gaps) = self.gaps() {
            fetch(gaps);
        }
    }

    /// Writes the blocks to report, latest first, and says how many they are.
    pub(crate) fn blocks(&self, out: &mut SackBlocks) -> u8 {
        self.gaps().map_or(0, |g| g.blocks(self.nxt, out))
    }

    /// The connection is over.
    pub(crate) fn release(&mut self) {
        self.buffer = None;
        self.deadline = Time::MAX;
    }

    /// Whether bytes are missing below others that arrived.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        self.gaps().is_some_and(|g| !g.ranges.is_empty())
    }

    /// Whether there is anything to be said by selective acknowledgements.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.gaps()
            .is_some_and(|g| !g.ranges.is_empty() || g.twice.is_some())
    }

    /// An acknowledgement went out.
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

    /// What arrived twice is said once.
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
