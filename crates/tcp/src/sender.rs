//! The sending half: what may be sent now, and what acknowledgements and timers mean.

mod acks;
mod dupack;
mod expected;
mod hystart;
mod loss;
mod ns2;
mod paced;
mod transmit;
mod undo;
mod validation;
mod writes;

use swell_base::{Dur, Stamps, Time, fetch};

use crate::cc::Window;
use crate::endpoint::Front;
use crate::receiver::millis;
use crate::rtt::{Round, Rtt};
use crate::scoreboard::Scoreboard;
use crate::{Algorithm, Config};
use hystart::HyStart;
pub(crate) use loss::Expired;
use loss::{Prr, Rack};
use ns2::Action;
use undo::Undo;
use validation::Flight;
use writes::{Runs, Writes};

/// What the sender does about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// The window falls because of marks, until something beyond `recover` is acknowledged (Linux `TCP_CA_CWR`).
    Reducing,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// After an RTO, until `recover` is acknowledged.
    Loss,
}

/// What the one retransmission timer stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Retransmission time-out.
    Rto,
    /// RFC 8985 section 7: probe the tail.
    Probe,
    /// RFC 8985 section 6.2: the reordering window ends.
    Reorder,
    /// The peer's window is closed (RFC 9293 section 3.8.6.1).
    Persist,
}

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    /// Data sent for the first time (RFC 3168 section 6.1.5: nothing else is ECT).
    pub(crate) fresh: bool,
}

/// Counters for [`crate::Stats`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) resent: u32,
    pub(crate) rtos: u32,
    pub(crate) recoveries: u32,
    pub(crate) probes: u32,
    pub(crate) marks: u32,
    /// Reductions undone, and time-outs among them.
    pub(crate) undone: u16,
    pub(crate) spurious: u16,
}

/// The round trip that an echoed time stamp tells: a millisecond at least, which is what time stamps resolve. None is
/// beyond the eight minutes at which it would look like a time stamp of the future.
fn round_trip(now: Time, echo: u32) -> Option<Dur> {
    let elapsed = u64::try_from(Stamps::since(millis(now), echo)).ok()?;
    Some(Dur::from_millis(elapsed.max(1)))
}

/// Window sizes are compared with it; none is beyond 4 GB.
fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The order of the fields is the order of use, in cache lines of 64 bytes: what an end looks at that only
/// receives, then what an acknowledgement and a write need, then the rest.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sender {
    /// SND.UNA and SND.NXT (RFC 9293 section 3.3.1).
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    /// First sequence number the peer does not allow.
    edge: u64,
    /// One past the last byte written.
    end: u64,
    /// `Time::MAX` when not running.
    pub(crate) deadline: Time,
    /// Of the endpoint, kept here where there is room.
    pub(crate) front: Front,
    /// The sender is ns-2's: windows are in packets, and the fields below are in use.
    ns2: bool,
    /// Sending is paced.
    paced: bool,
    /// See [`Sender::is_simple`].
    pub(crate) simple: bool,
    /// Of the endpoint: segments are marked (ECN) or stamped at all.
    pub(crate) marks: bool,
    /// [`Config::packets`], [`Config::nagle`].
    packets: bool,
    nagle: bool,
    /// Retransmit the oldest segment whatever the window.
    force: bool,
    pub(crate) fin_queued: bool,
    pub(crate) fin_sent: bool,
    timer: Timer,
    pub(crate) phase: Phase,
    /// Consecutive RTOs.
    timeouts: u8,
    /// Only with [`Config::packets`].
    writes: Writes,
    // The second line.
    pub(crate) board: Scoreboard,
    pub(crate) window: Window,
    // The third line.
    last_sent: Time,
    /// The one segment being timed, as (end, sent at); end 0 for none. Before the connection is open, the SYN.
    pub(crate) timed: (u64, Time),
    /// The first slow start is minded ([`Config::hystart`]) and not over.
    minded: bool,
    partial_acked: bool,
    /// The next new data carries CWR: the window was reduced.
    pub(crate) cwr: bool,
    /// Of the endpoint: SYNs or SYN/ACKs sent.
    pub(crate) syns: u8,
    /// Of the endpoint: the last part of the handshake goes alone, before data, as from a kernel whose
    /// application writes after `connect` returns.
    pub(crate) bare_ack: bool,
    /// The last thing that changed the window.
    action: Action,
    /// A duplicate acknowledgement allows one more packet.
    extra: bool,
    /// Packets that the last acknowledgement may still send ([`ns2::NO_LIMIT`]: as the window allows).
    burst: u8,
    /// With [`Config::window_validation`].
    flight: Flight,
    /// Duplicate acknowledgements in fast recovery without SACK, in bytes; partial
    /// acknowledgements may take it below zero.
    inflation: f64,
    dupacks: u32,
    /// How many of the packets in flight, from the oldest, are sent since the last time-out:
    /// `t_seqno_` counted from `highest_ack_`.
    index: u32,
    active: Option<Box<Active>>,
    // The fourth line.
    pub(crate) rtt: Rtt,
    /// SND.NXT when the phase began.
    recover: u64,
    rare: Option<Box<Rare>>,
}

