//! One end of one connection: handshake, close and reset around the two halves.

use std::sync::Arc;

use swell_base::{Dur, Flags, SackBlocks, Segment, Stamps, Time, fetch};

use crate::config::{Config, Jitter};
use crate::receiver::{Receiver, micros, millis};
use crate::sender::{Expired, Out, Sender};

/// What happened, for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// This many more bytes arrived in order.
    Received(u64),
    /// All data written so far is acknowledged.
    Drained,
    /// The peer will send no more data.
    Eof,
    /// The peer reset the connection, or it was given up after too many time-outs.
    Reset,
    /// The connection is over: both sides closed and everything is acknowledged, or it was
    /// reset or aborted. Always the last event.
    Closed,
}

/// What [`Endpoint::transmit_into`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// There is nothing to send.
    Nothing,
    /// Wrote a segment; there may be more.
    Segment,
    /// Wrote a segment, and there is no more until something else happens.
    Last,
}

impl Sent {
    fn some(sent: bool) -> Sent {
        if sent { Sent::Segment } else { Sent::Nothing }
    }
}

/// Counters and estimates of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Segments sent with payload, SYN or FIN, retransmissions included.
    pub segments: u64,
    /// Segments sent again, SYN included.
    pub retransmitted: u64,
    /// Segments sent that only acknowledge.
    pub acks: u64,
    /// Retransmission time-outs, of SYN too.
    pub rtos: u32,
    /// Fast recoveries begun.
    pub recoveries: u32,
    /// Tail loss probes sent.
    pub probes: u32,
    /// Reductions of the window because of marks (RFC 3168).
    pub marks: u32,
    /// Reductions of the window that proved wrong and were undone.
    pub undone: u32,
    /// Time-outs among them.
    pub spurious: u32,
    /// Bytes cumulatively acknowledged by the peer, the FIN counting one.
    pub acked: u64,
    /// Payload bytes delivered in order to the application here.
    pub delivered: u64,
    /// Smoothed round-trip time, `None` before the first sample.
    pub srtt: Option<Dur>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Dur>,
    /// The retransmission time-out now, back-off included.
    pub rto: Dur,
    /// Congestion window in bytes, rounded down.
    pub cwnd: u64,
    /// Slow-start threshold in bytes, rounded down; `u64::MAX` when unlimited.
    pub ssthresh: u64,
    /// Bytes thought to be in the network.
    pub in_flight: u64,
}

/// How long a client that opens with its first write waits for one.
const LONGEST_SILENCE: Dur = Dur::from_millis(100);

/// RFC 3168 section 5.
const ECT0: u8 = 2;

/// The states of RFC 9293 section 3.3.2 as far as they differ in what may happen; the FINs say which side
/// closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A client that has not sent its SYN.
    Idle,
    Listen,
    SynSent,
    SynReceived,
    Open,
    /// Both FINs done. TIME-WAIT is not held.
    Closed,
    /// Aborted, reset or given up.
    Dead,
}

/// Events not yet polled, as bits in the order in which they are delivered.
mod pending {
    pub(super) const CONNECTED: u8 = 1;
    pub(super) const DRAINED: u8 = 2;
    pub(super) const EOF: u8 = 4;
    pub(super) const RESET: u8 = 8;
    pub(super) const CLOSED: u8 = 16;
}

/// What an endpoint looks at whatever happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    state: State,
    /// Events not yet polled.
    events: u8,
    /// SYN or SYN/ACK to be sent.
    syn_due: bool,
    /// Something is to be sent that an open connection seldom sends.
    seldom: bool,
}

/// One end of one connection. See the [crate's front page](crate) for how it is driven.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Endpoint {
    cfg: Arc<Config>,
    recv: Receiver,
    /// Segments sent with payload or FIN, retransmissions included, and those that only acknowledge.
    segments: u32,
    acks: u32,
    send: Sender,
}

