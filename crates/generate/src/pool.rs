//! Address pools of hosts.

use std::net::IpAddr;

use swell_sockets::{Prefix, PrefixError};

/// Addresses of several prefixes, numbered consecutively.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    prefixes: Vec<Prefix>,
}

impl Addresses {
    /// Parses texts like `10.1.0.0/16`.
    ///
    /// # Errors
    /// For the first text that is not a prefix.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Addresses, PrefixError> {
        let prefixes = texts.iter().map(|t| t.as_ref().parse());
        Ok(Addresses {
            prefixes: prefixes.collect::<Result<_, _>>()?,
        })
    }

    /// Whether there are no addresses.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// The prefixes.
    pub fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
    }

    /// Number of host addresses.
    pub fn hosts(&self) -> u64 {
        hosts(self.prefixes.iter())
    }

    /// The address of host `n`, modulo the number of addresses; `None` if there are none.
    pub fn host(&self, n: u64) -> Option<IpAddr> {
        nth(self.prefixes.iter(), n)
    }

    /// The address of host `n` within one address family.
    pub fn host_of(&self, n: u64, ipv6: bool) -> Option<IpAddr> {
        nth(self.prefixes.iter().filter(|p| p.is_ipv6() == ipv6), n)
    }

    /// Whether `address` is in the pool.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.prefixes.iter().any(|p| p.contains(address))
    }

    /// Whether every address of `other` is in this pool.
    pub fn covers(&self, other: &Addresses) -> bool {
        let covered = |p: &Prefix| self.prefixes.iter().any(|q| q.covers(p));
        other.prefixes.iter().all(covered)
    }

    /// The prefixes, as texts.
    pub fn texts(&self) -> Vec<String> {
        self.prefixes.iter().map(Prefix::to_string).collect()
    }
}

fn hosts<'p>(prefixes: impl Iterator<Item = &'p Prefix>) -> u64 {
    prefixes.map(Prefix::hosts).fold(0, u64::saturating_add)
}

/// The address of host `n`, modulo the number of addresses.
fn nth<'p>(prefixes: impl Iterator<Item = &'p Prefix> + Clone, n: u64) -> Option<IpAddr> {
    let mut left = n % hosts(prefixes.clone()).max(1);
    for prefix in prefixes {
        if left < prefix.hosts() {
            return Some(prefix.host(left));
        }
        left -= prefix.hosts();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_counted_through_all_prefixes_and_go_round() {
        let pool = Addresses::parse(&["10.0.0.0/30", "fd01::/126", "10.9.9.9"]).unwrap();
        assert_eq!(pool.hosts(), 5);
        let all: Vec<String> = (0..6).map(|n| pool.host(n).unwrap().to_string()).collect();
        assert_eq!(
            all,
            [
                "10.0.0.1", "10.0.0.2", "fd01::1", "fd01::2", "10.9.9.9", "10.0.0.1"
            ]
        );
        assert_eq!(pool.host_of(2, false), Some("10.9.9.9".parse().unwrap()));
        assert_eq!(pool.host_of(3, true), Some("fd01::2".parse().unwrap()));
        assert_eq!(Addresses::default().host(3), None);
        assert!(pool.contains("10.9.9.9".parse().unwrap()));
        assert!(!pool.contains("10.9.9.8".parse().unwrap()));
    }

    #[test]
    fn what_lies_inside_is_covered() {
        let pool = Addresses::parse(&["10.0.0.0/8", "fd01::/64"]).unwrap();
        let covers = |texts: &[&str]| pool.covers(&Addresses::parse(texts).unwrap());
        assert!(covers(&["10.1.0.0/16", "fd01::7"]) && covers(&[]));
        assert!(!covers(&["10.1.0.0/16", "11.0.0.1"]) && !covers(&["0.0.0.0/0"]));
        assert!(!covers(&["fd00::/16"]));
    }
}
