//! One end of one connection: handshake, close and reset around the two halves.

mod handshake;
mod segments;
mod unusual;

use std::sync::Arc;

use swell_base::{Dur, Flags, SackBlocks, Segment, Time, fetch};

use crate::config::{Config, Jitter};
use crate::front::{Front, State, pending};
use crate::receiver::Receiver;
use crate::sender::{Expired, Sender};

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// This number of further bytes arrived in order. With [`Config::quic`], some of them may have been reported as
    /// [`Event::Early`] before.
    Received(u64),
    /// Bytes beyond a hole arrived: offsets in the peer's data of the first and of one past the last. Only with
    /// [`Config::quic`]. Bytes that arrive twice are reported twice.
    Early(u64, u64),
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

/// The result of [`Endpoint::transmit_into`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// There is nothing to send.
    Nothing,
    /// A segment was written; there may be more.
    Segment,
    /// A segment was written. There is no further one until something else happens.
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
    /// Segments sent again, including SYNs.
    pub retransmitted: u64,
    /// Segments sent that only carry an acknowledgement.
    pub acks: u64,
    /// Retransmission time-outs, including those of SYNs.
    pub rtos: u32,
    /// Fast recoveries begun.
    pub recoveries: u32,
    /// Tail loss probes sent.
    pub probes: u32,
    /// Reductions of the window because of marks (RFC 3168).
    pub marks: u32,
    /// Reductions of the window that proved wrong and were undone.
    pub undone: u32,
    /// Number of these that were time-outs.
    pub spurious: u32,
    /// Bytes cumulatively acknowledged by the peer; the FIN counts as one.
    pub acked: u64,
    /// Payload bytes delivered in order to the local application.
    pub delivered: u64,
    /// Smoothed round-trip time, `None` before the first sample.
    pub srtt: Option<Dur>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Dur>,
    /// Current retransmission time-out, including back-off.
    pub rto: Dur,
    /// Congestion window in bytes, rounded down.
    pub cwnd: u64,
    /// Slow-start threshold in bytes, rounded down; `u64::MAX` when unlimited.
    pub ssthresh: u64,
    /// Bytes estimated to be in the network.
    pub in_flight: u64,
}

/// Maximum time for which a client that opens with its first write waits for that write.
const LONGEST_SILENCE: Dur = Dur::from_millis(100);

/// RFC 3168 section 5.
const ECT0: u8 = 2;

