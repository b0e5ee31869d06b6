//! The TCP that hosts run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur};

/// The TCP that hosts run: a profile, and what differs from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpSettings {
    /// The profile everything else starts from.
    #[serde(default)]
    pub profile: TcpProfile,
    /// Congestion control. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionControl>,
    /// Initial window in segments. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Shortest retransmission time-out. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Dur>,
    /// Selective acknowledgements. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Delayed acknowledgements. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<bool>,
    /// Largest segment: payload bytes of a full packet. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<Bytes>,
    /// Largest receive window. Default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<Bytes>,
}

/// What kind of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpProfile {
    /// A current Linux: initial window 10, SACK, CUBIC, delayed ACKs.
    #[default]
    Linux,
    /// What the early papers ran: NewReno without SACK, a small initial window, a coarse timer.
    Classic,
}

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// CUBIC (RFC 9438).
    Cubic,
    /// NewReno (RFC 6582).
    Newreno,
    /// Reno (RFC 5681).
    Reno,
}
