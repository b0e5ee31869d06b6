//! Who takes part: profiles, transports, queues and the lines of the figures, as tables. A transport
//! or a queue more is one row here, a line of a figure another.

use swell_base::QueueLimit;
use swell_path::{CoDelConfig, Discipline, FqCoDelConfig, PieConfig};
use swell_path::{RedConfig, RedThresholds, RedWeight};
use swell_tcp::{Algorithm, Config};

use super::ties::Ties;

/// The paper's advertised window, in packets (table 1).
const WINDOW: u32 = 20;
/// The paper's packet in bytes (table 1), headers included.
pub(crate) const PACKET: u32 = 1500;
/// The paper's gateway buffer in packets (table 1).
const BUFFER: u64 = 50;
/// The larger buffer of the heterogeneous case.
const LARGE_BUFFER: u64 = 1500;

/// Whose defaults everything has that the paper does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// ns-2 as it was in 1999 and 2000, when the paper was written.
    Era,
    /// ns-2.35 as released (2011).
    Modern,
    /// Linux as it is today.
    Today,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 3] = [Profile::Era, Profile::Modern, Profile::Today];

    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Era => "era",
            Profile::Modern => "modern",
            Profile::Today => "today",
        }
    }

    /// Whose defaults they are.
    pub fn label(self) -> &'static str {
        match self {
            Profile::Era => "ns-2 of 1999–2000",
            Profile::Modern => "ns-2.35",
            Profile::Today => "Linux today",
        }
    }

    /// The TCP of this profile with the paper's window.
    fn tcp(self) -> Config {
        match self {
            Profile::Era => ns2(Config::ns2_era()),
            Profile::Modern => ns2(Config::ns2_modern()),
            Profile::Today => {
                let linux = Config::linux();
                Config {
                    recv_buffer: WINDOW * linux.mss,
                    packets: true,
                    ..linux
                }
            }
        }
    }

    /// Packets that a drop-tail queue of this buffer holds. ns-2's refuses the packet that would
    /// make its limit (`DropTail::enque`: length + 1 >= qlim_).
    fn drop_tail(self, buffer: u64) -> u64 {
        match self {
            Profile::Era | Profile::Modern => buffer - 1,
            Profile::Today => buffer,
        }
    }

    /// Who comes first of packets that reach the gateway at one instant.
    fn ties(self) -> Ties {
        match self {
            Profile::Era | Profile::Modern => Ties::Ns2,
            Profile::Today => Ties::Engine,
        }
    }

    fn red(self) -> RedConfig {
        let base = match self {
            Profile::Era => RedConfig::ns2_era(),
            Profile::Modern | Profile::Today => RedConfig::ns2_modern(),
        };
        RedConfig {
            mean_packet: PACKET as u16,
            ..base
        }
    }
}

/// ns-2's `window_` is where slow start ends at first, too.
fn ns2(config: Config) -> Config {
    Config {
        send_window: Some(WINDOW),
        initial_ssthresh: Some(WINDOW),
        ..config
    }
}

/// What carries a client's packets.
#[derive(Clone, Copy, Debug)]
pub struct Transport {
    /// As in tables.
    pub name: &'static str,
    /// As in legends.
    pub label: &'static str,
    /// What it changes in the TCP of a profile; none: datagrams.
    change: Option<fn(Config) -> Config>,
}

/// Every transport.
pub const TRANSPORTS: &[Transport] = &[
    datagrams("udp", "UDP"),
    tcp("reno", "Reno", |c| Config {
        algorithm: Algorithm::Reno,
        delayed_ack: false,
        ..c
    }),
    tcp("renodelack", "Reno, delayed ACKs", |c| Config {
        algorithm: Algorithm::Reno,
        delayed_ack: true,
        ..c
    }),
    // ns-2's Vegas sends no SYN whatever the defaults (`VegasTcpAgent` ignores `syn_`); alpha 1, beta 3,
    // gamma 1 are the paper's as well as ns-2's.
    tcp("vegas", "Vegas", |c| Config {
        algorithm: Algorithm::Vegas,
        delayed_ack: false,
        handshake: false,
        ..c
    }),
    tcp("newreno", "NewReno", |c| Config {
        algorithm: Algorithm::NewReno,
        delayed_ack: false,
        ..c
    }),
    tcp("sack", "SACK", |c| Config {
        algorithm: Algorithm::NewReno,
        delayed_ack: false,
        sack: true,
        ..c
    }),
    tcp("cubic", "CUBIC", |c| Config {
        algorithm: Algorithm::Cubic,
        sack: true,
        ..c
    }),
    tcp("bbr", "BBR", |c| Config {
        algorithm: Algorithm::Bbr,
        sack: true,
        ..c
    }),
];