/// One end of one connection. See the [crate's front page](crate) for how it is driven.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Endpoint {
    cfg: Arc<Config>,
    recv: Receiver,
    /// Segments sent with payload or FIN, retransmissions included, and pure acknowledgements.
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

    /// Sets the peer's configuration. A connection without a handshake takes the peer's receive window from it. With
    /// a handshake, nothing changes.
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
            // ns-2's one-way agents send nothing until there is data.
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

    /// The application writes `bytes`; the send buffer has no limit. Allowed before the handshake is complete. Does
    /// nothing after [`close`](Self::close) or the end of the connection. Returns false if the write cannot have made
    /// anything ready to send, because earlier data still waits.
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

    /// Whether more data would only lengthen the backlog: data waits already, and each write starts its own segment
    /// ([`Config::packets`]). Later writes may then be postponed, as long as they are made before the backlog is
    /// empty.
    #[inline]
    pub fn defers_writes(&self) -> bool {
        self.send.defers_writes(&self.cfg) && self.send.front.state == State::Open
    }

    /// As [`send`](Self::send), for `n` writes of `bytes` each that became due while
    /// [`defers_writes`](Self::defers_writes) was true.
    #[inline]
    pub fn feed(&mut self, bytes: u64, n: u32) {
        if !self.send.fin_queued && !self.is_closed() {
            self.send.feed(&self.cfg, bytes, n);
        }
    }

    /// Ends the data: a FIN follows what was written. Before the handshake is complete the FIN waits for it. A server
    /// in the listening state stops listening instead.
    pub fn close(&mut self) {
        if self.send.front.state == State::Listen {
            self.finish(State::Dead); // no client is connected; a later SYN is refused
        } else if !self.is_closed() {
            self.send.fin_queued = true;
            self.send.front.syn_due |= self.send.front.state == State::Idle;
        }
    }

    /// Aborts the connection at once and sends a RST.
    pub fn abort(&mut self) {
        if self.is_closed() {
            return;
        }
        if !matches!(self.send.front.state, State::Idle | State::Listen) {
            self.send.active().rst = Some((self.send.nxt.max(1), self.recv.nxt));
        }
        self.finish(State::Dead);
    }

    /// Processes an arriving segment with `seg.sacks` SACK blocks. If that number is zero, `sacks` is not read.
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

    /// Fast path of [`handle_segment`](Self::handle_segment) for the next in-order data segment whose acknowledgement
    /// carries no news. Returns false, without any effect, for other segments. The only timer it changes is that of
    /// the delayed acknowledgement.
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

    /// Whether [`transmit_into`](Self::transmit_into) will write a pure acknowledgement and nothing else.
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

    /// Handles all timers due at or before `now`.
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

    /// The next segment to send at `now`, with its SACK blocks. Call until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Segment, SackBlocks)> {
        let mut out = (Segment::default(), SackBlocks::default());
        (self.transmit_into(now, &mut out.0, &mut out.1) != Sent::Nothing).then_some(out)
    }

    /// As [`poll_transmit`](Self::poll_transmit), but writes to `seg`, and to `sacks` if there are SACK blocks. This
    /// avoids copying the segment on its way into a packet. Call until [`Sent::Nothing`] or [`Sent::Last`] after
    /// every other call.
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

    /// Whether nothing is to be sent except possibly an acknowledgement.
    #[inline(always)]
    fn only_receives(&self) -> bool {
        let front = &self.send.front;
        front.state == State::Open && !front.seldom && self.send.has_nothing()
    }

    /// Cheap check that there is nothing to send. A pure receiver is asked after every segment, so this is worth a
    /// separate call.
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

    /// The time at which [`handle_timeout`](Self::handle_timeout) has work to do.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let t = self
            .send
            .deadline
            .min(self.recv.deadline)
            .min(self.send.pacing_deadline());
        (t != Time::MAX).then_some(t)
    }

    /// Whether [`handle_timeout`](Self::handle_timeout) has work to do at `now`.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Whether [`poll`](Self::poll) has an event. Without `of_data`, received bytes are discarded: use it if the
    /// application does not ask for them.
    #[inline]
    pub fn has_events(&mut self, of_data: bool) -> bool {
        if !of_data {
            self.recv.undelivered = 0;
        }
        self.recv.undelivered > 0 || self.send.front.events != 0
    }

    /// Whether an acknowledgement is due before the application learns of the data: a kernel sends one that is due at
    /// once before the program runs, so that the answer follows it. Only before the first data of this end: Linux then
    /// takes the connection for an interactive one, whose answers carry the acknowledgements. QUIC packs both together,
    /// and agents of ns-2 call their application first.
    #[inline]
    pub fn acknowledges_first(&self) -> bool {
        self.recv.ack_now
            && self.recv.undelivered > 0
            && self.send.nxt <= 1
            && self.send.front.state == State::Open
            && !self.cfg.quic
            && self.cfg.ns2.is_none()
    }

    /// The next event. Call until `None`. All bytes received since the last call form one event.
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
            // Data has number 1 and up.
            pending::EARLY => match self.recv.take_early() {
                Some((start, end)) => Event::Early(start - 1, end - 1),
                None => return self.poll(),
            },
            pending::EOF => Event::Eof,
            pending::RESET => Event::Reset,
            _ => Event::Closed,
        })
    }

    /// Bytes written that have not been sent yet.
    pub fn unsent(&self) -> u64 {
        self.send.data_end().saturating_sub(self.send.nxt)
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
            // The SYN has number 0 and is not data.
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

    /// The maximum processing delay of the host now, before data goes out: see [`Jitter`]. `slot` is the time that
    /// the slowest link of the path needs for a full packet.
    #[inline]
    pub fn jitter(&self, slot: Dur) -> Dur {
        match self.cfg.jitter {
            Jitter::Off => Dur::ZERO,
            // The smallest RTT may come from a SYN, whose transmission takes hardly any time, so `slot` is
            // subtracted.
            Jitter::Queueing => slot.min(self.send.rtt.queueing(&self.cfg).saturating_sub(slot)),
            Jitter::UpTo(most) => most,
        }
    }

    /// Whether the connection is over. Keep passing segments to the endpoint until its peer is closed too: it answers
    /// a FIN whose acknowledgement was lost, and segments after an abort.
    pub fn is_closed(&self) -> bool {
        matches!(self.send.front.state, State::Closed | State::Dead)
    }

    /// [Prefetches](fetch()) the state needed for a segment with payload, and with `sending` that for a write or an
    /// acknowledgement.
    #[inline]
    pub fn fetch(&self, sending: bool) {
        fetch(self);
        fetch(&self.send);
        if sending {
            self.send.fetch();
        }
    }

    /// Prefetches the records of the flight. Reads memory that [`fetch`](Self::fetch) prefetches.
    #[inline]
    pub fn fetch_flight(&self) {
        self.send.board.fetch();
    }

    /// Prefetches the state of the receive buffer, if allocated. Reads memory that [`fetch`](Self::fetch) prefetches.
    #[inline]
    pub fn fetch_buffer(&self) {
        self.recv.fetch_buffer();
    }

    /// Prefetches the state of data beyond a hole, if any. Reads memory that [`fetch_buffer`](Self::fetch_buffer)
    /// prefetches.
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
        if self.cfg.quic && self.recv.has_gap() {
            self.send.front.events |= pending::EARLY;
        }
        if self.recv.fin_taken && !had_fin {
            self.send.front.events |= pending::EOF;
            self.maybe_closed();
        }
    }

    /// Raises events after SND.UNA moved by `moved`, which may be zero.
    #[inline]
    fn acked(&mut self, moved: u64) {
        // The event is raised once, not again when only the FIN is acknowledged.
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