impl Endpoint {
    /// An active open. The SYN goes out at the first [`poll_transmit`](Self::poll_transmit).
    pub fn client(config: Arc<Config>) -> Endpoint {
        Endpoint::new(config, State::Idle)
    }

    /// A passive open.
    pub fn server(config: Arc<Config>) -> Endpoint {
        Endpoint::new(config, State::Listen)
    }

    fn new(cfg: Arc<Config>, state: State) -> Endpoint {
        let cfg = cfg.usable();
        let open = !cfg.handshake();
        let front = Front {
            state: if open { State::Open } else { state },
            events: if open { pending::CONNECTED } else { 0 },
            // ns-2's one-way agents are silent until there is something to send.
            syn_due: !open && state == State::Idle && cfg.ns2_sender().is_none(),
            seldom: false,
        };
        Endpoint {
            send: Sender::new(&cfg, front),
            recv: Receiver::new(&cfg),
            segments: 0,
            acks: 0,
            cfg,
        }
    }

    /// The application writes `bytes`; the send buffer has no limit. Allowed before the
    /// handshake is complete. After [`close`](Self::close) or the end it does nothing. False where
    /// nothing can have become ready to be sent: more of what already waited waits.
    #[inline]
    pub fn send(&mut self, bytes: u64) -> bool {
        if self.send.fin_queued || self.is_closed() {
            return false;
        }
        let ready = self.send.write(&self.cfg, bytes);
        if self.send.front.state == State::Idle {
            self.send.front.syn_due = true;
            return true;
        }
        ready
    }

    /// Whether more data would only lengthen the backlog: some data waits already, and each write starts its own segment
    /// ([`Config::packets`]). Then later writes may be made later, as long as they are made before the backlog is gone.
    #[inline]
    pub fn defers_writes(&self) -> bool {
        self.send.defers_writes(&self.cfg) && self.send.front.state == State::Open
    }

    /// As [`send`](Self::send), for `n` writes of so many bytes that became due while the endpoint [deferred
    /// them](Self::defers_writes).
    #[inline]
    pub fn feed(&mut self, bytes: u64, n: u32) {
        if !self.send.fin_queued && !self.is_closed() {
            self.send.feed(&self.cfg, bytes, n);
        }
    }

    /// No more data after what was written: a FIN follows it. Before the handshake is complete the
    /// FIN waits for it, except at a server, which stops listening.
    pub fn close(&mut self) {
        if self.send.front.state == State::Listen {
            self.finish(State::Dead); // no client is connected; a later SYN is refused
        } else if !self.is_closed() {
            self.send.fin_queued = true;
            self.send.front.syn_due |= self.send.front.state == State::Idle;
        }
    }

    /// Ends the connection now and sends a RST.
    pub fn abort(&mut self) {
        if self.is_closed() {
            return;
        }
        if !matches!(self.send.front.state, State::Idle | State::Listen) {
            self.send.active().rst = Some((self.send.nxt.max(1), self.recv.nxt));
        }
        self.finish(State::Dead);
    }

    /// A segment arrived, with as many selective acknowledgements as it says. If it says none, `sacks` is not read.
    #[inline(always)]
    pub fn handle_segment(&mut self, now: Time, seg: &Segment, sacks: &SackBlocks) {
        if self.send.front.state != State::Open || seg.flags != Flags::ACK {
            self.handle_other(now, seg, sacks);
        } else if seg.len == 0 {
            match self.send.expected_ack(&self.cfg, now, seg) {
                Some(moved) => {
                    self.acked(moved);
                    self.recv.on_bare_ack(&self.cfg, seg);
                }
                None => self.established(now, seg, sacks),
            }
        } else if !self.take_expected(now, seg) {
            self.established(now, seg, sacks);
        }
    }