const fn datagrams(name: &'static str, label: &'static str) -> Transport {
    Transport {
        name,
        label,
        change: None,
    }
}

const fn tcp(name: &'static str, label: &'static str, change: fn(Config) -> Config) -> Transport {
    Transport {
        name,
        label,
        change: Some(change),
    }
}

impl Transport {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Transport> {
        TRANSPORTS.iter().find(|t| t.name == name)
    }

    /// Its TCP under a profile; none: datagrams.
    pub fn config(&self, profile: Profile) -> Option<Config> {
        self.change.map(|change| change(profile.tcp()))
    }
}

/// The gateway's queue.
#[derive(Clone, Copy, Debug)]
pub struct Gateway {
    /// As in tables.
    pub name: &'static str,
    /// As in legends.
    pub label: &'static str,
    /// Packets of buffer, as the paper counts them.
    pub buffer: u64,
    kind: Kind,
    /// None: the profile's.
    ties: Option<Ties>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    DropTail,
    Red {
        min: f64,
        max: f64,
        weight: Option<f64>,
        gentle: Option<bool>,
    },
    CoDel,
    FqCoDel,
    Pie,
}

/// Every queue.
pub const GATEWAYS: &[Gateway] = &[
    gateway("fifo", "FIFO", BUFFER, Kind::DropTail),
    gateway("red", "RED", BUFFER, red(10.0, 40.0)),
    gateway("codel", "CoDel", BUFFER, Kind::CoDel),
    gateway("fq_codel", "FQ-CoDel", BUFFER, Kind::FqCoDel),
    gateway("pie", "PIE", BUFFER, Kind::Pie),
    gateway("fifo1500", "FIFO 1500", LARGE_BUFFER, Kind::DropTail),
    gateway("red1", "RED 300/1200", LARGE_BUFFER, red(300.0, 1200.0)),
    gateway("red2", "RED 75/300", LARGE_BUFFER, red(75.0, 300.0)),
    tied("fifo-waited", "FIFO, who waited first", Ties::Waited),
    tied("fifo-fresh", "FIFO, who did not wait first", Ties::Fresh),
    weighted("red-w0.00006", 0.000_06),
    weighted("red-w0.00012", 0.000_12),
    weighted("red-w0.00024", 0.000_24),
    weighted("red-w0.0005", 0.000_5),
    weighted("red-w0.001", 0.001),
    weighted("red-w0.002", 0.002),
    weighted("red-w0.004", 0.004),
    weighted("red-w0.008", 0.008),
    weighted("red-w0.016", 0.016),
];

const fn gateway(name: &'static str, label: &'static str, buffer: u64, kind: Kind) -> Gateway {
    Gateway {
        name,
        label,
        buffer,
        kind,
        ties: None,
    }
}

/// The paper's FIFO with an order of its own among packets that arrive at one instant.
const fn tied(name: &'static str, label: &'static str, ties: Ties) -> Gateway {
    Gateway {
        ties: Some(ties),
        ..gateway(name, label, BUFFER, Kind::DropTail)
    }
}

const fn red(min: f64, max: f64) -> Kind {
    Kind::Red {
        min,
        max,
        weight: None,
        gentle: None,
    }
}

/// The paper's RED with an averaging weight of its own, not gentle.
const fn weighted(name: &'static str, weight: f64) -> Gateway {
    let kind = Kind::Red {
        min: 10.0,
        max: 40.0,
        weight: Some(weight),
        gentle: Some(false),
    };
    gateway(name, "RED", BUFFER, kind)
}

impl Gateway {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Gateway> {
        GATEWAYS.iter().find(|g| g.name == name)
    }

    /// RED's averaging weight, where it is set.
    pub fn weight(&self) -> Option<f64> {
        match self.kind {
            Kind::Red { weight, .. } => weight,
            _ => None,
        }
    }

    /// Who comes first under a profile of packets that arrive at one instant.
    pub fn ties(&self, profile: Profile) -> Ties {
        self.ties.unwrap_or(profile.ties())
    }

    /// The discipline under a profile, and how much may wait.
    pub fn discipline(&self, profile: Profile) -> (Discipline, QueueLimit) {
        let whole = QueueLimit::Packets(self.buffer);
        match self.kind {
            Kind::DropTail => (
                Discipline::Fifo,
                QueueLimit::Packets(profile.drop_tail(self.buffer)),
            ),
            Kind::Red {
                min,
                max,
                weight,
                gentle,
            } => {
                let base = profile.red();
                let config = RedConfig {
                    thresholds: RedThresholds::Packets { min, max },
                    weight: weight.map_or(base.weight, RedWeight::Fixed),
                    gentle: gentle.unwrap_or(base.gentle),
                    ..base
                };
                (Discipline::Red(config), whole)
            }
            Kind::CoDel => (Discipline::CoDel(CoDelConfig::default()), whole),
            Kind::FqCoDel => (Discipline::FqCoDel(FqCoDelConfig::default()), whole),
            Kind::Pie => (Discipline::Pie(PieConfig::default()), whole),
        }
    }
}

