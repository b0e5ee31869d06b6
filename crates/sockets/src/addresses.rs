//! Assignment of addresses to the hosts of a workload.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;
use swell_base::{Side, derived};
use swell_workload::Access;

/// An address prefix such as `10.1.0.0/16` or `fd01::/64`, whose hosts are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix(IpNet);

/// The reason why a text is not a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Not an address.
    #[error("`{0}` is not an address: a prefix is written like 10.1.0.0/16 or fd01::/64")]
    Address(String),
    /// Not a length.
    #[error("`/{0}` is not a prefix length: it is 0 to 32 for IPv4 and 0 to 128 for IPv6")]
    Length(String),
}

impl Prefix {
    /// The addresses that share the first `len` bits of `address`. `None` if the address has fewer bits.
    pub fn new(address: IpAddr, len: u8) -> Option<Prefix> {
        IpNet::new(address, len).ok().map(Prefix::from)
    }

    /// Whether it is an IPv6 prefix.
    pub fn is_ipv6(&self) -> bool {
        self.0.addr().is_ipv6()
    }

    /// Whether `address` is in the prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Whether every address of `other` is in the prefix.
    pub fn covers(&self, other: &Prefix) -> bool {
        self.0.contains(&other.0)
    }

    /// Number of hosts, at most 2^32 - 2. The first and the last address are excluded if the prefix has others: they
    /// are the network and broadcast addresses (RFC 922) and the subnet-router anycast address (RFC 4291 section
    /// 2.6.1).
    pub fn hosts(&self) -> u64 {
        let bits = u32::from(self.0.max_prefix_len() - self.0.prefix_len());
        match bits {
            0 | 1 => 1 << bits,
            2..32 => (1 << bits) - 2,
            _ => (1 << 32) - 2,
        }
    }

    /// Address of host `n`, counted from zero; `n` wraps around.
    pub fn host(&self, n: u64) -> IpAddr {
        let hosts = self.hosts();
        let offset = n % hosts + u64::from(hosts > 2 || self.is_wide());
        match self.0.network() {
            IpAddr::V4(a) => {
                IpAddr::V4(Ipv4Addr::from_bits(a.to_bits().wrapping_add(offset as u32)))
            }
            IpAddr::V6(a) => {
                IpAddr::V6(Ipv6Addr::from_bits(a.to_bits().wrapping_add(offset.into())))
            }
        }
    }

    /// Whether the first address is excluded.
    fn is_wide(&self) -> bool {
        self.0.prefix_len() < self.0.max_prefix_len() - 1
    }
}

impl From<IpNet> for Prefix {
    fn from(net: IpNet) -> Prefix {
        Prefix(net.trunc())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;
    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let base: IpAddr = address
            .parse()
            .map_err(|_| PrefixError::Address(address.into()))?;
        let full = if base.is_ipv6() { 128 } else { 32 };
        let wrong = || PrefixError::Length(len.unwrap_or_default().into());
        let bits = len.map_or(Ok(full), |l| l.parse().map_err(|_| wrong()))?;
        Prefix::new(base, bits).ok_or_else(wrong)
    }
}

/// Notified of the address of each host before its first packet, and when the host releases it. An emulator can use
/// this to give every address its own access path. Kernel sockets apply neither the delay nor the rate nor the loss
/// of an [`Access`].
pub trait Paths: Send {
    /// From now on, `address` on `side` belongs to a host behind `access`. Called once for all connections that share
    /// the host ([`Access::key`]), with the access path of the first.
    fn taken(&mut self, side: Side, address: IpAddr, access: &Access);

    /// The last connection of that host has ended.
    fn released(&mut self, side: Side, address: IpAddr);
}

/// Workload and key: connections with the same name share a host.
pub(super) type Name = (u32, u64);

/// The addresses of one side and family, and those in use.
#[derive(Debug)]
pub(super) struct Pool {
    prefix: Prefix,
    /// Host numbers of named hosts.
    named: HashMap<Name, u64>,
    /// Number of connections, and name, by host number.
    used: HashMap<u64, (u32, Option<Name>)>,
    /// Where the search for the next unnamed host starts.
    next: u64,
    /// Number of times that a host had to share the address of another.
    pub shared: u64,
}

/// Number of addresses to try before one is shared.
const PROBES: u64 = 64;

impl Pool {
    pub fn new(prefix: Prefix) -> Pool {
        Pool {
            prefix,
            named: HashMap::new(),
            used: HashMap::new(),
            next: 0,
            shared: 0,
        }
    }

    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    pub fn address(&self, host: u64) -> IpAddr {
        self.prefix.host(host)
    }

