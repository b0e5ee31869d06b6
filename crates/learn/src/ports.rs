//! Table of application classes by server port.
//!
//! Ports follow the IANA Service Name and Transport Protocol Port Number Registry. A few are in use
//! without registration (3128 for web proxies, 1935 for RTMP).

/// An application class.
pub(crate) struct ClassRow {
    pub(crate) name: &'static str,
    pub(crate) udp: bool,
    pub(crate) ports: &'static [u16],
}

const fn tcp(name: &'static str, ports: &'static [u16]) -> ClassRow {
    ClassRow {
        name,
        udp: false,
        ports,
    }
}
const fn udp(name: &'static str, ports: &'static [u16]) -> ClassRow {
    ClassRow {
        name,
        udp: true,
        ports,
    }
}

/// All classes, in the order in which models list them. The last class of each transport is the default.
pub(crate) const CLASSES: &[ClassRow] = &[
    tcp("http", &[80, 3128, 8000, 8008, 8080, 8081, 8888]),
    tcp("https", &[443, 8443]),
    tcp("mail", &[25, 110, 143, 465, 587, 993, 995]),
    tcp("ssh", &[22]),
    tcp("ftp", &[20, 21, 989, 990]),
    tcp("dns-tcp", &[53, 853]),
    tcp("file", &[139, 445, 548, 873, 2049]),
    tcp("remote", &[23, 3389, 5900, 5901]),
    tcp("chat", &[1863, 5050, 5190, 5222, 5223, 5228, 6667, 6697]),
    tcp("media", &[554, 1755, 1935]),
    tcp(
        "p2p",
        &[
            1214, 4662, 6346, 6347, 6881, 6882, 6883, 6884, 6885, 6886, 6887, 6888, 6889,
        ],
    ),
    tcp("database", &[1433, 1521, 3306, 5432, 6379, 9042, 27017]),
    tcp("other-tcp", &[]),
    udp("dns", &[53]),
    udp("quic", &[443]),
    udp("ntp", &[123]),
    udp("discovery", &[137, 138, 1900, 3702, 5353, 5355, 17500]),
    udp("dhcp", &[67, 68, 546, 547]),
    udp("voice", &[3478, 3479, 5004, 5005, 5060, 5061]),
    udp(
        "p2p-udp",
        &[
            4665, 4672, 6346, 6347, 6881, 6882, 6883, 6884, 6885, 6886, 6887, 6888, 6889,
        ],
    ),
    udp("vpn", &[500, 1194, 4500, 51820]),
    udp("management", &[161, 162, 514]),
    udp("other-udp", &[]),
];

/// A server port that maps to the class: its first port. For the default class of a transport, and for an
/// unknown name, it returns a port that belongs to no class.
pub fn server_port(class: &str) -> u16 {
    let row = CLASSES.iter().find(|c| c.name == class);
    // 9 is discard (RFC 863): below 1024, so that it looks like a server port.
    row.and_then(|c| c.ports.first()).copied().unwrap_or(9)
}

/// The class of a server port, or `None` if only the default class fits.
fn known(is_udp: bool, port: u16) -> Option<u8> {
    let i = CLASSES
        .iter()
        .position(|c| c.udp == is_udp && c.ports.contains(&port))?;
    u8::try_from(i).ok()
}

/// The class of a flow to `server_port` (index into [`CLASSES`]). FTP data connections come *from* port 20
/// (RFC 959 section 3.2).
pub(crate) fn class(is_udp: bool, client_port: u16, server_port: u16) -> u8 {
    let rest = || {
        let i = CLASSES
            .iter()
            .position(|c| c.udp == is_udp && c.ports.is_empty());
        i.unwrap_or(0) as u8
    };
    known(is_udp, server_port)
        .or_else(|| (client_port == 20).then(|| known(is_udp, 20)).flatten())
        .unwrap_or_else(rest)
}

/// Whether a class (index into [`CLASSES`]) is QUIC.
pub(crate) fn quic(class: u8) -> bool {
    CLASSES
        .get(usize::from(class))
        .is_some_and(|row| row.name == "quic")
}

/// Ports that clients of trusted hosts' services bind, such as those of NFS (`bindresvport(3)`).
const BOUND: std::ops::Range<u16> = 600..1_024;
/// Registered ports below the dynamic ranges in use (RFC 6335; Linux's begins at 32768).
const REGISTERED: std::ops::Range<u16> = 1_024..32_768;

/// Whether the first of two ports looks like the server's. A port in the table wins over one that is not.
/// Otherwise a system port (below 1024, RFC 6335) wins, unless it may be that of a client of a registered port. Of a
/// registered port and one of a dynamic range, the former wins for TCP, of which somebody listens. `None` if no test decides.
pub(crate) fn server_first(is_udp: bool, a: u16, b: u16) -> Option<bool> {
    let system = |port: u16, other: u16| {
        port < 1024 && !(BOUND.contains(&port) && REGISTERED.contains(&other))
    };
    let registered =
        |port: u16, other: u16| !is_udp && REGISTERED.contains(&port) && other >= REGISTERED.end;
    for test in [
        known(is_udp, a).is_some().cmp(&known(is_udp, b).is_some()),
        system(a, b).cmp(&system(b, a)),
        registered(a, b).cmp(&registered(b, a)),
    ] {
        match test {
            std::cmp::Ordering::Greater => return Some(true),
            std::cmp::Ordering::Less => return Some(false),
            std::cmp::Ordering::Equal => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_server_port() {
        let name = |u, c, s| CLASSES[class(u, c, s) as usize].name;
        assert_eq!(name(false, 50_000, 443), "https");
        assert_eq!(name(true, 50_000, 443), "quic");
        assert_eq!(name(false, 50_000, 50_001), "other-tcp");
        assert_eq!(name(true, 50_000, 50_001), "other-udp");
        assert_eq!(name(false, 20, 50_001), "ftp");
        assert_eq!(name(false, 443, 50_001), "other-tcp");
    }

    #[test]
    fn servers_look_like_servers() {
        assert_eq!(server_first(true, 53, 40_000), Some(true));
        assert_eq!(server_first(false, 40_000, 700), Some(false));
        assert_eq!(server_first(false, 8080, 700), Some(true));
        assert_eq!(server_first(true, 40_000, 40_001), None);
        // A client of NFS: the first packet decides.
        assert_eq!(server_first(true, 800, 2_049), None);
        assert_eq!(server_first(true, 2_049, 800), None);
        assert_eq!(server_first(true, 5_000, 514), Some(false));
        // Somebody listens at the registered one. Peers of UDP may have any.
        assert_eq!(server_first(false, 5_001, 40_000), Some(true));
        assert_eq!(server_first(false, 40_000, 5_001), Some(false));
        assert_eq!(server_first(false, 5_001, 5_002), None);
        assert_eq!(server_first(true, 5_001, 40_000), None);
    }

    #[test]
    fn no_port_is_in_two_classes() {
        for (i, a) in CLASSES.iter().enumerate() {
            for b in &CLASSES[i + 1..] {
                assert!(a.udp != b.udp || a.ports.iter().all(|p| !b.ports.contains(p)));
            }
        }
    }
}
