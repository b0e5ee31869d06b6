//! One end of one connection: handshake, close and reset around the two halves.

mod handshake;
mod segments;
mod unusual;

use std::sync::Arc;

use swell_base::{Dur, Flags, SackBlocks, Segment, Time, fetch};

use crate::config::{Config, Jitter};
use crate::receiver::Receiver;
use crate::sender::{Expired, Sender};

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

    /// Without a handshake nothing says how much the other end takes: it has this configuration. With one, nothing
    /// changes.
    #[must_use]
    pub fn opposite(mut self, other: &Config) -> Endpoint {
        if !self.cfg.handshake() {
            self.send.offered(other.first_window());
        }
        self
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
}

#[cfg(test)]
mod tests;