    /// The host for a connection, and whether the host was unused before.
    ///
    /// A hash of the name gives its address. If that is taken, the next free one is used, so it also depends on the
    /// hosts in use. Unnamed hosts get the next address in turn.
    pub fn take(&mut self, name: Option<Name>) -> (u64, bool) {
        let hosts = self.prefix.hosts();
        if let Some(host) = name.and_then(|n| self.named.get(&n)) {
            let host = *host;
            self.used.entry(host).or_default().0 += 1;
            return (host, false);
        }
        let first = match name {
            Some((worker, key)) => derived(u64::from(worker) + 1, key) % hosts,
            None => self.next,
        };
        let tried = (0..PROBES.min(hosts)).map(|i| (first + i) % hosts);
        let free = { tried }.find(|h| !self.used.contains_key(h));
        let host = free.unwrap_or(first);
        if name.is_none() {
            self.next = (host + 1) % hosts;
        }
        self.used.entry(host).or_insert((0, name)).0 += 1;
        if free.is_none() {
            self.shared += 1;
        } else if let Some(name) = name {
            self.named.insert(name, host);
        }
        (host, free.is_some())
    }

    /// Releases one connection of the host; returns true if it was the last.
    pub fn give_back(&mut self, host: u64) -> bool {
        let Some((users, name)) = self.used.get_mut(&host) else {
            return false;
        };
        *users -= 1;
        if *users > 0 {
            return false;
        }
        if let Some(name) = *name {
            self.named.remove(&name);
        }
        self.used.remove(&host);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_are_read_and_have_hosts() {
        for (text, hosts, first, last) in [
            ("10.1.2.3", 1, "10.1.2.3", "10.1.2.3"),
            ("10.1.2.3/31", 2, "10.1.2.2", "10.1.2.3"),
            ("10.1.2.3/30", 2, "10.1.2.1", "10.1.2.2"),
            ("10.1.2.3/16", 65_534, "10.1.0.1", "10.1.255.254"),
            ("0.0.0.0/0", (1 << 32) - 2, "0.0.0.1", "255.255.255.254"),
            ("::1/128", 1, "::1", "::1"),
            ("fd01::/126", 2, "fd01::1", "fd01::2"),
            ("fd01::5/64", (1 << 32) - 2, "fd01::1", "fd01::ffff:fffe"),
        ] {
            let p = prefix(text);
            assert_eq!(p.hosts(), hosts, "{text}");
            assert_eq!(p.host(0).to_string(), first, "{text}");
            assert_eq!(p.host(hosts - 1).to_string(), last, "{text}");
            assert_eq!(p.host(hosts), p.host(0), "{text}");
            assert!(p.contains(p.host(hosts - 1)), "{text}");
            assert_eq!(prefix(&p.to_string()), p);
        }
        assert!(!prefix("10.1.0.0/16").contains("10.2.0.1".parse().unwrap()));
        assert!(!prefix("10.1.0.0/16").contains("fd01::1".parse().unwrap()));
        for wrong in ["", "10.1", "10.1.0.0/33", "10.1.0.0/-1", "::/129", "x/8"] {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_with_a_name_keep_their_address_and_others_take_turns() {
        let mut pool = Pool::new(prefix("10.1.0.0/24"));
        let (a, fresh) = pool.take(Some((0, 7)));
        assert!(fresh);
        assert_eq!(pool.take(Some((0, 7))), (a, false));
        assert_ne!(pool.take(Some((1, 7))).0, a, "another workload's host");
        let turns: Vec<u64> = (0..100).map(|_| pool.take(None).0).collect();
        let different: std::collections::BTreeSet<u64> = turns.iter().copied().collect();
        assert_eq!(different.len(), 100);
        assert!(!turns.contains(&a));
        assert_eq!(pool.shared, 0);
        assert!(!pool.give_back(a));
        assert!(pool.give_back(a));
        // The same name gives the same address again, in this run and in another.
        assert_eq!(pool.take(Some((0, 7))), (a, true));
        assert_eq!(Pool::new(prefix("10.1.0.0/24")).take(Some((0, 7))).0, a);
    }

    #[test]
    fn more_hosts_than_addresses_share_them_and_are_counted() {
        let mut pool = Pool::new(prefix("10.1.0.0/29"));
        let hosts: Vec<u64> = (1..=6).map(|key| pool.take(Some((0, key))).0).collect();
        let different: std::collections::BTreeSet<u64> = hosts.iter().copied().collect();
        assert_eq!((different.len(), pool.shared), (6, 0));
        let (seventh, fresh) = pool.take(Some((0, 7)));
        assert!(!fresh && pool.shared == 1);
        assert!(!pool.take(None).1);
        // The host whose address is shared stays while the other one leaves.
        assert!(!pool.give_back(seventh));
        for host in hosts {
            pool.give_back(host);
        }
        assert_eq!(pool.used.len(), 1, "the one without a name");
    }
}
