//! The settings of a TCP endpoint.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Flags, Segment};

/// Initial receive window: the number of whole 1460-byte segments that fit into half of `tcp_rmem`'s default of 128
/// KiB (`tcp_select_initial_window`).
pub(crate) const FIRST_WINDOW: u32 = 44 * 1460;
/// Bytes of a QUIC packet besides IP header and payload, including UDP's: see [`Config::wire_size`].
const QUIC_HEADERS: u16 = 43;
/// How the congestion window moves and, without SACK, how losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CongestionControl")]
pub enum Algorithm {
    /// CUBIC (RFC 9438). Without SACK losses are repaired as by NewReno.
    Cubic,
    /// NewReno (RFC 5681). Without SACK fast recovery repairs one hole per round trip (RFC 6582).
    #[serde(rename = "newreno")]
    NewReno,
    /// Reno (RFC 5681). Without SACK the first new acknowledgement ends fast recovery.
    Reno,
    /// Vegas (Brakmo and Peterson 1995), as in ns-2 (`tcp/tcp-vegas.cc`): always with ns-2's sender, whatever is said of
    /// SACK.
    Vegas,
    /// Westwood+ (Grieco and Mascolo 2004).
    Westwood,
    /// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00). Paced; it wants SACK.
    Bbr,
    /// LEDBAT (RFC 6817): less than best effort, by one-way delay.
    Ledbat,
    /// LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-01): less than best effort, by round-trip time.
    #[serde(rename = "ledbat++")]
    LedbatPlusPlus,
    /// TCP-LP (Kuzmanovic and Knightly 2003): less than best effort, by one-way delay.
    Lp,
    /// TCP Nice (Venkataramani, Kokku and Dahlin 2002): less than best effort, by round-trip time.
    Nice,
}

impl Algorithm {
    /// The name under which Linux has it; `None` if Linux does not.
    pub fn module(self) -> Option<&'static str> {
        match self {
            Algorithm::Reno | Algorithm::NewReno => Some("reno"),
            Algorithm::Cubic => Some("cubic"),
            Algorithm::Vegas => Some("vegas"),
            Algorithm::Westwood => Some("westwood"),
            Algorithm::Bbr => Some("bbr"),
            Algorithm::Lp => Some("lp"),
            Algorithm::Ledbat | Algorithm::LedbatPlusPlus | Algorithm::Nice => None,
        }
    }
}

/// The quantity from which the slow-start threshold is computed when a loss is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossBase {
    /// The congestion window, capped by [`Config::send_window`]: Linux (`tcp_reno_ssthresh`,
    /// `cubictcp_recalc_ssthresh`) and ns-2 (`TcpAgent::slowdown`, `halfwin`).
    Window,
    /// FlightSize, RFC 5681 equation 4.
    Flight,
}

/// What happens to the congestion window after the sender was idle for longer than the RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdleRestart {
    /// The window is kept.
    Off,
    /// The window falls to the initial window at once (RFC 5681 section 4.1; ns-2 `slow_start_restart_`).
    Reset,
    /// The window halves once per idle RTO, but not below the initial window (RFC 2861; Linux `tcp_cwnd_restart`,
    /// enabled by `tcp_slow_start_after_idle`).
    Decay,
}

/// The differences between ns-2's TCP of about 2000 and that of ns-2.35 which no other field of [`Config`] covers.
/// The names are ns-2's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ns2 {
    /// A halved window may be fractional (`precisionReduce_`). The threshold is always whole.
    pub precision_reduce: bool,
    /// The minimum RTO is applied before back-off instead of after it, and back-off continues up to
    /// [`Config::max_rto`] (`rfc2988_`).
    pub rfc2988: bool,
    /// An acknowledgement starts the timer after the RTT estimate is updated, not before (`timerfix_`).
    pub timerfix: bool,
    /// Vegas starts with one packet and takes the initial window when the second packet is acknowledged
    /// (`delay_growth_`). Other senders get the same effect from [`Config::handshake`].
    pub delay_growth: bool,
}

/// What TCP Vegas wants queued at the bottleneck, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Vegas")]
pub struct VegasConfig {
    // In ns-2 `v_alpha_`, `v_beta_` and `v_gamma_`.
    /// Below this many the window grows.
    pub alpha: u32,
    /// Above this many it shrinks.
    pub beta: u32,
    /// Above this many slow start ends.
    pub gamma: u32,
}

