//! What a TCP does, as numbers and switches.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Flags, Segment};

/// The first window: the whole segments of 1460 bytes that half of `tcp_rmem`'s default of 128 KiB holds
/// (`tcp_select_initial_window`).
pub(crate) const FIRST_WINDOW: u32 = 44 * 1460;
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

/// From what the slow-start threshold is computed when a loss is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossBase {
    /// The congestion window, capped by [`Config::send_window`]: Linux (`tcp_reno_ssthresh`,
    /// `cubictcp_recalc_ssthresh`) and ns-2 (`TcpAgent::slowdown`, `halfwin`).
    Window,
    /// FlightSize, RFC 5681 equation 4.
    Flight,
}

/// What happens to the congestion window when nothing was sent for longer than the RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdleRestart {
    /// It stays.
    Off,
    /// It falls to the initial window at once (RFC 5681 section 4.1; ns-2 `slow_start_restart_`).
    Reset,
    /// It halves once per idle RTO, not below the initial window (RFC 2861; Linux
    /// `tcp_cwnd_restart`, on by `tcp_slow_start_after_idle`).
    Decay,
}

/// What tells ns-2's TCP of about 2000 from that of 2.35 and has no other place in [`Config`]. The
/// names are ns-2's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ns2 {
    /// A halved window may be a fraction (`precisionReduce_`). The threshold is whole always.
    pub precision_reduce: bool,
    /// The least RTO is applied before back-off, not after, and back-off goes on up to
    /// [`Config::max_rto`] (`rfc2988_`).
    pub rfc2988: bool,
    /// An acknowledgement starts the timer after the RTT estimate is brought up to date, not before
    /// (`timerfix_`).
    pub timerfix: bool,
    /// Vegas begins with one packet, and takes the initial window when the second is acknowledged
    /// (`delay_growth_`). Other senders do this by [`Config::handshake`].
    pub delay_growth: bool,
}

/// What TCP Vegas wants queued, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VegasConfig {
    /// Below this many the window grows (ns-2 `v_alpha_`).
    pub alpha: u16,
    /// Above this many it shrinks (`v_beta_`).
    pub beta: u16,
    /// Above this many slow start ends (`v_gamma_`).
    pub gamma: u16,
}

/// How long a host takes before data goes out onto its link: a time drawn anew at each instant at which it sends, uniform
/// from zero.
///
/// Without any, who finds a full drop-tail queue full depends on phases, which round numbers lock for a whole run: S. Floyd,
/// V. Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992, whose remedy this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// None, as ns-2's agents with their `overhead_` of zero.
    Off,
    /// Up to what the path's slowest link takes for a full packet, but no more than the sender has measured of queueing:
    /// the smoothed round-trip time less the shortest, and less its own transmission. An idle path is exact, and what finds a
    /// queue arrives no later.
    Queueing,
    /// Up to this long, always: ns-2's `overhead_`.
    UpTo(Dur),
}

