//! The handshake: SYN, SYN/ACK and the state that they set up (RFC 9293 section 3.5).

use swell_base::{Flags, Segment, Stamps, Time};

use super::Endpoint;
use crate::clock::millis;
use crate::front::{State, pending};

impl Endpoint {
    /// RFC 9293 section 3.10.7.3.
    pub(super) fn syn_sent(&mut self, now: Time, seg: &Segment) {
        let acked = seg.flags.has(Flags::ACK) && seg.ack == 1;
        if seg.flags.has(Flags::RST) {
            if acked {
                self.reset();
            }
            return;
        }
        if !seg.flags.has(Flags::SYN) || seg.seq != 0 {
            return;
        }
        self.recv.hear_syn(&self.cfg, seg);
        if acked {
            self.recv.nxt = 1;
            self.open(now, seg);
            // ns-2's one-way TCP sends data instead.
            self.send.bare_ack = !self.send.has_unsent() || !self.send.is_ns2();
            self.send.front.seldom |= self.send.bare_ack;
        } else if !seg.flags.has(Flags::ACK) {
            // Simultaneous open: section 3.5, figure 8.
            self.recv.nxt = 1;
            self.send.front.state = State::SynReceived;
            self.send.front.syn_due = true;
        }
    }

    pub(super) fn open(&mut self, now: Time, seg: &Segment) {
        self.send.front.state = State::Open;
        self.send.front.events |= pending::CONNECTED;
        self.send.front.syn_due = false;
        let sent = self.send.timed.1;
        self.send.open(seg.window);
        let timeouts = self.send.counters().rtos;
        // If the first SYN is answered, the repeated ones were not needed (`tcp_try_undo_spurious_syn`).
        let echo = seg.stamps.echo();
        let first = self.cfg.echoes() && Stamps::since(echo, millis(sent)) == 0;
        if timeouts == 0 && self.send.syns == 1 {
            self.send.sample(&self.cfg, sent, now);
        } else if self.cfg.echoes() {
            self.send.sample_by_echo(&self.cfg, now, echo);
        } else if timeouts > 0 || !self.send.is_ns2() {
            self.send.rtt.after_handshake_timeout();
        }
        self.send.begin_pacing(now);
        // RFC 5681 section 3.1 requires a window of one segment after a lost SYN; Linux (`tcp_init_transfer`)
        // tolerates one loss. Only time-outs count, because a SYN that the network duplicates is also answered twice.
        if timeouts > 1 && !first {
            self.send.window.cwnd = f64::from(self.cfg.mss()) / self.send.unit(&self.cfg);
        }
    }

    pub(super) fn handshake_timeout(&mut self) {
        self.send.deadline = Time::MAX;
        // A SYN/ACK backs off from its first time-out.
        let linear = match self.send.front.state {
            State::SynSent => self.cfg.syn_linear,
            _ => 0,
        };
        if self.send.syns > self.cfg.syn_retries.saturating_add(linear) {
            self.reset();
        } else {
            self.send.rare().count.rtos += 1;
            if self.send.syns > linear {
                self.send.rtt.back_off();
            }
            self.send.front.syn_due = true;
        }
    }

    pub(super) fn syn(&mut self, now: Time) -> Segment {
        self.send.front.syn_due = false;
        if self.send.syns == 0 {
            self.send.timed.1 = now;
        }
        self.send.syns = self.send.syns.saturating_add(1);
        self.send.deadline = now + self.send.rtt.rto(&self.cfg);
        let flags = if self.send.front.state == State::SynReceived {
            Flags::SYN.with(Flags::ACK)
        } else {
            self.send.front.state = State::SynSent;
            Flags::SYN
        };
        let (ack, window) = (self.recv.nxt, self.recv.window(&self.cfg));
        Segment {
            ack,
            window,
            flags,
            stamps: self.recv.stamps(&self.cfg, now, false),
            ..Segment::default()
        }
    }
}
