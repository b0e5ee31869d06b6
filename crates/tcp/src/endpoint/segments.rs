//! Building outgoing segments: payload, acknowledgements, flags and options.

use swell_base::{Flags, SackBlocks, Segment, Stamps, Time};

use super::{ECT0, Endpoint, LONGEST_SILENCE};
use crate::front::State;
use crate::receiver::ticks;
use crate::sender::Out;

impl Endpoint {
    /// Sends the rare segments: those of the handshake, or one that a timer released.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit_seldom(&mut self, now: Time, seg: &mut Segment, sacks: &mut SackBlocks) {
        if std::mem::take(&mut self.send.bare_ack) {
            self.pure_ack(now, seg, sacks);
        } else if let Some(out) = self.send.active_if_any().and_then(|a| a.extra.take()) {
            self.data(now, out, seg, sacks);
        }
        let more = self.send.active_if_any().is_some_and(|a| a.extra.is_some());
        self.send.front.seldom = more;
    }

    #[inline(never)]
    pub(super) fn transmit_unusual(
        &mut self,
        now: Time,
        seg: &mut Segment,
        sacks: &mut SackBlocks,
    ) -> bool {
        if let Some((seq, ack)) = self.send.active_if_any().and_then(|a| a.rst.take()) {
            *seg = Segment {
                seq,
                flags: Flags::RST.with(Flags::ACK),
                ack,
                ..Segment::default()
            };
        } else if self.send.front.syn_due {
            *seg = self.syn(now);
        } else if self.send.front.state == State::Closed && self.recv.ack_now {
            self.pure_ack(now, seg, sacks);
        } else {
            if self.send.front.state == State::Idle && self.send.deadline == Time::MAX {
                // The peer's application may be the one that sends first.
                self.send.deadline = now + LONGEST_SILENCE;
            }
            return false;
        }
        true
    }

    #[inline]
    pub(super) fn data(&mut self, now: Time, out: Out, seg: &mut Segment, sacks: &mut SackBlocks) {
        let flags = if out.fin {
            Flags::ACK.with(Flags::FIN)
        } else {
            Flags::ACK
        };
        // A window probe has neither payload nor FIN and is not counted.
        self.segments += u32::from(out.len > 0 || out.fin);
        self.segment(now, (out.seq, out.len, flags), seg, sacks);
        if self.send.marks {
            self.mark(now, out, seg);
        }
    }

    /// Sets the ECN mark and the stamp of a data segment.
    #[inline(never)]
    fn mark(&mut self, now: Time, out: Out, seg: &mut Segment) {
        if self.cfg.ecn && out.fresh && out.len > 0 {
            seg.ecn = ECT0;
            if std::mem::take(&mut self.send.cwr) {
                seg.flags = seg.flags.with(Flags::CWR);
            }
        }
        if self.cfg.stamps() {
            seg.stamps = Stamps::new(ticks(now), seg.stamps.echo());
        }
    }

    #[inline(always)]
    pub(super) fn pure_ack(&mut self, now: Time, seg: &mut Segment, sacks: &mut SackBlocks) {
        self.acks += 1;
        self.segment(now, (self.send.nxt, 0, Flags::ACK), seg, sacks);
    }

    #[inline(always)]
    pub(super) fn segment(
        &mut self,
        now: Time,
        (seq, len, flags): (u64, u32, Flags),
        seg: &mut Segment,
        sacks: &mut SackBlocks,
    ) {
        seg.seq = seq;
        seg.ack = self.recv.nxt;
        seg.len = len;
        seg.flags = flags;
        seg.ecn = 0;
        seg.sacks = 0;
        if self.cfg.is_timed() | self.cfg.sack | self.recv.echo {
            return self.segment_with_more(now, seg, sacks);
        }
        seg.window = self.cfg.recv_buffer;
        seg.stamps = self.recv.stamps(&self.cfg, now, len > 0);
        self.recv.acked();
    }

    /// Builds a segment that may need more than the minimal fields.
    #[inline(never)]
    fn segment_with_more(&mut self, now: Time, seg: &mut Segment, sacks: &mut SackBlocks) {
        seg.window = self.recv.window(&self.cfg);
        if self.cfg.sack && self.recv.has_blocks() {
            seg.sacks = self.recv.blocks(sacks);
        }
        if self.recv.echo {
            seg.flags = seg.flags.with(Flags::ECE);
        }
        seg.stamps = self.recv.stamps(&self.cfg, now, seg.len > 0);
        self.recv.acked();
    }
}