impl Default for VegasConfig {
    fn default() -> VegasConfig {
        VegasConfig {
            alpha: 1,
            beta: 3,
            gamma: 1,
        }
    }
}

/// Processing delay of the host before data goes out onto its link. It is drawn anew at each instant at which the
/// host sends, uniformly from zero to the maximum given here.
///
/// Without jitter, phase effects decide which flow finds a full drop-tail queue, and round numbers can lock the
/// phases for a whole run. Random processing delay is the remedy of S. Floyd and V. Jacobson, "On Traffic Phase
/// Effects in Packet-Switched Gateways", 1992.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// No delay, as in ns-2's agents with `overhead_` set to zero.
    Off,
    /// At most the time that the slowest link of the path takes for a full packet, and at most the measured queueing
    /// delay. That is the smoothed RTT minus the smallest RTT, minus the segment's own transmission time. An idle
    /// path therefore has exact timing, and packets that queue anyway arrive no later.
    Queueing,
    /// At most this long, regardless of queueing: ns-2's `overhead_`.
    UpTo(Dur),
}

/// All settings of an endpoint. Start from [`Config::linux`] or [`Config::classic`] and change fields by struct
/// update syntax. Values out of range are clamped where they are used; no value can make an endpoint panic.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload bytes of a full segment, 1 to 65 000. `linux`: 1448, which is what a 1500-byte MTU leaves with
    /// timestamps; `classic`: 1460.
    pub mss: u32,
    /// The connection is QUIC (RFC 9000): see [`Config::quic`]. Needs `sack`, and no `handshake`, because the
    /// application exchanges QUIC's as its first data.
    pub quic: bool,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Send as ns-2's one-way agents do, packet for packet, if there is an agent for `algorithm` and `sack`:
    /// `Agent/TCP/Reno`, `Newreno`, `Vegas`. They count in packets, measure time in ticks, go back N after a time-out
    /// and ignore the receive window. `None`: send as the RFCs and kernels do.
    pub ns2: Option<Ns2>,
    /// Thresholds of [`Algorithm::Vegas`].
    pub vegas: VegasConfig,
    /// Explicit congestion notification (RFC 3168), assumed to be negotiated. Data is sent as ECT(0). Marks are
    /// returned as ECE until CWR arrives; they reduce the window as a loss does, once per window.
    pub ecn: bool,
    /// Selective acknowledgements (RFC 2018) and the recovery based on them (RFC 6675). Both ends must have the same
    /// setting, because options are not negotiated.
    pub sack: bool,
    /// Bytes of the IP header: 20 for IPv4, 40 for IPv6.
    pub ip_header: u16,
    /// Bytes of the transport's header without options: 20 for TCP (RFC 9293 section 3.1). For QUIC 31, to which 12 for
    /// timestamps are added. These stand for its packet numbers, which tell transmissions of the same data apart.
    pub transport_header: u16,
    /// Timestamps (RFC 7323) in milliseconds: 12 bytes on every segment. The echo gives an RTT sample even for a
    /// segment that was sent more than once. An echo older than the first retransmission shows that the
    /// retransmissions were not needed (RFC 4015, Linux `tcp_packet_delayed`).
    pub timestamps: bool,
    /// Treat a time-out as spurious when data that was not retransmitted is acknowledged, and undo the reduction
    /// (F-RTO, RFC 5682 section 3; Linux `tcp_process_loss`). Needs `sack`.
    pub frto: bool,
    /// Report data that arrived twice to the sender (D-SACK, RFC 2883). The sender undoes a reduction when every
    /// retransmission is reported as a duplicate (RFC 3708, Linux `tcp_try_undo_dsack`). Needs `sack`.
    pub dsack: bool,
    /// Initial congestion window in segments. `linux`: 10 (RFC 6928); `classic`: 2 (ns-2
    /// `windowInit_`; RFC 2581 allowed 2, RFC 2001 said 1).
    pub initial_window: u32,
    /// Initial slow-start threshold in segments; `None` is unlimited (RFC 5681 section 3.1). ns-2 uses `window_`, 20.
    pub initial_ssthresh: Option<u32>,
    /// The sender's own limit on its window, in segments: ns-2's `window_`, 20. Duplicate
    /// acknowledgements in fast recovery inflate it as they inflate the congestion window.
    pub send_window: Option<u32>,
    /// The largest receive window in bytes. The application is assumed to read at once. `linux`: 6 MiB, for many
    /// years the maximum of `tcp_rmem`.
    pub recv_buffer: u32,
    /// SYNs offer window scaling (RFC 7323) even if the receive window is small, as in Linux. If false, they offer it
    /// only when the receive window needs it.
    pub window_scaling: bool,
    /// The receive window starts at 64 kB and follows the rate of arriving data, as in Linux (`tcp_moderate_rcvbuf`).
    /// While it grows, every segment is acknowledged. If false, the window is `recv_buffer` from the start, as after
    /// `SO_RCVBUF`. Ignored with algorithms that measure one-way delays.
    pub recv_tuning: bool,
    /// Minimum RTO. `linux`: 200 ms (`TCP_RTO_MIN`); `classic`: 1 s (RFC 6298 section 2.4).
    pub min_rto: Dur,
    /// Maximum RTO. 120 s in Linux (`TCP_RTO_MAX`), 60 s in `classic` (RFC 6298 section 2.5).
    pub max_rto: Dur,
    /// RTO before the first RTT sample: 1 s (RFC 6298 section 2.1).
    pub initial_rto: Dur,
    /// Estimate the RTO as Linux does (`tcp_rtt_estimator`): RTO = SRTT + max(min_rto, 4 RTTVAR). `min_rto` bounds
    /// only the variance term, and the variance falls once per round trip instead of with each sample. If false, RFC
    /// 6298 applies and `min_rto` bounds the RTO as a whole.
    pub min_rto_is_variance: bool,
    /// Clock tick: RTT samples and RTOs are rounded up to a multiple of it. Zero means exact. BSD: 500 ms; ns-2
    /// `tcpTick_`: 10 ms, 100 ms before 2002.
    pub tick: Dur,
    /// Take an RTT sample from every acknowledgement of data that was sent once (Linux). If false, one segment is
    /// timed at a time (BSD, ns-2 without timestamps).
    pub rtt_every_ack: bool,
    /// Number of consecutive RTOs without progress after which the connection is given up: 15 (Linux `tcp_retries2`).
    pub retries: u8,
    /// Number of SYN or SYN/ACK retransmissions after which the connection is given up: 6 (Linux `tcp_syn_retries`).
    pub syn_retries: u8,
    /// Number of SYN time-outs that neither back off nor count as retries: 4 (Linux `tcp_syn_linear_timeouts`); none
    /// in RFC 6298.
    pub syn_linear: u8,
    /// Number of duplicate acknowledgements, or of selectively acknowledged segments above a hole, that indicates a
    /// loss: 3 (RFC 5681 section 3.2, RFC 6675 `DupThresh`).
    pub dup_threshold: u32,
    /// Send new data on the first two duplicate acknowledgements (limited transmit, RFC 3042).
    pub limited_transmit: bool,
    /// Proportional rate reduction in SACK recovery: the amount sent follows the amount delivered (PRR, RFC 9937). If
    /// false, the window falls to the threshold at once (RFC 6675 section 5).
    pub prr: bool,
    /// Leave slow start when ACK trains or rising RTTs show that the path is full: HyStart, as in Linux. Used by
    /// CUBIC only, in the first slow start and after an RTO. `linux`: on.
    pub hystart: bool,
    /// Detect losses by time and send tail loss probes (RACK-TLP, RFC 8985). Needs `sack`.
    pub rack_tlp: bool,
    /// Grow the window by bytes acknowledged (RFC 3465 and Linux) instead of once per acknowledgement. Windows then
    /// count whole segments, as in Linux: a reduction rounds down.
    pub byte_counting: bool,
    /// Do not grow a window that is not fully used (RFC 7661; Linux `tcp_is_cwnd_limited`). ns-2 always grows it.
    pub window_validation: bool,
    /// What happens to the window after an idle time.
    pub idle_restart: IdleRestart,
    /// The quantity from which the threshold is computed at a loss.
    pub loss_base: LossBase,
    /// Delay acknowledgements (RFC 1122 section 4.2.3.2).
    pub delayed_ack: bool,
    /// Number of full segments after which a delayed acknowledgement is sent at once: 2 (RFC 9293 section 3.8.6.3).
    /// More where the hardware or a middlebox thins out acknowledgements.
    pub ack_every: u8,
    /// Maximum delay of an acknowledgement: 40 ms in Linux (`TCP_DELACK_MIN`; its adaptation up to 200 ms is not
    /// modelled), 100 ms in ns-2, 200 ms in BSD.
    pub ack_delay: Dur,
    /// Number of acknowledgements sent without delay at the start of a connection: 16 in Linux (`TCP_MAX_QUICKACKS`).
    pub quick_acks: u8,
    /// Acknowledge at once data that fills part of a hole (RFC 5681 section 4.2; ns-2 `RFC2581_immediate_ack_`). If
    /// false, only data that fills the last hole is acknowledged at once, as before RFC 2581.
    pub ack_filling: bool,
    /// Exchange SYNs before data. If false, both ends are connected from the start, as in ns-2's one-way TCP.
    pub handshake: bool,
    /// Hold back a short segment while data is unacknowledged (Nagle's algorithm, RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// Each write starts a new segment, as in ns-2 where the application submits packets. If false, writes form a
    /// byte stream.
    pub packets: bool,
    /// Processing delay of the host before data goes out.
    pub jitter: Jitter,
}

