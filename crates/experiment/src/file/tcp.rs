//! TCP settings of hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur};
use swell_tcp::{Algorithm, VegasConfig};

/// The TCP that hosts run: a profile, and what differs from it. `docs/tcp.md` says what each profile
/// holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpSettings {
    /// The profile everything else starts from.
    #[serde(default)]
    pub profile: TcpProfile,
    /// Congestion control. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Algorithm>,
    /// Initial window in segments. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Initial slow-start threshold in segments. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<u32>,
    /// Shortest retransmission time-out. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Dur>,
    /// Tick of the clock that times round trips and time-outs; 0s is exact. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Dur>,
    /// Selective acknowledgements. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Delayed acknowledgements. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<bool>,
    /// How long an acknowledgement may be delayed. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<Dur>,
    /// Nagle's algorithm: hold a short segment back while data is unacknowledged. Default: the
    /// profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nagle: Option<bool>,
    /// Limited transmit: new data on the first two duplicate acknowledgements. Default: the
    /// profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// Explicit congestion notification: queues that mark may mark instead of dropping. Default: the
    /// profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Largest segment: payload bytes of a full packet. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<Bytes>,
    /// Largest window that receivers advertise. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<Bytes>,
    /// The sender's own limit on its window in segments. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_window: Option<u32>,
    /// Whether each write is a packet of its own instead of a part of a stream. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<bool>,
    /// Whether SYNs are exchanged before data; without, both ends are connected from the start, as in
    /// ns-2's one-way TCP. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<bool>,
    /// Whether the receive window begins small and follows what arrives, up to `receive_window`. Default:
    /// the profile's, and not where `receive_window` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_tuning: Option<bool>,
    /// What Vegas wants queued. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vegas: Option<VegasConfig>,
    /// The longest time that a simulated host takes, at random, before data goes out; 0s is none, and locks phases.
    /// Default: what a full packet takes on the slowest link, but no more than the connection waits in queues; none for
    /// the profiles of ns-2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Dur>,
}

/// What kind of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpProfile {
    /// A current Linux: initial window 10, SACK, CUBIC, delayed ACKs.
    #[default]
    Linux,
    /// What the early papers ran: Reno without SACK, a small initial window, a coarse timer.
    Classic,
    /// ns-2 of 1999 and 2000: one-way Reno without handshake, window of 20 packets, ticks of 100ms.
    Ns2Era,
    /// ns-2.35 as released: as `ns2-era`, with a SYN, limited transmit, an initial window of 2, ticks
    /// of 10ms.
    Ns2Modern,
}