/// What only some profiles need, and others only after a loss; there is none before it is needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    pub(crate) count: Counters,
    /// `RACK.reordering_seen` of RFC 8985.
    reordering_seen: bool,
    /// By how many quarters of a round trip the reordering window is wider than at first, and for how many recoveries
    /// (`RACK.reo_wnd_mult`, `RACK.reo_wnd_persist`).
    wider: u8,
    persist: u8,
    /// Tail loss probe.
    probe: Probe,
    /// `TLP.end_seq`. Of sequence numbers here the lower half is enough: no flight is beyond 2 GB.
    probe_end: u32,
    /// SND.NXT when the reordering window was last widened.
    adjusted: u32,
    /// Segments reported to have arrived twice.
    twice: u32,
    /// Without PRR, marks on what was sent below do not count: the window was reduced since.
    ecn_recover: u32,
}

/// Whether a tail loss probe is out, and of what (`TLP.is_retrans`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Probe {
    #[default]
    None,
    /// Of new data.
    New,
    /// Of data sent before.
    Resent,
}

/// What nobody asks for once everything is acknowledged. It is made when needed, and goes when nothing is in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Active {
    episode: Option<Episode>,
    rack: Rack,
    /// Since the first loss of the flight.
    undo: Option<Box<Undo>>,
    /// See `writes`.
    runs: Option<Box<Runs>>,
    /// Of the endpoint: a segment that a timer sent.
    pub(crate) extra: Option<Out>,
    /// Of the endpoint: sequence and acknowledgement number of a RST to be sent.
    pub(crate) rst: Option<(u64, u64)>,
}

/// What is kept for a while only. The first reduction of the window ends the first slow start.
#[derive(Clone, Debug)]
enum Episode {
    /// In fast recovery with [`Config::prr`].
    Recovery(Prr),
    /// During the first slow start with [`Config::hystart`].
    SlowStart(HyStart),
}

impl Sender {
    /// A sender whose SYN takes sequence number 0; without a handshake it counts as acknowledged.
    pub(crate) fn new(cfg: &Config, front: Front) -> Sender {
        let window = Window::new(cfg);
        Sender {
            una: u64::from(!cfg.handshake()),
            nxt: u64::from(!cfg.handshake()),
            edge: 1 + u64::from(cfg.first_window()),
            end: 1,
            deadline: Time::MAX,
            front,
            ns2: cfg.ns2_sender().is_some(),
            paced: cfg.algorithm == Algorithm::Bbr,
            simple: Sender::is_simple(cfg, &window),
            marks: cfg.ecn || cfg.stamps(),
            packets: cfg.packets,
            nagle: cfg.nagle,
            force: false,
            fin_queued: false,
            fin_sent: false,
            timer: Timer::Rto,
            phase: Phase::Open,
            timeouts: 0,
            minded: cfg.hystart && cfg.algorithm == Algorithm::Cubic,
            partial_acked: false,
            cwr: false,
            syns: 0,
            bare_ack: false,
            action: Action::None,
            extra: false,
            burst: ns2::NO_LIMIT,
            board: Scoreboard::default(),
            window,
            last_sent: Time::MAX,
            timed: (0, Time::ZERO),
            writes: Writes::default(),
            flight: Flight::default(),
            inflation: 0.0,
            dupacks: 0,
            index: 0,
            active: None,
            rtt: Rtt::new(cfg),
            // ns-2 begins with packet 0 as if it had been recovered.
            recover: u64::from(cfg.ns2_sender().is_some()),
            rare: None,
        }
    }

    /// What is seldom needed, to change it.
    #[inline]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// What is needed until everything is acknowledged, to change it.
    #[inline]
    pub(crate) fn active(&mut self) -> &mut Active {
        self.active.get_or_insert_default()
    }

    /// To change it if there is any.
    #[inline]
    pub(crate) fn active_if_any(&mut self) -> Option<&mut Active> {
        self.active.as_deref_mut()
    }

    #[inline]
    fn episode(&mut self) -> Option<&mut Episode> {
        self.active.as_deref_mut()?.episode.as_mut()
    }

    /// An acknowledgement was dealt with: where nothing is in flight now, what only flights need goes. The
    /// next acknowledgement begins another round of slow start, and is of something sent later than all that
    /// RACK knows of.
    #[inline]
    fn rest(&mut self) {
        if self.active.is_some() && self.una == self.nxt {
            self.forget_flight();
        }
    }

    #[inline(never)]
    fn forget_flight(&mut self) {
        if let Some(a) = &self.active
            && a.extra.is_none()
            && a.rst.is_none()
            && a.runs.is_none()
            && !matches!(a.episode, Some(Episode::Recovery(_)))
        {
            self.active = None;
        }
    }

    /// What was counted.
    pub(crate) fn counters(&self) -> Counters {
        self.rare.as_ref().map_or(Counters::default(), |r| r.count)
    }