/// Everything that can be chosen about an endpoint. Start from [`Config::linux`] or
/// [`Config::classic`] and change fields by struct update syntax. Values out of their range are
/// brought into it where they are used; none can make an endpoint panic.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload bytes of a full segment, 1 to 65 000. `linux`: 1448, what a 1500-byte MTU leaves
    /// beside timestamps; `classic`: 1460.
    pub mss: u32,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Send as ns-2's one-way agents do, packet for packet, where there is one for `algorithm` and `sack`:
    /// `Agent/TCP/Reno`, `Newreno`, `Vegas`. They count in packets, time in ticks, go back N
    /// after a time-out and know no receive window. `None`: as the RFCs and kernels.
    pub ns2: Option<Ns2>,
    /// Thresholds of [`Algorithm::Vegas`].
    pub vegas: VegasConfig,
    /// Explicit congestion notification (RFC 3168), as if negotiated: data is sent as ECT(0), marks come
    /// back as ECE until CWR, and reduce the window as a loss would, once per window.
    pub ecn: bool,
    /// Selective acknowledgements (RFC 2018) and recovery with them (RFC 6675). Both ends must
    /// agree: options are not negotiated.
    pub sack: bool,
    /// Bytes of the IP header: 20 for IPv4, 40 for IPv6.
    pub ip_header: u16,
    /// Time stamps (RFC 7323) in milliseconds: 12 bytes on every segment. A segment sent more than once gives a
    /// sample of the round trip by its echo, and an echo older than the first retransmission shows that the
    /// retransmissions were not needed (RFC 4015, Linux `tcp_packet_delayed`).
    pub timestamps: bool,
    /// Take a time-out for spurious where what was never sent again is acknowledged (RFC 5682 section 3, Linux
    /// `tcp_process_loss`), and undo the reduction. Needs `sack`.
    pub frto: bool,
    /// Tell the sender of data that arrived twice (RFC 2883), and undo a reduction when all that was sent again
    /// did (RFC 3708, Linux `tcp_try_undo_dsack`). Needs `sack`.
    pub dsack: bool,
    /// Initial congestion window in segments. `linux`: 10 (RFC 6928); `classic`: 2 (ns-2
    /// `windowInit_`; RFC 2581 allowed 2, RFC 2001 said 1).
    pub initial_window: u32,
    /// Initial slow-start threshold in segments; `None` is unlimited (RFC 5681 section 3.1).
    /// ns-2 takes `window_`, 20.
    pub initial_ssthresh: Option<u32>,
    /// The sender's own limit on its window, in segments: ns-2's `window_`, 20. Duplicate
    /// acknowledgements in fast recovery inflate it as they inflate the congestion window.
    pub send_window: Option<u32>,
    /// The largest receive window in bytes; the application reads at once. `linux`: 6 MiB, long the maximum of
    /// `tcp_rmem`.
    pub recv_buffer: u32,
    /// SYNs offer window scaling (RFC 7323) however small the receive window is, as Linux's do. Otherwise they offer it
    /// where the window needs it.
    pub window_scaling: bool,
    /// The receive window begins with 64 kB and follows what arrives, as in Linux (`tcp_moderate_rcvbuf`), which
    /// acknowledges every segment while it grows. Otherwise it is `recv_buffer` from the start, as where a
    /// program sets `SO_RCVBUF`. Not with algorithms that measure one-way delays.
    pub recv_tuning: bool,
    /// Least RTO. `linux`: 200 ms (`TCP_RTO_MIN`); `classic`: 1 s (RFC 6298 section 2.4).
    pub min_rto: Dur,
    /// Largest RTO. 120 s in Linux (`TCP_RTO_MAX`), 60 s in `classic` (RFC 6298 section 2.5).
    pub max_rto: Dur,
    /// RTO before the first sample: 1 s (RFC 6298 section 2.1).
    pub initial_rto: Dur,
    /// Estimate as Linux does (`tcp_rtt_estimator`): `min_rto` bounds the variance term only, RTO = SRTT +
    /// max(min_rto, 4 RTTVAR), and the variance falls once per round trip, not with each sample. Otherwise
    /// RFC 6298, where `min_rto` bounds the RTO as a whole.
    pub min_rto_is_variance: bool,
    /// Clock tick: RTT samples and RTOs are rounded up to it. Zero: exact. BSD: 500 ms; ns-2
    /// `tcpTick_`: 10 ms, 100 ms before 2002.
    pub tick: Dur,
    /// Whether every acknowledgement of data sent once gives an RTT sample (Linux), or one
    /// segment is timed at a time (BSD, ns-2 without timestamps).
    pub rtt_every_ack: bool,
    /// Consecutive RTOs without progress until the connection is given up: 15 (Linux
    /// `tcp_retries2`).
    pub retries: u8,
    /// Retransmissions of SYN or SYN/ACK until the connection is given up: 6 (Linux
    /// `tcp_syn_retries`).
    pub syn_retries: u8,
    /// How many time-outs of a SYN do not back off, and do not count as retries: 4 (Linux `tcp_syn_linear_timeouts`);
    /// none in RFC 6298.
    pub syn_linear: u8,
    /// Duplicate acknowledgements, or segments selectively acknowledged above a hole, that mean a
    /// loss: 3 (RFC 5681 section 3.2, RFC 6675 `DupThresh`).
    pub dup_threshold: u32,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Pace sending in SACK recovery by what is delivered (PRR, RFC 9937). Otherwise the window
    /// is the threshold at once (RFC 6675 section 5).
    pub prr: bool,
    /// Leave the first slow start when trains of acknowledgements or round trips say that the path is
    /// full: HyStart, as Linux's CUBIC does. `linux`: on.
    pub hystart: bool,
    /// Find losses by time and probe the tail (RFC 8985). Needs `sack`.
    pub rack_tlp: bool,
    /// Grow by bytes acknowledged (RFC 3465 and Linux) rather than once per acknowledgement. Windows are then counted in
    /// whole segments, as Linux counts them: a reduction drops what is over.
    pub byte_counting: bool,
    /// Do not grow a window that is not used (RFC 7661; Linux `tcp_is_cwnd_limited`). ns-2 grows
    /// always.
    pub window_validation: bool,
    /// What idle time does to the window.
    pub idle_restart: IdleRestart,
    /// From what the threshold is computed at a loss.
    pub loss_base: LossBase,
    /// Delay acknowledgements (RFC 1122 section 4.2.3.2).
    pub delayed_ack: bool,
    /// Full segments after which a delayed acknowledgement goes at once: 2 (RFC 9293 section
    /// 3.8.6.3); more where the hardware or a middlebox thins them out.
    pub ack_every: u8,
    /// How long an acknowledgement may wait: 40 ms in Linux (`TCP_DELACK_MIN`; its adaptation up
    /// to 200 ms is not modelled), 100 ms in ns-2, 200 ms in BSD.
    pub ack_delay: Dur,
    /// Acknowledgements sent at once at the start of a connection: 16 in Linux
    /// (`TCP_MAX_QUICKACKS`).
    pub quick_acks: u8,
    /// Acknowledge at once what fills a part of the holes (RFC 5681 section 4.2; ns-2
    /// `RFC2581_immediate_ack_`); without, only what fills the last hole, as before RFC 2581.
    pub ack_filling: bool,
    /// SYN exchange before data. Without it both ends are connected from the start, as ns-2's
    /// one-way TCP is.
    pub handshake: bool,
    /// Hold back a short segment while data is unacknowledged (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// Each write starts a new segment: writes are packets, as in ns-2 where the application
    /// submits packets. Otherwise they are a stream.
    pub packets: bool,
    /// How long the host takes before data goes out.
    pub jitter: Jitter,
}

