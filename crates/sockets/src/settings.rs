//! The part of a TCP configuration that a kernel socket can have.

use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};
use rustix::net::sockopt;
use swell_base::{Code, Warning};
use swell_tcp::{Config, Jitter};

use swell_host::sys::tcp as sys;

/// Bytes of the timestamp option in a segment's header (RFC 7323, padded). `TCP_MAXSEG` includes them.
const TIMESTAMPS: u32 = 12;
/// The smallest segment size that the kernel accepts (`TCP_MIN_MSS` in `include/net/tcp.h`).
const LEAST_SEGMENT: u32 = 88;
/// The kernel does not clamp a window below half of `SOCK_MIN_RCVBUF` (`include/net/sock.h`). This value is above
/// that on every architecture.
const LEAST_WINDOW: u32 = 2304;
/// Default maximum of `tcp_rmem`, and the window of the `linux` profile. Automatic tuning stays on for windows of at
/// least this size.
const TUNED: u32 = 6 << 20;

/// Options of a connection's sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// The kernel's name of the congestion control; `None` means the namespace's default.
    pub congestion: Option<&'static str>,
    pub nodelay: bool,
    /// Payload of a full segment.
    pub mss: u32,
    pub timestamps: bool,
    /// Cap on the receive window; `None` means automatic tuning.
    pub window: Option<u32>,
    pub syn_retries: u8,
}

impl Settings {
    /// The settings of `config` that sockets can have, and warnings that name the others.
    pub fn of(config: &Config) -> (Settings, Vec<Warning>) {
        let mut warnings = Vec::new();
        let congestion = config.algorithm.module();
        if congestion.is_none() {
            warnings.push(Warning::warning(
                Code::CongestionControlNotInKernel,
                format!(
                    "no kernel has {:?}: connections use the congestion control that their \
                     namespace has by default",
                    config.algorithm
                ),
            ));
        }
        let fixed = fixed(config);
        if !fixed.is_empty() {
            warnings.push(Warning::warning(
                Code::TcpSettingsNotApplied,
                format!(
                    "a kernel socket has no setting for {}; the kernel's own behaviour is in effect",
                    fixed.join(", ")
                ),
            ));
        }
        let settings = Settings {
            congestion,
            nodelay: !config.nagle,
            mss: config.mss,
            timestamps: config.timestamps,
            window: (config.recv_buffer < TUNED).then_some(config.recv_buffer),
            syn_retries: config.syn_retries,
        };
        (settings, warnings)
    }

    /// Sets the options that apply before a socket is connected or listens. An accepted socket inherits them from the
    /// listener, except the congestion control.
    pub fn apply(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.choose(fd)?;
        sockopt::set_tcp_nodelay(fd, self.nodelay)?;
        sys::set_syn_retries(fd, self.syn_retries.clamp(1, 127))?;
        set_segment(fd, self.mss, self.timestamps)?;
        match self.window {
            Some(bytes) => cap_window(fd, bytes),
            None => Ok(()),
        }
    }

    /// Sets the congestion control. Accepted sockets need it too: the route's setting overrides what they inherit
    /// (`tcp_ca_openreq_child` in `net/ipv4/tcp_minisocks.c`).
    pub fn choose(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let Some(name) = self.congestion else {
            return Ok(());
        };
        // If the module is missing, `check` has already warned.
        match sockopt::set_tcp_congestion(fd, name) {
            Err(Errno::NOENT | Errno::PERM) | Ok(()) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Warns if the socket cannot have the congestion control.
    pub fn check(&self, fd: BorrowedFd<'_>) -> Option<Warning> {
        let name = self.congestion?;
        let error = sockopt::set_tcp_congestion(fd, name).err()?;
        let instead = sockopt::tcp_congestion(fd).unwrap_or_else(|_| "the default".into());
        Some(Warning::warning(
            Code::CongestionControlMissing,
            format!(
                "the kernel does not grant congestion control `{name}` ({error}) and uses {instead}: \
                 `modprobe tcp_{name}`, or add it to net.ipv4.tcp_allowed_congestion_control"
            ),
        ))
    }
}

/// Limits full segments to `payload` bytes.
pub(super) fn set_segment(fd: BorrowedFd<'_>, payload: u32, timestamps: bool) -> Result<()> {
    let options = if timestamps { TIMESTAMPS } else { 0 };
    let bytes = payload.saturating_add(options).clamp(LEAST_SEGMENT, 0x7fff);
    sys::set_max_segment(fd, bytes)
}

/// Caps the receive window. Setting the buffer size stops automatic tuning, which would raise the clamp
/// (`tcp_rcv_space_adjust` in `net/ipv4/tcp_input.c`).
pub(super) fn cap_window(fd: BorrowedFd<'_>, bytes: u32) -> Result<()> {
    let bytes = bytes.max(LEAST_WINDOW);
    // Exceeding `net.core.rmem_max` needs a privilege; the clamp holds in any case.
    if sockopt::set_socket_recv_buffer_size_force(fd, bytes as usize).is_err() {
        sockopt::set_socket_recv_buffer_size(fd, bytes as usize)?;
    }
    sys::set_window_clamp(fd, bytes)
}

/// Caps the window again after a read. The kernel raises the clamp to the buffer size whenever its estimate of the
/// payload share improves (`tcp_measure_rcv_mss` in `net/ipv4/tcp_input.c`).
pub(super) fn renew_cap(fd: BorrowedFd<'_>, bytes: u32) -> Result<()> {
    sys::set_window_clamp(fd, bytes.max(LEAST_WINDOW))
}

/// Names of the settings in which `config` differs from the kernel's defaults and which are not socket options.
fn fixed(config: &Config) -> Vec<&'static str> {
    let kernel = Config::linux();
    macro_rules! differing {
        ($($field:ident),+) => {
            [$((config.$field != kernel.$field).then_some(stringify!($field))),+]
        };
    }
    let fields = differing!(
        ns2,
        ecn,
        sack,
        timestamps,
        initial_window,
        initial_ssthresh,
        send_window,
        min_rto,
        max_rto,
        initial_rto,
        min_rto_is_variance,
        tick,
        rtt_every_ack,
        retries,
        dup_threshold,
        limited_transmit,
        prr,
        rack_tlp,
        frto,
        dsack,
        syn_linear,
        hystart,
        byte_counting,
        window_validation,
        idle_restart,
        loss_base,
        delayed_ack,
        ack_every,
        ack_delay,
        quick_acks,
        ack_filling,
        handshake,
        packets
    );
    let jitter = matches!(config.jitter, Jitter::UpTo(_)).then_some("jitter");
    fields.into_iter().flatten().chain(jitter).collect()
}
