//! Segments with SYN or RST, and all segments outside the open state.

use swell_base::{Flags, SackBlocks, Segment, Time};

use super::Endpoint;
use crate::front::{State, pending};

impl Endpoint {
    /// Processes segments with SYN or RST, and all segments outside the open state.
    #[inline(never)]
    pub(super) fn unusual(&mut self, now: Time, seg: &Segment, sacks: &SackBlocks) {
        let has = |f| seg.flags.has(f);
        match self.send.front.state {
            State::Idle => {}
            // RFC 9293 section 3.10.7.1: the connection no longer exists.
            State::Dead if has(Flags::RST) => {}
            State::Dead => {
                let seq = if has(Flags::ACK) { seg.ack } else { 0 };
                self.send.active().rst = Some((seq, seg.seq.saturating_add(seg.seq_len())));
            }
            State::Closed => self.recv.ack_now |= seg.seq_len() > 0 && !has(Flags::RST),
            State::Listen => {
                if has(Flags::SYN) && !has(Flags::ACK) && !has(Flags::RST) && seg.seq == 0 {
                    self.recv.nxt = 1;
                    self.recv.hear_syn(&self.cfg, seg);
                    self.send.front.state = State::SynReceived;
                    self.send.front.syn_due = true;
                }
            }
            State::SynSent => self.syn_sent(now, seg),
            State::SynReceived | State::Open if has(Flags::RST) => {
                // RFC 9293 section 3.5.3: a RST must lie in the window. RFC 5961's stricter rule protects against
                // attackers, which are not modelled.
                let edge = self
                    .recv
                    .nxt
                    .saturating_add(u64::from(self.recv.window(&self.cfg)));
                if (self.recv.nxt..=edge).contains(&seg.seq) {
                    self.reset();
                }
            }
            // The peer did not get the last ACK of the handshake.
            State::Open => self.recv.ack_now = true,
            State::SynReceived => {
                if has(Flags::ACK) && seg.ack == 1 {
                    self.open(now, seg);
                    if has(Flags::SYN) {
                        self.recv.ack_now = true; // simultaneous open
                    } else {
                        self.established(now, seg, sacks);
                    }
                } else if has(Flags::SYN) {
                    self.send.front.syn_due = true;
                }
            }
        }
    }

    pub(super) fn reset(&mut self) {
        self.send.front.events |= pending::RESET;
        self.finish(State::Dead);
    }
}
