//! Addresses for hosts.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Number of addresses in 10.0.0.0/8, without the first and the last.
const LEFT: u32 = (1 << 24) - 2;
/// Number of addresses in 198.18.0.0/15, without the first and the last.
const RIGHT: u32 = (1 << 17) - 2;
/// Number of addresses in 100.64.0.0/10, without the first and the last.
const BEYOND: u32 = (1 << 22) - 2;

/// Known hosts, numbered in order of first appearance, and their addresses. None of these addresses is in public use,
/// whatever trace a background was learnt from.
///
/// Hosts on the left of the bottleneck are in 10.0.0.0/8 (RFC 1918). Hosts on the right are in 198.18.0.0/15, which is
/// reserved for benchmarks (RFC 2544), and from the 131 071st on in 100.64.0.0/10 (RFC 6598). IPv6 addresses are
/// in fd00::/8 (RFC 4193) and 2001:2::/48 (RFC 5180). Addresses repeat after 16 million hosts on the left or 4 million
/// on the right.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Left and right, by workload and key.
    numbers: [BTreeMap<(u32, u64), u32>; 2],
    /// Number of additional hosts without a key, left and right.
    nameless: [u32; 2],
}

impl Hosts {
    /// The number of a workload's host, assigned at its first appearance. An access path without a key (0) gets a new
    /// number each time.
    pub fn number(&mut self, right: bool, workload: u32, key: u64) -> u32 {
        let side = usize::from(right);
        let next = self.nameless[side] + self.numbers[side].len() as u32;
        if key == 0 {
            self.nameless[side] += 1;
            return next;
        }
        *self.numbers[side].entry((workload, key)).or_insert(next)
    }
}

/// The networks of all hosts on the left, of IPv4 and IPv6, with the lengths of their prefixes.
pub(crate) const LEFT_NETWORKS: [(IpAddr, u32); 2] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0)), 8),
];

/// The address of a host by its number.
pub(crate) fn address(right: bool, number: u32, ipv6: bool) -> IpAddr {
    match (ipv6, right) {
        (true, false) => IpAddr::V6(Ipv6Addr::from_bits(
            (0xfd00 << 112) + u128::from(number) + 1,
        )),
        (true, true) => IpAddr::V6(Ipv6Addr::from_bits(
            (0x2001_0002 << 96) + u128::from(number) + 1,
        )),
        (false, false) => v4(0x0a00_0001, number % LEFT),
        (false, true) if number < RIGHT => v4(0xc612_0001, number),
        (false, true) => v4(0x6440_0001, (number - RIGHT) % BEYOND),
    }
}

fn v4(base: u32, number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(base + number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_equal_hosts_and_no_key_is_nobody_else() {
        let mut hosts = Hosts::default();
        let a = hosts.number(false, 0, 7);
        let nobody = [hosts.number(false, 0, 0), hosts.number(false, 0, 0)];
        let b = hosts.number(false, 0, 8);
        let other = hosts.number(false, 1, 7);
        assert_eq!(hosts.number(false, 0, 7), a);
        let mut all = vec![a, b, other, nobody[0], nobody[1]];
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        assert_eq!(hosts.number(true, 0, 7), 0, "the right counts for itself");
    }

    #[test]
    fn addresses_stay_in_their_blocks() {
        let text = |right, number, ipv6| address(right, number, ipv6).to_string();
        assert_eq!(text(false, 0, false), "10.0.0.1");
        assert_eq!(text(false, LEFT - 1, false), "10.255.255.254");
        assert_eq!(text(false, LEFT, false), "10.0.0.1");
        assert_eq!(text(true, 0, false), "198.18.0.1");
        assert_eq!(text(true, RIGHT - 1, false), "198.19.255.254");
        assert_eq!(text(true, RIGHT, false), "100.64.0.1");
        assert_eq!(text(true, RIGHT + BEYOND - 1, false), "100.127.255.254");
        assert_eq!(text(true, u32::MAX, false).split('.').next(), Some("100"));
        assert_eq!(text(false, 1, true), "fd00::2");
        assert_eq!(text(true, 1, true), "2001:2::2");
    }
}