impl Config {
    /// Current Linux, with CUBIC.
    pub fn linux() -> Config {
        Config {
            mss: 1448,
            quic: false,
            algorithm: Algorithm::Cubic,
            ns2: None,
            vegas: VegasConfig::default(),
            ecn: false,
            sack: true,
            ip_header: 20,
            transport_header: 20,
            timestamps: true,
            frto: true,
            dsack: true,
            initial_window: 10,
            initial_ssthresh: None,
            send_window: None,
            recv_buffer: 6 << 20,
            window_scaling: true,
            recv_tuning: true,
            min_rto: Dur::from_millis(200),
            max_rto: Dur::from_secs(120),
            initial_rto: Dur::from_secs(1),
            min_rto_is_variance: true,
            tick: Dur::ZERO,
            rtt_every_ack: true,
            retries: 15,
            syn_retries: 6,
            syn_linear: 4,
            dup_threshold: 3,
            limited_transmit: true,
            prr: true,
            rack_tlp: true,
            hystart: true,
            byte_counting: true,
            window_validation: true,
            idle_restart: IdleRestart::Decay,
            loss_base: LossBase::Window,
            delayed_ack: true,
            ack_every: 2,
            ack_delay: Dur::from_millis(40),
            quick_acks: 16,
            ack_filling: true,
            handshake: true,
            nagle: false,
            packets: false,
            jitter: Jitter::Queueing,
        }
    }

