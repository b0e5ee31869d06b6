//! Where the two hosts of a run are.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use swell_base::{Dur, Rate};
use swell_experiment::RunSpec;
use swell_workload::Access;
use swell_world::PortConfig;

/// A host's addresses.
pub type Addresses = [IpAddr; 2];

/// Addresses for benchmarks of networks, which are nobody's (RFC 2544 appendix C.2.2; RFC 5180
/// section 8).
const fn addresses(side: u8) -> Addresses {
    [
        IpAddr::V4(Ipv4Addr::new(198, 17 + side, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, side as u16, 0, 0, 0, 1)),
    ]
}

/// The client's addresses.
pub const CLIENT: Addresses = addresses(1);
/// The server's addresses.
pub const SERVER: Addresses = addresses(2);

/// A burst leaves a host as fast as this, as from a real card: packets that its kernel handed over at
/// once arrive one after the other.
const FIRST_HOP: Rate = Rate::from_bps(10_000_000_000);

/// The client's and the server's port, with a one-way delay each to the bottleneck.
pub fn ports(delay: Dur) -> [PortConfig; 2] {
    [false, true].map(|right| PortConfig {
        right,
        access: Access {
            delay,
            up: Some(FIRST_HOP),
            ..Access::default()
        },
    })
}

/// What stands in commands for something of the run.
pub(super) fn placeholders(spec: &RunSpec, directory: &Path) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("{client}", CLIENT[0].to_string()),
        ("{client6}", CLIENT[1].to_string()),
        ("{server}", SERVER[0].to_string()),
        ("{server6}", SERVER[1].to_string()),
        ("{seed}", spec.cell.seed.to_string()),
        ("{dir}", directory.display().to_string()),
    ])
}

/// The text with everything put in that stands for something.
pub(super) fn filled(text: &str, placeholders: &BTreeMap<&'static str, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in placeholders {
        text = text.replace(name, value);
    }
    text
}
