//! The receiving half: reassembly by ranges, acknowledgements and when to send them.

use swell_base::{Flags, SackBlocks, Segment, Time};

use crate::Config;

/// Full-segment size assumed before one was seen (Linux `tcp_initialize_rcv_mss`).
const FIRST_MSS: u32 = 536;

/// Congestion experienced (RFC 3168 section 5).
const CE: u8 = 3;

/// The clock of stamps.
pub(crate) fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32 // wraps, as stamps do
}

/// With the settings before it a cache line.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// RCV.NXT.
    pub(crate) nxt: u64,
    /// When a delayed acknowledgement must go; `Time::MAX` for none.
    pub(crate) deadline: Time,
    /// Payload bytes taken in order.
    pub(crate) delivered: u64,
    /// Of these, what the application was not told of.
    pub(crate) untold: u64,
    /// What arrived above `nxt`; `None` when nothing did.
    gaps: Option<Box<Gaps>>,
    /// Largest payload seen.
    mss: u32,
    /// Payload bytes in order since the last acknowledgement sent.
    unacked: u32,
    /// One-way delay of the last data, microseconds.
    pub(crate) one_way: u32,
    pub(crate) fin_taken: bool,
    /// A mark is to be echoed until the sender says that it acted (RFC 3168 section 6.1.3).
    pub(crate) echo: bool,
    /// Immediate acknowledgements left.
    quick: u8,
    pub(crate) ack_now: bool,
}

/// Data beyond a hole, and a FIN.
#[derive(Clone, Debug)]
struct Gaps {
    /// Disjoint, sorted, non-touching ranges; none when only the FIN is known.
    ranges: Vec<(u64, u64)>,
    /// A sequence number inside each of the latest changed ranges, latest first (RFC 2018
    /// section 4).
    recent: [u64; 3],
    /// Where the peer's FIN stands; `u64::MAX` until it is seen.
    fin: u64,
}

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps {
            ranges: Vec::new(),
            recent: [0; 3],
            fin: u64::MAX,
        }
    }
}

impl Receiver {
    pub(crate) fn new(cfg: &Config) -> Receiver {
        Receiver {
            nxt: u64::from(!cfg.handshake()),
            fin_taken: false,
            echo: false,
            one_way: 0,
            gaps: None,
            mss: FIRST_MSS,
            unacked: 0,
            quick: cfg.quick_acks,
            ack_now: false,
            deadline: Time::MAX,
            delivered: 0,
            untold: 0,
        }
    }

    /// Takes a segment's payload and FIN.
    pub(crate) fn on_segment(&mut self, cfg: &Config, now: Time, seg: &Segment) {
        let fin = seg.flags.has(Flags::FIN);
        if seg.len == 0 && !fin {
            return self.on_bare_ack(seg);
        }
        if self.fin_taken {
            self.ack_now = true; // data or FIN again: our acknowledgement was lost
            return;
        }
        let edge = self.nxt.saturating_add(u64::from(cfg.recv_window()));
        let data_end = seg.seq.saturating_add(u64::from(seg.len));
        if seg.seq > edge || data_end < self.nxt {
            self.ack_now = true; // RFC 9293 section 3.10.7.4: not acceptable, say what is
            return;
        }
        let mut last = self.gaps.as_ref().map_or(u64::MAX, |g| g.fin);
        if fin && last == u64::MAX && data_end <= edge {
            last = data_end;
        }
        // Nothing follows a FIN, which takes a sequence number itself.
        let mut end = data_end.min(edge).min(last);
        if fin && end == last {
            end += 1;
        }
        let before = self.nxt;
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
        if self.nxt > last {
            self.fin_taken = true;
            self.ack_now = true;
            self.nxt = last + 1; // what a peer sent past its FIN is not taken
            self.gaps = None;
        }
        let readable = self.nxt - before - u64::from(self.fin_taken);
        self.delivered += readable;
        self.untold += readable;
    }