    /// Common settings of simulations around the year 2000: Reno, no SACK, no timestamps.
    pub fn classic() -> Config {
        Config {
            mss: 1460,
            algorithm: Algorithm::Reno,
            sack: false,
            timestamps: false,
            frto: false,
            dsack: false,
            initial_window: 2,
            initial_ssthresh: Some(20),
            send_window: Some(20),
            recv_buffer: 1 << 20,
            window_scaling: false,
            recv_tuning: false,
            min_rto: Dur::from_secs(1),
            max_rto: Dur::from_secs(60),
            initial_rto: Dur::from_secs(3),
            min_rto_is_variance: false,
            tick: Dur::from_millis(10),
            rtt_every_ack: false,
            syn_linear: 0,
            limited_transmit: false,
            prr: false,
            rack_tlp: false,
            hystart: false,
            byte_counting: false,
            window_validation: false,
            idle_restart: IdleRestart::Reset,
            delayed_ack: false,
            ack_delay: Dur::from_millis(100),
            quick_acks: 0,
            ..Config::linux()
        }
    }

    /// ns-2 of 1999 to 2000: one-way TCP with the defaults of that time. Reno; each segment is a packet that the
    /// application submits; packets of 1500 bytes and acknowledgements of 40. `docs/tcp.md` has the list with dates.
    pub fn ns2_era() -> Config {
        Config {
            ns2: Some(Ns2 {
                precision_reduce: false,
                rfc2988: false,
                timerfix: false,
                delay_growth: false,
            }),
            initial_window: 1,
            recv_buffer: 1 << 30,
            min_rto: Dur::ZERO, // the lower bound is two ticks
            max_rto: Dur::from_secs(64),
            initial_rto: Dur::from_secs(6),
            tick: Dur::from_millis(100),
            retries: u8::MAX,
            ack_filling: false,
            quick_acks: 1, // `SYN_immediate_ack_`: the first packet takes the role of the SYN
            handshake: false,
            packets: true,
            jitter: Jitter::Off,
            ..Config::classic()
        }
    }

