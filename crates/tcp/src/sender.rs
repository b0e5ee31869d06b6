//! The sending half: what may be sent now, and how acknowledgements and timers change that.

mod acks;
mod dupack;
mod expected;
mod hystart;
mod loss;
mod ns2;
mod paced;
mod state;
mod transmit;
mod undo;
mod validation;
mod writes;

use swell_base::{Dur, Stamps, Time, fetch};

use crate::cc::Window;
use crate::clock::millis;
use crate::front::Front;
use crate::rtt::{Round, Rtt};
use crate::scoreboard::Scoreboard;
use crate::{Algorithm, Config};
use state::{Action, Active, Episode, Flight, NO_LIMIT, Rare, Writes};
pub(crate) use state::{Counters, Expired, Out, Phase, Sender, Timer};

/// The RTT according to an echoed timestamp, at least one millisecond, which is the resolution of timestamps. An RTT
/// cannot exceed eight minutes: such an echo would look like a timestamp from the future.
fn round_trip(now: Time, echo: u32) -> Option<Dur> {
    let elapsed = u64::try_from(Stamps::since(millis(now), echo)).ok()?;
    Some(Dur::from_millis(elapsed.max(1)))
}

/// Saturates to 32 bits, for comparison with windows, which never exceed 4 GB.
fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Sender {
    /// A sender whose SYN takes sequence number 0. Without a handshake the SYN counts as acknowledged.
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
            burst: NO_LIMIT,
            board: Scoreboard::default(),
            window,
            last_sent: Time::MAX,
            timed: (0, Time::ZERO),
            writes: Writes::default(),
            flight: Flight::default(),
            inflation: 0.0,
            dupacks: 0,
            index_or_delay: 0,
            active: None,
            rtt: Rtt::new(cfg),
            // ns-2 starts as if packet 0 had already been recovered.
            recover: u64::from(cfg.ns2_sender().is_some()),
            rare: None,
        }
    }

    /// The rarely needed state, allocated if absent.
    #[inline]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The state needed until everything is acknowledged, allocated if absent.
    #[inline]
    pub(crate) fn active(&mut self) -> &mut Active {
        self.active.get_or_insert_default()
    }

    /// The same state if it is allocated.
    #[inline]
    pub(crate) fn active_if_any(&mut self) -> Option<&mut Active> {
        self.active.as_deref_mut()
    }

    #[inline]
    fn episode(&mut self) -> Option<&mut Episode> {
        self.active.as_deref_mut()?.episode.as_mut()
    }

    /// Called after an acknowledgement is processed: frees the per-flight state if nothing is in flight. This loses
    /// nothing. The next acknowledgement starts a new round of slow start, and it is for a segment sent later than
    /// all segments that RACK knows.
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

    /// The counters so far.
    pub(crate) fn counters(&self) -> Counters {
        self.rare.as_ref().map_or(Counters::default(), |r| r.count)
    }

    /// Sets the peer's initial window for a connection without a handshake.
    pub(crate) fn offered(&mut self, window: u32) {
        self.edge = 1 + u64::from(window);
    }

    /// Completes the handshake. `window` is the peer's receive window, which starts at sequence number 1.
    pub(crate) fn open(&mut self, window: u32) {
        self.una = 1;
        self.nxt = self.nxt.max(1);
        self.edge = 1 + u64::from(window);
        self.deadline = Time::MAX;
        self.timeouts = 0;
        self.timed = (0, Time::ZERO);
    }

    /// [Prefetches](fetch()) the state needed for sending, except the records of the flight.
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

    /// Bytes estimated to be in the network: the pipe of RFC 6675.
    pub(crate) fn in_flight(&self) -> u64 {
        self.outstanding() - self.board.sacked() - self.board.lost()
    }

    /// Whether all written data, and the FIN if queued, is acknowledged.
    pub(crate) fn all_acked(&self) -> bool {
        self.una == self.end + u64::from(self.fin_queued)
    }

    /// One past the last byte written.
    pub(crate) fn data_end(&self) -> u64 {
        self.end
    }

    /// Frees state at the end of the connection: nothing is in flight and nothing will be sent.
    pub(crate) fn release(&mut self) {
        self.board = Scoreboard::default();
        self.writes = Writes::default();
        if let Some(active) = &mut self.active {
            active.runs = None;
        }
        self.una = self.nxt;
        self.index_or_delay = 0;
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

    /// Takes an RTT sample from the acknowledgement of data that was sent once, at `sent`.
    pub(crate) fn sample(&mut self, cfg: &Config, sent: Time, now: Time) {
        if self.ns2 {
            self.rtt.sample_in_ticks(cfg, sent, now);
        } else {
            self.rtt.sample(cfg, now.since(sent), self.round());
        }
    }

    /// Takes an RTT sample from the echoed timestamp `echo`.
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

    /// Bytes per unit in which windows are counted.
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

    /// Restarts the timer for the data in flight.
    fn rearm(&mut self, cfg: &Config, now: Time) {
        if self.outstanding() == 0 {
            self.deadline = Time::MAX;
        } else if let Some(pto) = self.probe_timeout(cfg) {
            self.arm(Timer::Probe, now + pto);
        } else {
            self.arm(Timer::Rto, now + self.rto(cfg));
        }
    }

    /// Limit on the data in flight, in bytes.
    fn limit(&self, cfg: &Config) -> f64 {
        // None of these values is ever NaN, so `min` and `max` are safe.
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

    /// Whether nothing is in flight, nothing waits, and no mode needs to be asked anyway.
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