impl Config {
    /// Linux as it is today, with CUBIC.
    pub fn linux() -> Config {
        Config {
            mss: 1448,
            algorithm: Algorithm::Cubic,
            ns2: None,
            vegas: VegasConfig {
                alpha: 1,
                beta: 3,
                gamma: 1,
            },
            ecn: false,
            sack: true,
            ip_header: 20,
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

    /// What simulations around the year 2000 ran: Reno, no SACK, no timestamps.
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

    /// ns-2 of 1999 to 2000: one-way TCP with the defaults of that time. Reno, every segment a packet
    /// that the application submitted; packets of 1500 bytes and acknowledgements of 40.
    /// `docs/tcp.md` has the list with dates.
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
            min_rto: Dur::ZERO, // the floor is two ticks
            max_rto: Dur::from_secs(64),
            initial_rto: Dur::from_secs(6),
            tick: Dur::from_millis(100),
            retries: u8::MAX,
            ack_filling: false,
            quick_acks: 1, // `SYN_immediate_ack_`: the first packet stands for the SYN
            handshake: false,
            packets: true,
            jitter: Jitter::Off,
            ..Config::classic()
        }
    }

    /// ns-2.35 as released, one-way TCP: as [`ns2_era`](Self::ns2_era) otherwise. The first packet is a
    /// SYN of 40 bytes (`syn_`), so `handshake` is on; Vegas has none.
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

    /// Network-layer bytes of `seg`: IP header, 20 for TCP, options, payload. Largest 65 535.
    #[inline(always)]
    pub fn wire_size(&self, seg: &Segment) -> u16 {
        let options = if seg.flags.has(Flags::SYN) {
            // MSS 4, SACK permitted 2 (RFC 2018), timestamps 10 and window scale 3 (RFC 7323),
            // padded to words.
            let scale = 3 * u32::from(self.offers_scaling());
            let sum = 4 + 2 * u32::from(self.sack) + 10 * u32::from(self.timestamps) + scale;
            sum.next_multiple_of(4)
        } else {
            // Two bytes of padding before each option, as every stack aligns them.
            let sack = match seg.sacks {
                0 => 0,
                n => 4 + 8 * u32::from(n),
            };
            12 * u32::from(self.timestamps) + sack
        };
        let size = u64::from(seg.len) + u64::from(20 + u32::from(self.ip_header) + options);
        size.min(u64::from(u16::MAX)) as u16
    }

    /// Whether SYNs offer window scaling (RFC 7323 section 2.2).
    pub fn offers_scaling(&self) -> bool {
        self.window_scaling || self.recv_buffer > 0xffff
    }

    /// The switches of ns-2's sender where it is in use.
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

    /// Whether a SYN is exchanged. ns-2's Vegas has its own `output`, which sends none.
    pub(crate) fn handshake(&self) -> bool {
        self.handshake && !(self.algorithm == Algorithm::Vegas && self.ns2.is_some())
    }

    /// Whether segments carry what one-way delays are measured by.
    #[inline]
    pub(crate) fn stamps(&self) -> bool {
        matches!(self.algorithm, Algorithm::Ledbat | Algorithm::Lp)
    }

    /// The same with the segment size within its range, and a receive window that is not zero, or nothing
    /// could ever be sent.
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

    /// Of a [usable](Self::usable) configuration.
    #[inline]
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Whether segments carry the times of RFC 7323. A tuned buffer measures round trips by them even where they
    /// take no room on the wire.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        (self.timestamps | self.recv_tuning) && !self.stamps()
    }

    /// Whether acknowledgements say which segment they answer (TSecr of RFC 7323). Where one-way delays are measured, the
    /// same field of a simulated segment holds those.
    #[inline]
    pub(crate) fn echoes(&self) -> bool {
        self.timestamps && !self.stamps()
    }

    /// Whether the receive window is tuned. The stamps that this takes are used otherwise where one-way
    /// delays are measured.
    #[inline]
    pub(crate) fn is_tuned(&self) -> bool {
        self.recv_tuning && !self.stamps()
    }

    /// The receive window of a connection's beginning.
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

    /// The sender's own window limit in bytes.
    pub(crate) fn window_cap(&self) -> f64 {
        self.send_window.map_or(f64::INFINITY, |w| {
            f64::from(w.max(1)) * f64::from(self.mss())
        })
    }
}