    /// One-way TCP of ns-2.35 as released; otherwise as [`ns2_era`](Self::ns2_era). The first packet is a SYN of 40
    /// bytes (`syn_`), so `handshake` is on; Vegas sends none.
    pub fn ns2_modern() -> Config {
        Config {
            ns2: Some(Ns2 {
                precision_reduce: true,
                rfc2988: true,
                timerfix: true,
                delay_growth: true,
            }),
            initial_window: 2,
            min_rto: Dur::from_millis(200),
            max_rto: Dur::from_secs(60),
            initial_rto: Dur::from_secs(3),
            tick: Dur::from_millis(10),
            limited_transmit: true,
            ack_filling: true,
            quick_acks: 0,
            handshake: true,
            ..Config::ns2_era()
        }
    }

    /// QUIC version 1 with packets of 1500 bytes. The sender is that of [`Config::linux`], with these differences:
    ///
    /// * Data that arrives beyond a hole is reported at once ([`Event::Early`](crate::Event::Early)), because it may
    ///   belong to another stream (RFC 9000 section 2.2). Sequence numbers count the bytes of all streams in the order
    ///   in which they are first sent.
    /// * Probe time-outs instead of retransmission time-outs (RFC 9002 section 6.2): SRTT, four times the deviation,
    ///   and the peer's `ack_delay`. They send a packet and leave the window alone. The third in a row stands for
    ///   persistent congestion (section 7.6), and is handled as TCP handles an RTO.
    /// * Acknowledgements: every second packet, at most 25 ms late, without quick ones at the start (RFC 9000 sections
    ///   13.2.1, 13.2.2 and 18.2). They report three ranges, as in TCP. RFC 9000 has no such limit, but a sender
    ///   remembers ranges, so that only losses of many acknowledgements in a row would show it.
    /// * Headers: see [`Config::wire_size`].
    /// * Flow control: the whole window from the start, 15 MiB, as in Chromium.
    ///
    /// RACK with its reordering window (RFC 8985) takes the place of RFC 9002's thresholds, which derive from it. RTT
    /// samples include the delay of acknowledgements. The sender does not pace unless its algorithm does.
    pub fn quic() -> Config {
        Config {
            quic: true,
            transport_header: QUIC_HEADERS - 12,
            mss: 1500 - 20 - u32::from(QUIC_HEADERS),
            handshake: false,
            frto: false,
            dsack: false,
            recv_buffer: 15 << 20,
            recv_tuning: false,
            min_rto: Dur::ZERO,
            min_rto_is_variance: false,
            ack_delay: Dur::from_millis(25),
            quick_acks: 0,
            ..Config::linux()
        }
    }

    /// Size of `seg` at the network layer in bytes: IP header, 20 bytes for TCP, options, payload. At most 65 535.
    ///
    /// For QUIC, 43 bytes take the place of TCP's header: UDP 8, and a short header with a connection ID of 8 bytes
    /// and a packet number of 2, together 11 (RFC 9000 section 17.3.1). The authentication tag has 16 (RFC 9001 section
    /// 5.3), and the header of a STREAM frame 8 (section 19.8), about as many as an ACK frame (section 19.3). Each
    /// further range of the latter has 4.
    #[inline(always)]
    pub fn wire_size(&self, seg: &Segment) -> u16 {
        let options = if seg.flags.has(Flags::SYN) {
            // MSS 4, SACK permitted 2 (RFC 2018), timestamps 10 and window scale 3 (RFC 7323),
            // padded to words.
            let scale = 3 * u32::from(self.offers_scaling());
            let sum = 4 + 2 * u32::from(self.sack) + 10 * u32::from(self.timestamps) + scale;
            sum.next_multiple_of(4)
        } else {
            // Two bytes of padding before the option, for alignment, as all common stacks do.
            let sack = match seg.sacks {
                0 => 0,
                n if self.quic => 4 * u32::from(n),
                n => 4 + 8 * u32::from(n),
            };
            12 * u32::from(self.timestamps) + sack
        };
        let headers = u32::from(self.transport_header) + u32::from(self.ip_header);
        let size = u64::from(seg.len) + u64::from(headers + options);
        size.min(u64::from(u16::MAX)) as u16
    }