    /// Does all of [`handle_segment`](Self::handle_segment) if the segment is the data that comes next and nothing
    /// else, and its acknowledgement says nothing; false if it is not, and nothing was done. No timer but that of a
    /// delayed acknowledgement changes by it.
    #[inline(always)]
    pub fn take_expected(&mut self, now: Time, seg: &Segment) -> bool {
        let expected = self.send.front.state == State::Open
            && seg.flags == Flags::ACK
            && self.send.expects_nothing(&self.cfg, seg)
            && self.recv.on_expected(&self.cfg, now, seg);
        if expected {
            self.send.heard(seg);
        }
        expected
    }

    /// Whether [`transmit_into`](Self::transmit_into) will write an acknowledgement, and no more.
    #[inline(always)]
    pub fn only_acknowledges(&self) -> bool {
        self.recv.ack_now && self.only_receives()
    }

    #[inline(never)]
    fn handle_other(&mut self, now: Time, seg: &Segment, sacks: &SackBlocks) {
        if self.send.front.state == State::Open
            && !seg.flags.has(Flags::SYN)
            && !seg.flags.has(Flags::RST)
        {
            self.established(now, seg, sacks);
        } else {
            self.unusual(now, seg, sacks);
        }
    }

    /// Does what any timer due at `now` or before asks for.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.recv.deadline <= now {
            self.recv.deadline = Time::MAX;
            self.recv.ack_now = true;
        }
        if self.send.deadline > now {
            return;
        }
        match self.send.front.state {
            State::SynSent | State::SynReceived => self.handshake_timeout(),
            State::Open => match self.send.on_timer(&self.cfg, now) {
                Some(Expired::GiveUp) => self.reset(),
                Some(Expired::Send(out)) => {
                    self.send.active().extra = Some(out);
                    self.send.front.seldom = true;
                }
                None => {}
            },
            State::Idle | State::Listen | State::Closed | State::Dead => {
                self.send.deadline = Time::MAX;
                self.send.front.syn_due = self.send.front.state == State::Idle;
            }
        }
    }

    /// The next segment to put on the wire at `now`, with its selective acknowledgements. Call until `None` after
    /// every other call.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Segment, SackBlocks)> {
        let mut out = (Segment::default(), SackBlocks::default());
        (self.transmit_into(now, &mut out.0, &mut out.1) != Sent::Nothing).then_some(out)
    }

    /// As [`poll_transmit`](Self::poll_transmit), written over `seg`, and over `sacks` if it has any. Saves moving
    /// the segment on its way into a packet. Call until [`Sent::Nothing`] or [`Sent::Last`] after every other call.
    #[inline(always)]
    pub fn transmit_into(&mut self, now: Time, seg: &mut Segment, sacks: &mut SackBlocks) -> Sent {
        if !self.only_receives() {
            return self.transmit_any(now, seg, sacks);
        }
        if self.recv.ack_now {
            self.pure_ack(now, seg, sacks);
            return Sent::Last;
        }
        Sent::Nothing
    }

    /// Nothing is to be sent but an acknowledgement perhaps.
    #[inline(always)]
    fn only_receives(&self) -> bool {
        let front = &self.send.front;
        front.state == State::Open && !front.seldom && self.send.has_nothing()
    }

    /// Whether it is known at first sight that there is nothing to send: an end that only receives is asked after
    /// every segment.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        !self.recv.ack_now && self.only_receives()
    }

    #[inline(never)]
    fn transmit_any(&mut self, now: Time, seg: &mut Segment, sacks: &mut SackBlocks) -> Sent {
        if self.send.front.state != State::Open {
            return Sent::some(self.transmit_unusual(now, seg, sacks));
        }
        if self.send.front.seldom {
            self.transmit_seldom(now, seg, sacks);
            return Sent::Segment;
        }
        if self.send.sends_briskly(&self.cfg) {
            if let Some((seq, len, more)) = self.send.next_briskly(&self.cfg, now) {
                self.segments += 1;
                self.segment(now, (seq, len, Flags::ACK), seg, sacks);
                return if more { Sent::Segment } else { Sent::Last };
            }
        } else if let Some(out) = self.send.next(&self.cfg, now) {
            self.data(now, out, seg, sacks);
            return Sent::Segment;
        }
        if self.recv.ack_now {
            self.pure_ack(now, seg, sacks);
            return Sent::Last;
        }
        Sent::Nothing
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let t = self
            .send
            .deadline
            .min(self.recv.deadline)
            .min(self.send.pacing_deadline());
        (t != Time::MAX).then_some(t)
    }

    /// Whether [`handle_timeout`](Self::handle_timeout) has something to do at `now`.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Whether [`poll`](Self::poll) has an event. Without `of_data`, bytes received are forgotten: the application does not
    /// ask for them.
    #[inline]
    pub fn has_events(&mut self, of_data: bool) -> bool {
        if !of_data {
            self.recv.undelivered = 0;
        }
        self.recv.undelivered > 0 || self.send.front.events != 0
    }

    /// The next event. Call until `None`. Bytes received since the last call are one event.
    pub fn poll(&mut self) -> Option<Event> {
        if self.recv.undelivered > 0 && self.send.front.events & pending::CONNECTED == 0 {
            return Some(Event::Received(std::mem::take(&mut self.recv.undelivered)));
        }
        if self.send.front.events == 0 {
            return None;
        }
        let lowest = self.send.front.events & self.send.front.events.wrapping_neg();
        self.send.front.events &= !lowest;
        Some(match lowest {
            pending::CONNECTED => Event::Connected,
            pending::DRAINED => Event::Drained,
            pending::EOF => Event::Eof,
            pending::RESET => Event::Reset,
            _ => Event::Closed,
        })
    }

    /// Counters and estimates.
    pub fn stats(&self) -> Stats {
        let s = &self.send;
        let count = s.counters();
        let syns = u64::from(s.syns);
        let again = syns.saturating_sub(1);
        Stats {
            segments: u64::from(self.segments) + syns,
            retransmitted: u64::from(count.resent) + again,
            acks: u64::from(self.acks),
            rtos: count.rtos,
            recoveries: count.recoveries,
            probes: count.probes,
            marks: count.marks,
            undone: u32::from(count.undone),
            spurious: u32::from(count.spurious),
            // The SYN has number 0 and is no data.
            acked: s.una.saturating_sub(1),
            delivered: self.recv.delivered(),
            srtt: s.rtt.smoothed(),
            min_rtt: s.rtt.min(),
            rto: s.rto(&self.cfg),
            cwnd: (s.window.cwnd * s.unit(&self.cfg)) as u64,
            ssthresh: (s.window.ssthresh * s.unit(&self.cfg)) as u64,
            in_flight: s.in_flight(),
        }
    }

    /// The longest time that its host may take now before data goes out: see [`Jitter`]. The path's slowest link sends a
    /// full packet in `slot`.
    #[inline]
    pub fn jitter(&self, slot: Dur) -> Dur {
        match self.cfg.jitter {
            Jitter::Off => Dur::ZERO,
            // A SYN, which may have made the shortest round trip, takes hardly any time to be sent.
            Jitter::Queueing => slot.min(self.send.rtt.queueing(&self.cfg).saturating_sub(slot)),
            Jitter::UpTo(most) => most,
        }
    }

    /// Whether the connection is over. An endpoint should still be asked while its peer is not:
    /// it answers a FIN whose acknowledgement was lost, and segments after an abort.
    pub fn is_closed(&self) -> bool {
        matches!(self.send.front.state, State::Closed | State::Dead)
    }

    /// [Asks](fetch()) for what a segment with payload needs, and with `sending` for what a write or an
    /// acknowledgement does.
    #[inline]
    pub fn fetch(&self, sending: bool) {
        fetch(self);
        fetch(&self.send);
        if sending {
            self.send.fetch();
        }
    }

    /// Asks for what is in flight; reads what [`fetch`](Self::fetch) asks for.
    #[inline]
    pub fn fetch_flight(&self) {
        self.send.board.fetch();
    }

    /// Asks for what is known of the receive buffer, if there is more than it has at first. Reads the same.
    #[inline]
    pub fn fetch_buffer(&self) {
        self.recv.fetch_buffer();
    }

    /// Asks for what is known of data beyond a hole, if there is any. Reads what [`fetch_buffer`](Self::fetch_buffer)
    /// asks for.
    #[inline]
    pub fn fetch_gaps(&self) {
        self.recv.fetch_gaps();
    }

    /// The settings.
    pub fn config(&self) -> &Arc<Config> {
        &self.cfg
    }

    #[inline(never)]
    fn established(&mut self, now: Time, seg: &Segment, sacks: &SackBlocks) {
        if seg.flags.has(Flags::ACK) {
            let moved = self.send.on_ack(&self.cfg, now, seg, sacks);
            self.acked(moved);
            if self.send.front.state != State::Open {
                return;
            }
        }
        if self.send.marks && seg.len > 0 {
            self.recv.note(&self.cfg, now, seg);
        }
        let had_fin = self.recv.fin_taken;
        self.recv.on_segment(&self.cfg, now, seg);
        if self.recv.fin_taken && !had_fin {
            self.send.front.events |= pending::EOF;
            self.maybe_closed();
        }
    }

    /// SND.UNA moved by `moved`, or did not.
    #[inline]
    fn acked(&mut self, moved: u64) {
        // Told once: not again when only the FIN was acknowledged.
        let end = self.send.data_end();
        if moved > 0 && self.send.una >= end && self.send.una - moved < end {
            self.send.front.events |= pending::DRAINED;
        }
        if moved > 0 && self.send.fin_sent {
            self.maybe_closed();
        }
    }

    /// Segments with SYN or RST, and all segments outside the open state.
    #[inline(never)]
    fn unusual(&mut self, now: Time, seg: &Segment, sacks: &SackBlocks) {
        let has = |f| seg.flags.has(f);
        match self.send.front.state {
            State::Idle => {}
            // RFC 9293 section 3.10.7.1: a connection that is no more.
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
                // RFC 9293 section 3.5.3: in the window. RFC 5961's stricter rule is against
                // attackers who guess; there are none here.
                let edge = self
                    .recv
                    .nxt
                    .saturating_add(u64::from(self.recv.window(&self.cfg)));
                if (self.recv.nxt..=edge).contains(&seg.seq) {
                    self.reset();
                }
            }
            // The other end did not get the last part of the handshake.
            State::Open => self.recv.ack_now = true,
            State::SynReceived => {
                if has(Flags::ACK) && seg.ack == 1 {
                    self.open(now, seg);
                    if has(Flags::SYN) {
                        self.recv.ack_now = true; // both opened at once
                    } else {
                        self.established(now, seg, sacks);
                    }
                } else if has(Flags::SYN) {
                    self.send.front.syn_due = true;
                }
            }
        }
    }

    /// RFC 9293 section 3.10.7.3.
    fn syn_sent(&mut self, now: Time, seg: &Segment) {
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
            // A one-way TCP of ns-2 sends data instead.
            self.send.bare_ack = !self.send.has_unsent() || !self.send.is_ns2();
            self.send.front.seldom |= self.send.bare_ack;
        } else if !seg.flags.has(Flags::ACK) {
            // Both open at once: section 3.5, figure 8.
            self.recv.nxt = 1;
            self.send.front.state = State::SynReceived;
            self.send.front.syn_due = true;
        }
    }

    fn open(&mut self, now: Time, seg: &Segment) {
        self.send.front.state = State::Open;
        self.send.front.events |= pending::CONNECTED;
        self.send.front.syn_due = false;
        let sent = self.send.timed.1;
        self.send.open(seg.window);
        let timeouts = self.send.counters().rtos;
        // The answer to the first SYN shows that those after it were not needed (`tcp_try_undo_spurious_syn`).
        let echo = seg.stamps.echo();
        let first = self.cfg.echoes() && Stamps::since(echo, millis(sent)) == 0;
        if timeouts == 0 && self.send.syns == 1 {
            self.send.sample(&self.cfg, sent, now);
        } else if self.cfg.echoes() {
            self.send.sample_by_echo(&self.cfg, now, echo);
        } else if timeouts > 0 || !self.send.is_ns2() {
            self.send.rtt.after_handshake_timeout();
        }
        // RFC 5681 section 3.1 asks for one segment after a lost SYN; Linux (`tcp_init_transfer`) forgives the
        // first. Only time-outs count: a SYN that the network doubled is answered twice as well.
        if timeouts > 1 && !first {
            self.send.window.cwnd = f64::from(self.cfg.mss()) / self.send.unit(&self.cfg);
        }
    }

    fn handshake_timeout(&mut self) {
        self.send.deadline = Time::MAX;
        // A SYN/ACK backs off from the beginning.
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

    fn reset(&mut self) {
        self.send.front.events |= pending::RESET;
        self.finish(State::Dead);
    }

    fn maybe_closed(&mut self) {
        if self.recv.fin_taken && self.send.fin_sent && self.send.all_acked() {
            self.finish(State::Closed);
        }
    }

    /// The connection is over.
    fn finish(&mut self, state: State) {
        self.send.front.state = state;
        self.send.front.events |= pending::CLOSED;
        self.send.front.syn_due = false;
        if let Some(active) = self.send.active_if_any() {
            active.extra = None;
        }
        self.send.front.seldom = false;
        self.send.release();
        self.recv.release();
    }

    /// The end of the handshake, or what a timer sent.
    #[cold]
    #[inline(never)]
    fn transmit_seldom(&mut self, now: Time, seg: &mut Segment, sacks: &mut SackBlocks) {
        if std::mem::take(&mut self.send.bare_ack) {
            self.pure_ack(now, seg, sacks);
        } else if let Some(out) = self.send.active_if_any().and_then(|a| a.extra.take()) {
            self.data(now, out, seg, sacks);
        }
        let more = self.send.active_if_any().is_some_and(|a| a.extra.is_some());
        self.send.front.seldom = more;
    }

    #[inline(never)]
    fn transmit_unusual(&mut self, now: Time, seg: &mut Segment, sacks: &mut SackBlocks) -> bool {
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
                // It may be the peer's application that speaks first.
                self.send.deadline = now + LONGEST_SILENCE;
            }
            return false;
        }
        true
    }

    fn syn(&mut self, now: Time) -> Segment {
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

    #[inline]
    fn data(&mut self, now: Time, out: Out, seg: &mut Segment, sacks: &mut SackBlocks) {
        let flags = if out.fin {
            Flags::ACK.with(Flags::FIN)
        } else {
            Flags::ACK
        };
        // A window probe has neither, and does not count.
        self.segments += u32::from(out.len > 0 || out.fin);
        self.segment(now, (out.seq, out.len, flags), seg, sacks);
        if self.send.marks {
            self.mark(now, out, seg);
        }
    }

    /// ECN and the stamp of a segment with data.
    #[inline(never)]
    fn mark(&mut self, now: Time, out: Out, seg: &mut Segment) {
        if self.cfg.ecn && out.fresh && out.len > 0 {
            seg.ecn = ECT0;
            if std::mem::take(&mut self.send.cwr) {
                seg.flags = seg.flags.with(Flags::CWR);
            }
        }
        if self.cfg.stamps() {
            seg.stamps = Stamps::one_way(micros(now));
        }
    }

    #[inline(always)]
    fn pure_ack(&mut self, now: Time, seg: &mut Segment, sacks: &mut SackBlocks) {
        self.acks += 1;
        self.segment(now, (self.send.nxt, 0, Flags::ACK), seg, sacks);
    }

    #[inline(always)]
    fn segment(
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

    /// The rest of a segment that may carry more than the least.
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

#[cfg(test)]
mod tests;
