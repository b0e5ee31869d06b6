//! The network of an interface, joined to a bridge by NAT.

use std::net::Ipv4Addr;
use std::str::FromStr;

use ipnet::Ipv4Net;
use swell_host::{Gateway, Uplink};

use super::ports::{AttachmentPoint, Port};
use crate::fail::Fail;

/// The gateway's address for the hosts of the bridge, if the command line gives none.
const INSIDE: &str = "192.168.77.1/24";

/// An interface, and the addresses of the gateway on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nat(Uplink);

impl Nat {
    /// Its place among the interfaces of the bridge.
    pub(super) fn port(&self) -> Port {
        Port {
            place: AttachmentPoint::Right,
            interface: self.0.interface.clone(),
        }
    }

    pub(super) fn is_on(&self, interface: &str) -> bool {
        self.0.interface == interface
    }

    pub(super) fn gateway(&self) -> Result<Gateway, Fail> {
        let name = &self.0.interface;
        Gateway::create(&self.0).map_err(|e| {
            Fail::failed(format!("--nat: a gateway on {name}: {e}")).hint(
                "it needs root in the interface's namespace, and macvlan devices and nftables in the kernel",
            )
        })
    }
}

impl FromStr for Nat {
    type Err = String;

    fn from_str(text: &str) -> Result<Nat, String> {
        let mut words = text.split_whitespace();
        let interface = words.next().filter(|w| !w.contains('='));
        let interface = interface.ok_or("the name of an interface comes first")?;
        let (mut outside, mut via, mut inside) = (None, None, None);
        for word in words {
            let pair = word.split_once('=');
            let (key, value) = pair.ok_or_else(|| format!("`{word}` is not KEY=VALUE"))?;
            let again = match key {
                "address" => outside.replace(network(key, value)?).is_some(),
                "inside" => inside.replace(network(key, value)?).is_some(),
                "via" => {
                    let wrong = |_| format!("via: `{value}` is not an IPv4 address");
                    via.replace(value.parse::<Ipv4Addr>().map_err(wrong)?)
                        .is_some()
                }
                _ => return Err(format!("`{key}` is not one of address, via, inside")),
            };
            if again {
                return Err(format!("{key} is there twice"));
            }
        }
        let outside = outside
            .ok_or("address=ADDRESS/BITS is missing: a free address of the interface's network")?;
        let via = via.ok_or("via=GATEWAY is missing: the router of the interface's network")?;
        let inside = match inside {
            Some(inside) => inside,
            None => network("inside", INSIDE)?,
        };
        if !outside.contains(&via) || via == outside.addr() {
            return Err(format!("via: {via} is not another host of {outside}"));
        }
        if inside.contains(&outside.network()) || outside.contains(&inside.network()) {
            return Err(format!("{inside} and {outside} overlap"));
        }
        Ok(Nat(Uplink {
            interface: interface.into(),
            outside,
            via,
            inside,
        }))
    }
}

/// A host's address and the length of its network's prefix.
fn network(key: &str, text: &str) -> Result<Ipv4Net, String> {
    let net: Result<Ipv4Net, _> = text.parse();
    let net = net.map_err(|_| format!("{key}: `{text}` is not ADDRESS/BITS of IPv4"))?;
    let host = net.addr();
    // A network has at least two hosts, and its first and last addresses belong to none.
    let usable =
        (1..=30).contains(&net.prefix_len()) && host != net.network() && host != net.broadcast();
    match usable {
        true => Ok(net),
        false => Err(format!(
            "{key}: {text} is not the address of a host in a network"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uplink_has_an_interface_and_addresses() {
        let Nat(uplink) = "eth0 via=203.0.113.1 address=203.0.113.9/24"
            .parse()
            .unwrap();
        assert_eq!(uplink.interface, "eth0");
        assert_eq!(uplink.outside.to_string(), "203.0.113.9/24");
        assert_eq!(uplink.via.to_string(), "203.0.113.1");
        assert_eq!(uplink.inside.to_string(), INSIDE);
        let own = "eth0 via=203.0.113.1 address=203.0.113.9/24 inside=10.1.0.1/16";
        let own: Nat = own.parse().unwrap();
        assert_eq!(own.0.inside.to_string(), "10.1.0.1/16");
    }

    #[test]
    fn what_is_wrong_with_an_uplink_is_named() {
        for (text, says) in [
            ("", "comes first"),
            ("address=203.0.113.9/24", "comes first"),
            ("eth0", "address=ADDRESS/BITS is missing"),
            ("eth0 address=203.0.113.9/24", "via=GATEWAY is missing"),
            ("eth0 address=203.0.113.9", "address: `203.0.113.9`"),
            ("eth0 address=203.0.113.0/24", "not the address of a host"),
            ("eth0 address=203.0.113.9/32", "not the address of a host"),
            ("eth0 address=2001:db8::1/64", "of IPv4"),
            ("eth0 via=a", "via: `a`"),
            ("eth0 up", "`up` is not KEY=VALUE"),
            ("eth0 gateway=203.0.113.1", "`gateway` is not one of"),
            ("eth0 via=203.0.113.1 via=203.0.113.1", "twice"),
            (
                "eth0 address=203.0.113.9/24 via=203.0.114.1",
                "not another host",
            ),
            (
                "eth0 address=203.0.113.9/24 via=203.0.113.9",
                "not another host",
            ),
            ("eth0 address=192.168.77.9/24 via=192.168.77.1", "overlap"),
            (
                "eth0 address=10.0.0.9/24 via=10.0.0.1 inside=10.1.0.1/8",
                "overlap",
            ),
        ] {
            let error = text.parse::<Nat>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