    /// Neither payload nor FIN.
    #[inline]
    pub(crate) fn on_bare_ack(&mut self, seg: &Segment) {
        // A window probe or keep-alive carries an old number and wants an answer; other old
        // segments without payload are acknowledgements overtaken by later ones.
        self.ack_now |= seg.seq.saturating_add(1) == self.nxt;
    }

    /// Takes a segment if it is data in order and nothing else; false if it is not, and nothing was done.
    #[inline]
    pub(crate) fn on_expected(&mut self, cfg: &Config, now: Time, seg: &Segment) -> bool {
        let expected = seg.seq == self.nxt
            && (1..=cfg.recv_window()).contains(&seg.len)
            && self.gaps.is_none()
            && !self.fin_taken;
        if expected {
            let len = u64::from(seg.len);
            self.in_order(cfg, now, seg.seq.saturating_add(len), seg.len);
            self.delivered += len;
            self.untold += len;
        }
        expected
    }

    /// Marks and stamps of a segment with data.
    #[inline(never)]
    pub(crate) fn note(&mut self, cfg: &Config, now: Time, seg: &Segment) {
        if cfg.ecn {
            self.echo &= !seg.flags.has(Flags::CWR);
            let marked = seg.ecn == CE;
            // The first mark is told at once.
            self.ack_now |= marked && !self.echo;
            self.echo |= marked;
        }
        if cfg.stamps() {
            self.one_way = micros(now).wrapping_sub(seg.stamp);
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
        let most = (cfg.recv_window() / cfg.mss()).max(64) as usize;
        let gaps = self.gaps.get_or_insert_default();
        gaps.fin = fin;
        let (s, e) = gaps.insert(start, end, most);
        if s <= self.nxt {
            // Touching ranges are merged, so only the first can reach `nxt`.
            self.nxt = e;
            gaps.ranges.remove(0);
        }
        if gaps.ranges.is_empty() && fin == u64::MAX {
            self.gaps = None;
        }
    }

    /// The blocks to report, latest first.
    pub(crate) fn blocks(&self) -> SackBlocks {
        let mut out = SackBlocks::default();
        let Some(gaps) = &self.gaps else {
            return out;
        };
        let mut said = [0; 3];
        let mut n = 0;
        for &q in &gaps.recent {
            let i = gaps.ranges.partition_point(|r| r.1 <= q);
            if let Some(&(s, e)) = gaps.ranges.get(i)
                && s <= q
                && !said[..n].contains(&s)
                // Ranges lie within the receive window, which is a u32, above `nxt`.
                && let (Ok(from), Ok(to)) = (u32::try_from(s - self.nxt), u32::try_from(e - self.nxt))
            {
                out.push(from, to);
                said[n] = s;
                n += 1;
            }
        }
        out
    }

    /// The connection is over.
    pub(crate) fn release(&mut self) {
        self.gaps = None;
        self.deadline = Time::MAX;
    }

    /// Whether bytes are missing below others that arrived.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        self.gaps.as_ref().is_some_and(|g| !g.ranges.is_empty())
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
    }
}

impl Gaps {
    /// Adds `start..end`, merging what it touches, and returns the range it became part of.
    /// A new range beyond `most` is refused, as a kernel out of memory drops from its queue.
    fn insert(&mut self, start: u64, end: u64, most: usize) -> (u64, u64) {
        let from = self.ranges.partition_point(|r| r.1 < start);
        let to = self.ranges.partition_point(|r| r.0 <= end);
        let (s, e) = if from == to {
            if self.ranges.len() >= most {
                return (u64::MAX, u64::MAX);
            }
            self.ranges.insert(from, (start, end));
            (start, end)
        } else {
            let merged = (
                start.min(self.ranges[from].0),
                end.max(self.ranges[to - 1].1),
            );
            self.ranges[from] = merged;
            self.ranges.drain(from + 1..to);
            merged
        };
        // Put this range in front, dropping an older mention of it.
        let old = self.recent.iter().position(|&q| s <= q && q < e);
        self.recent.copy_within(..old.unwrap_or(2), 1);
        self.recent[0] = start;
        (s, e)
    }
}