    /// The peer's window from the beginning, without a handshake.
    pub(crate) fn offered(&mut self, window: u32) {
        self.edge = 1 + u64::from(window);
    }

    /// The handshake is over: `window` is what the peer allows from sequence number 1.
    pub(crate) fn open(&mut self, window: u32) {
        self.una = 1;
        self.nxt = self.nxt.max(1);
        self.edge = 1 + u64::from(window);
        self.deadline = Time::MAX;
        self.timeouts = 0;
        self.timed = (0, Time::ZERO);
    }

    /// [Asks](fetch()) for what is needed to send, but for what is in flight.
    #[inline]
    pub(crate) fn fetch(&self) {
        fetch(&self.board);
        fetch(&self.last_sent);
        fetch(&self.rtt);
    }

    /// Bytes sent and not cumulatively acknowledged: FlightSize.
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Bytes thought to be in the network: the pipe of RFC 6675.
    pub(crate) fn in_flight(&self) -> u64 {
        self.outstanding() - self.board.sacked() - self.board.lost()
    }

    /// All that was written, and the FIN if queued, is acknowledged.
    pub(crate) fn all_acked(&self) -> bool {
        self.una == self.end + u64::from(self.fin_queued)
    }

    /// One past the last byte written.
    pub(crate) fn data_end(&self) -> u64 {
        self.end
    }

    /// The connection is over: nothing is in flight and nothing will be sent.
    pub(crate) fn release(&mut self) {
        self.board = Scoreboard::default();
        self.writes = Writes::default();
        if let Some(active) = &mut self.active {
            active.runs = None;
        }
        self.una = self.nxt;
        self.index = 0;
        self.force = false;
        self.extra = false;
        if let Some(b) = self.window.bbr() {
            b.waiting = false;
        }
        self.deadline = Time::MAX;
    }

    pub(crate) fn rto(&self, cfg: &Config) -> Dur {
        match self.ns2.then(|| cfg.ns2_sender()).flatten() {
            Some(ns2) => self.rtt.rto_in_ticks(cfg, ns2),
            None => self.rtt.rto(cfg),
        }
    }

    /// What was sent at `sent`, once, is acknowledged.
    pub(crate) fn sample(&mut self, cfg: &Config, sent: Time, now: Time) {
        if self.ns2 {
            self.rtt.sample_in_ticks(cfg, sent, now);
        } else {
            self.rtt.sample(cfg, now.since(sent), self.round());
        }
    }

    /// What was sent with the time stamp `echo` is acknowledged.
    pub(crate) fn sample_by_echo(&mut self, cfg: &Config, now: Time, echo: u32) {
        if let Some(rtt) = round_trip(now, echo) {
            self.rtt.sample(cfg, rtt, self.round());
        }
    }

    fn round(&self) -> Round {
        Round {
            una: self.una,
            nxt: self.nxt,
        }
    }

    /// Bytes of the unit that windows are counted in.
    pub(crate) fn unit(&self, cfg: &Config) -> f64 {
        if self.ns2 { f64::from(cfg.mss()) } else { 1.0 }
    }

    pub(crate) fn is_ns2(&self) -> bool {
        self.ns2
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.end > self.nxt
    }

    fn arm(&mut self, timer: Timer, at: Time) {
        self.timer = timer;
        self.deadline = at;
    }

    /// Starts the timer anew for what is in flight.
    fn rearm(&mut self, cfg: &Config, now: Time) {
        if self.outstanding() == 0 {
            self.deadline = Time::MAX;
        } else if let Some(pto) = self.probe_timeout(cfg) {
            self.arm(Timer::Probe, now + pto);
        } else {
            self.arm(Timer::Rto, now + self.rto(cfg));
        }
    }

    /// What may be in flight, in bytes.
    fn limit(&self, cfg: &Config) -> f64 {
        // None of these is ever not a number, which minima and maxima would mind.
        let cwnd = self.window.cwnd;
        let cap = cfg.window_cap();
        let mut limit = if cwnd < cap { cwnd } else { cap } + self.inflation;
        if !cfg.sack && cfg.limited_transmit && self.phase == Phase::Open {
            // RFC 3042: one new segment for each of the first two duplicates.
            limit += f64::from(self.dupacks.min(2)) * f64::from(cfg.mss());
        }
        let least = f64::from(cfg.mss());
        if limit > least { limit } else { least }
    }

    /// Whether nothing is in flight and nothing waits, and nobody wants to be asked all the same.
    #[inline]
    pub(crate) fn has_nothing(&self) -> bool {
        self.una == self.nxt
            && self.end <= self.nxt
            && !(self.force | self.fin_queued | self.ns2 | self.paced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    impl Sender {
        pub(crate) fn check_layout() {
            assert_eq!(offset_of!(Sender, board), 64);
            assert_eq!(offset_of!(Sender, last_sent), 128);
            assert_eq!(offset_of!(Sender, rtt), 192);
            assert_eq!(size_of::<Sender>(), 256);
        }
    }
}