    /// Delay of the peer's acknowledgements that is part of a time-out. Only QUIC's peers announce it
    /// (`max_ack_delay`, RFC 9000 section 18.2).
    #[inline]
    pub(crate) fn announced_delay(&self) -> Dur {
        if self.quic { self.ack_delay } else { Dur::ZERO }
    }

    /// Whether SYNs offer window scaling (RFC 7323 section 2.2).
    pub fn offers_scaling(&self) -> bool {
        self.window_scaling || self.recv_buffer > 0xffff
    }

    /// ns-2's switches, if ns-2's sender is in use.
    #[inline]
    pub(crate) fn ns2_sender(&self) -> Option<Ns2> {
        match self.algorithm {
            Algorithm::Reno | Algorithm::NewReno if !self.sack => self.ns2,
            Algorithm::Vegas => Some(self.ns2.unwrap_or(Ns2 {
                precision_reduce: true,
                rfc2988: true,
                timerfix: true,
                delay_growth: false,
            })),
            _ => None,
        }
    }

    /// Whether a SYN is exchanged. ns-2's Vegas overrides `output` and sends none.
    pub(crate) fn handshake(&self) -> bool {
        self.handshake && !(self.algorithm == Algorithm::Vegas && self.ns2.is_some())
    }

    /// Whether segments carry the stamps from which one-way delays are measured.
    #[inline]
    pub(crate) fn stamps(&self) -> bool {
        matches!(self.algorithm, Algorithm::Ledbat | Algorithm::Lp)
    }

    /// Clamps the segment size to its range and makes the receive window non-zero, because nothing can be sent into a
    /// zero window.
    pub(crate) fn usable(self: Arc<Config>) -> Arc<Config> {
        let (mss, recv_buffer) = (self.mss.clamp(1, 65_000), self.recv_buffer.max(1));
        if (mss, recv_buffer) == (self.mss, self.recv_buffer) {
            return self;
        }
        Arc::new(Config {
            mss,
            recv_buffer,
            ..Config::clone(&self)
        })
    }

    /// Segment size in bytes. Call it on a [usable](Self::usable) configuration.
    #[inline]
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Whether segments carry RFC 7323 timestamps. Receive-window tuning measures RTTs with them even if the option
    /// takes no bytes on the wire.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        (self.timestamps | self.recv_tuning) && !self.stamps()
    }

    /// Whether acknowledgements carry an RFC 7323 timestamp echo (TSecr). With one-way delay measurement the same
    /// field of a simulated segment holds the delays.
    #[inline]
    pub(crate) fn echoes(&self) -> bool {
        self.timestamps && !self.stamps()
    }

    /// Whether the receive window is tuned. Tuning needs the stamp field, which one-way delay measurement uses for
    /// another purpose.
    #[inline]
    pub(crate) fn is_tuned(&self) -> bool {
        self.recv_tuning && !self.stamps()
    }

    /// The receive window at the start of a connection.
    #[inline]
    pub(crate) fn first_window(&self) -> u32 {
        if self.is_tuned() {
            self.recv_buffer.min(FIRST_WINDOW)
        } else {
            self.recv_buffer
        }
    }

    /// The initial congestion window in bytes.
    pub(crate) fn initial_cwnd(&self) -> f64 {
        f64::from(self.initial_window.max(1)) * f64::from(self.mss())
    }

    /// The sender's own window limit ([`Config::send_window`]) in bytes.
    pub(crate) fn window_cap(&self) -> f64 {
        self.send_window.map_or(f64::INFINITY, |w| {
            f64::from(w.max(1)) * f64::from(self.mss())
        })
    }
}
