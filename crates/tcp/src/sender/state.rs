//! The state of a sender, and of its algorithms. Their files have the behaviour.

use std::collections::VecDeque;

use swell_base::{Dur, Time};

use crate::cc::Window;
use crate::front::Front;
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;

/// Loss recovery state of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No loss is known.
    Open,
    /// The window is being reduced because of ECN marks, until data beyond `recover` is acknowledged (Linux
    /// `TCP_CA_CWR`).
    Reducing,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// After an RTO, until `recover` is acknowledged.
    Loss,
}

/// The purpose for which the single retransmission timer is currently armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Retransmission time-out (RTO).
    Rto,
    /// Tail loss probe (RFC 8985 section 7).
    Probe,
    /// End of the reordering window (RFC 8985 section 6.2).
    Reorder,
    /// Zero-window probe (RFC 9293 section 3.8.6.1).
    Persist,
}

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    /// Data sent for the first time. Only such data is sent as ECT (RFC 3168 section 6.1.5).
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
    /// Reductions that were undone, and the time-outs among them.
    pub(crate) undone: u16,
    pub(crate) spurious: u16,
}

/// Fields are ordered by use, in cache lines of 64 bytes: first the fields that a pure receiver reads, then those
/// that an acknowledgement and a write need, then the rest.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sender {
    /// SND.UNA and SND.NXT (RFC 9293 section 3.3.1).
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    /// First sequence number beyond the peer's receive window.
    pub(super) edge: u64,
    /// One past the last byte written.
    pub(super) end: u64,
    /// Expiry of the timer; `Time::MAX` when it is not running.
    pub(crate) deadline: Time,
    /// State of the endpoint, kept here because there is space in this cache line.
    pub(crate) front: Front,
    /// ns-2's sender is in use: windows count packets, and the ns-2 fields below are valid.
    pub(super) ns2: bool,
    /// Sending is paced.
    pub(super) paced: bool,
    /// See [`Sender::is_simple`].
    pub(crate) simple: bool,
    /// For the endpoint: segments carry ECN marks or stamps.
    pub(crate) marks: bool,
    /// [`Config::packets`], [`Config::nagle`].
    pub(super) packets: bool,
    pub(super) nagle: bool,
    /// Retransmit the oldest segment regardless of the window.
    pub(super) force: bool,
    pub(crate) fin_queued: bool,
    pub(crate) fin_sent: bool,
    pub(super) timer: Timer,
    pub(crate) phase: Phase,
    /// Consecutive RTOs.
    pub(super) timeouts: u8,
    /// Write boundaries; used only with [`Config::packets`].
    pub(super) writes: Writes,
    // The second cache line.
    pub(crate) board: Scoreboard,
    pub(crate) window: Window,
    // The third cache line.
    pub(super) last_sent: Time,
    /// The one segment being timed, as (end, time sent); end 0 means none. Before the connection is open, the SYN.
    pub(crate) timed: (u64, Time),
    /// HyStart monitors the current slow start ([`Config::hystart`]): the first one, or one after an RTO.
    pub(super) minded: bool,
    pub(super) partial_acked: bool,
    /// The next new data carries CWR, because the window was reduced.
    pub(crate) cwr: bool,
    /// For the endpoint: number of SYNs or SYN/ACKs sent.
    pub(crate) syns: u8,
    /// For the endpoint: the final ACK of the handshake goes out alone, before any data. A kernel does this when the
    /// application writes only after `connect` returns.
    pub(crate) bare_ack: bool,
    /// The most recent action that changed the window.
    pub(super) action: Action,
    /// A duplicate acknowledgement allows one more packet.
    pub(super) extra: bool,
    /// Number of packets that the last acknowledgement may still release ([`ns2::NO_LIMIT`]: as many as the window
    /// allows).
    pub(super) burst: u8,
    /// Used only with [`Config::window_validation`].
    pub(super) flight: Flight,
    /// Window inflation from duplicate acknowledgements in fast recovery without SACK, in bytes. Partial
    /// acknowledgements may make it negative.
    pub(super) inflation: f64,
    pub(super) dupacks: u32,
    /// With ns-2's sender, the number of packets in flight, from the oldest, that were sent since the last time-out:
    /// `t_seqno_` counted from `highest_ack_`. With CUBIC, which ns-2's sender does not have, its
    /// [smallest RTT](Sender::delay_min) in microseconds; zero before the first sample.
    pub(super) index_or_delay: u32,
    pub(super) active: Option<Box<Active>>,
    // The fourth cache line.
    pub(crate) rtt: Rtt,
    /// SND.NXT when the current phase began.
    pub(super) recover: u64,
    pub(super) rare: Option<Box<Rare>>,
}

