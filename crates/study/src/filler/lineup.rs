//! The transports that filler is tried over. One more is one row.

use swell_tcp::{Algorithm, Config};

/// A transport for filler.
#[derive(Clone, Copy, Debug)]
pub struct FillerKind {
    /// As in tables.
    pub name: &'static str,
    /// As in legends.
    pub label: &'static str,
    config: fn() -> Config,
}

impl FillerKind {
    /// The paper's.
    pub fn paper() -> &'static FillerKind {
        &FILLERS[0]
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static FillerKind> {
        FILLERS.iter().find(|f| f.name == name)
    }

    /// The configuration of both ends.
    pub fn config(&self) -> Config {
        (self.config)()
    }
}

/// Every transport, the paper's first.
pub const FILLERS: &[FillerKind] = &[
    FillerKind {
        name: "sack",
        label: "SACK (the paper's)",
        config: sack,
    },
    FillerKind {
        name: "cubic",
        label: "CUBIC",
        config: || linux(Algorithm::Cubic),
    },
    FillerKind {
        name: "bbr",
        label: "BBR",
        config: || linux(Algorithm::Bbr),
    },
    FillerKind {
        name: "vegas",
        label: "Vegas",
        config: || linux(Algorithm::Vegas),
    },
    FillerKind {
        name: "ledbat",
        label: "LEDBAT",
        config: || linux(Algorithm::Ledbat),
    },
    FillerKind {
        name: "ledbat++",
        label: "LEDBAT++",
        config: || linux(Algorithm::LedbatPlusPlus),
    },
    FillerKind {
        name: "tcp-lp",
        label: "TCP-LP",
        config: || linux(Algorithm::Lp),
    },
    FillerKind {
        name: "nice",
        label: "TCP Nice",
        config: || linux(Algorithm::Nice),
    },
];

/// The paper's: selective and delayed acknowledgements, a window of 20 000 packets of 1000 bytes, as
/// ns-2 runs it.
fn sack() -> Config {
    Config {
        // 1000 bytes on the wire, headers included.
        mss: 960,
        sack: true,
        delayed_ack: true,
        send_window: Some(20_000),
        initial_ssthresh: Some(20_000),
        recv_buffer: 20_000 * 1000,
        packets: false,
        ..Config::ns2_modern()
    }
}

/// Linux with another congestion control, in packets of the same size.
fn linux(algorithm: Algorithm) -> Config {
    Config {
        // 1000 bytes on the wire, headers and timestamps included.
        mss: 948,
        algorithm,
        recv_buffer: 20_000 * 1000,
        recv_tuning: false,
        ..Config::linux()
    }
}
