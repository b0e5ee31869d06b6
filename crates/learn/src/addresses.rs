//! What addresses tell.

use std::net::IpAddr;

use swell_capture::{Packet, Transport};

/// The upper bits of an IPv4-mapped address (RFC 4291 section 2.5.5.2).
pub(crate) const MAPPED: u128 = 0xffff_0000_0000;

/// An address as 128 bits; IPv4 as IPv4-mapped IPv6 (RFC 4291 section 2.5.5.2).
pub(crate) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(a) => MAPPED | u128::from(a.to_bits()),
        IpAddr::V6(a) => a.to_bits(),
    }
}

/// Addresses that are never routed between sites (RFC 1918, RFC 4193, link-local).
pub(crate) fn private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => a.is_private() || a.is_link_local(),
        IpAddr::V6(a) => a.is_unique_local() || a.is_unicast_link_local(),
    }
}

/// Whether source and destination of a packet are addresses of groups, which are on no side. TCP has none of them.
pub(crate) fn groups(p: &Packet) -> [bool; 2] {
    let tcp = matches!(p.transport, Transport::Tcp(_));
    // Nobody sends from a broadcast address, and what is sent to one goes to all stations.
    let to_all = p.stations[1] == 0 || p.stations[1] >> 40 & 1 == 1;
    let broadcast = to_all && matches!(p.dst, IpAddr::V4(a) if a.octets()[3] == 255);
    [group(p.src), group(p.dst) || broadcast].map(|of_group| of_group && !tcp)
}

/// Multicast addresses, and the broadcast address of the own network. An IPv4 address that ends in 255 may be a broadcast,
/// too.
fn group(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => a.is_multicast() || a.is_broadcast(),
        IpAddr::V6(a) => a.is_multicast(),
    }
}

#[cfg(test)]
mod tests {
    use swell_capture::Tcp;

    use super::*;

    /// Private and group addresses.
    #[test]
    fn addresses_are_told_apart() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for text in [
            "10.1.2.3",
            "172.16.0.1",
            "192.168.9.9",
            "169.254.1.1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(private(ip(text)), "{text}");
        }
        for text in ["8.8.8.8", "172.32.0.1", "2001:db8::1"] {
            assert!(!private(ip(text)), "{text}");
        }
        for text in ["224.0.0.1", "255.255.255.255", "ff02::1"] {
            assert!(group(ip(text)), "{text}");
        }
        for text in ["10.0.0.254", "8.8.8.8", "fe80::1"] {
            assert!(!group(ip(text)), "{text}");
        }
        // Many a host's address ends in 255 in a network of more than 256.
        let mut packet = Packet {
            src: ip("10.0.0.254"),
            dst: ip("10.0.0.255"),
            ..Packet::default()
        };
        assert_eq!(groups(&packet), [false, true]);
        packet.stations = [0x0200_0000_0001, 0xffff_ffff_ffff];
        assert_eq!(groups(&packet), [false, true]);
        packet.stations[1] = 0x0200_0000_0002;
        assert_eq!(groups(&packet), [false, false]);
        let answer = Packet {
            src: packet.dst,
            dst: packet.src,
            ..Packet::default()
        };
        assert_eq!(groups(&answer), [false, false]);
        packet.stations = [0; 2];
        packet.transport = Transport::Tcp(Tcp::default());
        assert_eq!(groups(&packet), [false, false]);
        assert_eq!(bits(ip("1.2.3.4")), bits(ip("::ffff:1.2.3.4")));
    }
}