/// State that only some profiles need, or that is needed only after a loss. It is allocated on first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    pub(crate) count: Counters,
    /// `RACK.reordering_seen` of RFC 8985.
    pub(super) reordering_seen: bool,
    /// Number of quarter RTTs by which the reordering window is widened, and the number of recoveries for which that
    /// lasts (`RACK.reo_wnd_mult`, `RACK.reo_wnd_persist`).
    pub(super) wider: u8,
    pub(super) persist: u8,
    /// Tail loss probe.
    pub(super) probe: Probe,
    /// `TLP.end_seq`. For the sequence numbers in this struct the lower 32 bits suffice, because a flight never
    /// exceeds 2 GB.
    pub(super) probe_end: u32,
    /// SND.NXT when the reordering window was last widened.
    pub(super) adjusted: u32,
    /// Number of segments that the peer reported as duplicates.
    pub(super) twice: u32,
    /// Without PRR: marks on data below this sequence number are ignored, because the window was reduced since.
    pub(super) ecn_recover: u32,
}

/// Whether a tail loss probe is outstanding, and whether it carried new data (`TLP.is_retrans`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Probe {
    #[default]
    None,
    /// The probe was new data.
    New,
    /// The probe was a retransmission.
    Resent,
}

/// State that is not needed once everything is acknowledged. It is allocated on demand and freed when nothing is in
/// flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Active {
    pub(super) episode: Option<Episode>,
    pub(super) rack: Rack,
    /// Present since the first loss of the flight.
    pub(super) undo: Option<Box<Undo>>,
    /// See the `writes` module.
    pub(super) runs: Option<Box<Runs>>,
    /// For the endpoint: a segment that a timer released.
    pub(crate) extra: Option<Out>,
    /// For the endpoint: sequence and acknowledgement number of a RST to send.
    pub(crate) rst: Option<(u64, u64)>,
}

/// State of the current recovery or of the monitored slow start. The two never overlap: a reduction of the window
/// ends the monitored slow start.
#[derive(Clone, Debug)]
pub(super) enum Episode {
    /// In fast recovery with [`Config::prr`].
    Recovery(Prr),
    /// During a slow start that HyStart monitors.
    SlowStart(HyStart),
}

/// Proportional rate reduction (RFC 9937 section 6), in bytes.
#[derive(Clone, Debug)]
pub(super) struct Prr {
    pub(super) delivered: u64,
    pub(super) out: u64,
    /// `RecoverFS`: bytes in flight when recovery began.
    pub(super) flight: u64,
}

/// The part of the state of RFC 8985 section 5.3 that describes the most recently sent delivered segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// `RACK.xmit_ts` and `RACK.end_seq`: the delivered segment that was sent last.
    pub(super) sent: Time,
    pub(super) end: u64,
    /// `RACK.rtt`.
    pub(super) rtt: Dur,
}

/// What may be sent in response to the current acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Resends {
    /// Lost segments first, then new data.
    #[default]
    First,
    /// New data; lost segments if there is none (RFC 5682 section 3.1 step 2b).
    AfterNew,
    /// New data only, because the segments considered lost may be late.
    Never,
}

/// The latest reduction of the window and the evidence against it. Present from the first loss of a flight until
/// everything is acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// SND.UNA at the reduction; 0 if there is nothing to undo.
    pub(super) marker: u64,
    /// Number of retransmissions since then that were not reported as duplicates; `None` if there was no
    /// retransmission.
    pub(super) resent: Option<u32>,
    /// Timestamp of the first retransmission.
    pub(super) since: Option<u32>,
    /// Window and threshold before the reduction. The threshold is `None` if the reduction had another cause as well.
    pub(super) window: f64,
    pub(super) threshold: Option<f64>,
    /// The current time-out may be spurious.
    pub(super) frto: bool,
    pub(super) resends: Resends,
}

/// `last_cwnd_action_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    DupAck,
    Timeout,
    Ecn,
    /// Recovery is over.
    Exited,
}

/// No limit to the number of packets sent per acknowledgement (`maxburst_` 0).
pub(super) const NO_LIMIT: u8 = u8::MAX;

/// The last flight: Linux `tcp_cwnd_validate`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// End of the flight, lower 32 bits. They suffice, because a window never exceeds 4 GB.
    pub(super) end: u32,
    /// Bytes in flight, or [`LIMITED`] if the window was the limit and the bytes do not matter.
    pub(super) bytes: u32,
}

/// Unsent writes: the oldest run of writes of equal size. The later runs are in [`Runs`], in [`Active`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writes {
    /// Number of writes in the run; zero if nothing waits.
    pub(super) n: u32,
    /// Bytes of each write, at most one segment.
    pub(super) size: u16,
    /// There are further runs.
    pub(super) mixed: bool,
}

/// The runs after the oldest, as (size, count). Sources that write packets of one size have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(pub(super) VecDeque<(u16, u32)>);

/// State of the current round of slow start.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// The round ends when this sequence number is acknowledged.
    pub(super) end: u64,
    pub(super) start: Time,
    /// Arrival of the last acknowledgement in the train that began with the round.
    pub(super) last_ack: Time,
    pub(super) shortest: Dur,
    pub(super) samples: u8,
}

/// What the endpoint must do after a timer expired.
pub(crate) enum Expired {
    /// Send this segment now.
    Send(Out),
    /// Too many consecutive time-outs: give the connection up.
    GiveUp,
}