/// A line of the figures: a transport at a queue.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Name of the transport.
    pub transport: &'static str,
    /// Name of the queue.
    pub gateway: &'static str,
    /// In the paper's figures; the others are ours.
    pub paper: bool,
    /// Under which profiles it is run.
    pub profiles: &'static [Profile],
}

/// Every line of the homogeneous case.
pub const LINES: &[Line] = &[
    paper("udp", "fifo"),
    paper("reno", "fifo"),
    paper("renodelack", "fifo"),
    paper("vegas", "fifo"),
    paper("reno", "red"),
    paper("vegas", "red"),
    beyond("newreno", "fifo", &[Profile::Era, Profile::Modern]),
    beyond("sack", "fifo", &[Profile::Modern]),
    beyond("cubic", "fifo", &[Profile::Today]),
    beyond("bbr", "fifo", &[Profile::Today]),
    beyond("reno", "codel", &[Profile::Modern, Profile::Today]),
    beyond("reno", "fq_codel", &[Profile::Modern, Profile::Today]),
    beyond("reno", "pie", &[Profile::Modern, Profile::Today]),
    beyond("cubic", "red", &[Profile::Today]),
    beyond("cubic", "codel", &[Profile::Today]),
    beyond("cubic", "fq_codel", &[Profile::Today]),
    beyond("cubic", "pie", &[Profile::Today]),
    beyond("bbr", "fq_codel", &[Profile::Today]),
];

const fn paper(transport: &'static str, gateway: &'static str) -> Line {
    Line {
        transport,
        gateway,
        paper: true,
        profiles: &Profile::ALL,
    }
}

const fn beyond(
    transport: &'static str,
    gateway: &'static str,
    profiles: &'static [Profile],
) -> Line {
    Line {
        transport,
        gateway,
        paper: false,
        profiles,
    }
}

impl Line {
    /// As in legends.
    pub fn label(&self) -> String {
        label(self.transport, self.gateway)
    }

    /// Whether it is run under a profile.
    pub fn runs_under(&self, profile: Profile) -> bool {
        self.profiles.contains(&profile)
    }
}

/// A transport at a queue as in legends: the queue is named where it is not the FIFO.
pub(super) fn label(transport: &str, gateway: &str) -> String {
    let name = Transport::named(transport).map_or(transport, |t| t.label);
    if gateway == "fifo" {
        return name.into();
    }
    let queue = Gateway::named(gateway).map_or(gateway, |g| g.label);
    format!("{name}/{queue}")
}

/// Queues of the heterogeneous case.
pub const MIXED_GATEWAYS: [&str; 4] = ["fifo", "fifo1500", "red1", "red2"];
/// What the clients added to the Reno clients use.
pub const ADDED_TRANSPORTS: [&str; 2] = ["reno", "vegas"];
/// How many clients are added.
pub const ADDED: [u16; 5] = [5, 10, 20, 30, 40];
/// Reno clients that others are added to.
pub const BACKGROUND: u16 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ftp_of_every_profile_fills_the_papers_packet() {
        for transport in TRANSPORTS {
            for profile in Profile::ALL {
                let Some(config) = transport.config(profile) else {
                    continue;
                };
                let segment = swell_base::Segment {
                    len: config.mss,
                    ..swell_base::Segment::default()
                };
                let size = config.wire_size(&segment);
                assert_eq!(u32::from(size), PACKET, "{} {profile:?}", transport.name);
            }
        }
    }

    #[test]
    fn names_are_unique() {
        for (i, a) in TRANSPORTS.iter().enumerate() {
            assert!(
                TRANSPORTS[..i].iter().all(|b| b.name != a.name),
                "{}",
                a.name
            );
        }
        for (i, a) in GATEWAYS.iter().enumerate() {
            assert!(GATEWAYS[..i].iter().all(|b| b.name != a.name), "{}", a.name);
        }
        for (i, a) in LINES.iter().enumerate() {
            let same = |b: &Line| (b.transport, b.gateway) == (a.transport, a.gateway);
            assert!(!LINES[..i].iter().any(same), "{}", a.label());
            assert!(Gateway::named(a.gateway).is_some(), "{}", a.gateway);
            assert!(Transport::named(a.transport).is_some(), "{}", a.transport);
        }
        assert!(MIXED_GATEWAYS.iter().all(|g| Gateway::named(g).is_some()));
    }
}
