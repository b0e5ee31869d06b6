//! Presets: names of networks of several links (`topology.rs` has the links).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Dur;

use super::named::{Named, Short};

/// A network of several links. The resolved file shows them as `[[links]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Preset {
    /// Links in a chain, `link1`, `link2` and so on, for flows that cross all and cross traffic on each. Keys of a
    /// link under `[network]` are those of every link. Default: 10 Mbit/s and 10ms each.
    ParkingLot {
        /// How many links.
        #[serde(default = "three")]
        links: u32,
    },
    /// A household: `wifi` (50 Mbit/s, 2ms, losses in bursts, up to 100ms of queue), `access` (10 Mbit/s up and
    /// 100 Mbit/s down, 8ms, fq-codel up) and `core` (1 Gbit/s, 10ms). Keys of a link under `[network]` are those of
    /// `access`.
    Residential,
    /// Homes on cable modems that share a segment, as in 2006. The modem's link is `access`: 384 kbit/s up and 6 Mbit/s
    /// down, 5ms, 64 KiB of queue. All share `segment`: 10 Mbit/s up and 38 Mbit/s down, 1ms, 100ms of queue. Keys of a
    /// link under `[network]` are those of `access`. Other homes have a path over `segment` alone, and an `access` rate of their own.
    Cable,
    /// A host on a campus: `access` (100 Mbit/s and 5ms). Keys of a link under `[network]` are those of `access`.
    Campus,
    /// Racks of a data centre, by path: one link `leafL-spineS` from each leaf up to each spine. A path from the first
    /// to the second rack is `["leaf1-spine1", "leaf2-spine1 reversed"]`. Keys of a link under `[network]` are those of
    /// every link. Default: 10 Gbit/s and 5us each, queues of 150 kB.
    LeafSpine {
        /// How many leaves.
        #[serde(default = "two")]
        leaves: u32,
        /// How many spines.
        #[serde(default = "two")]
        spines: u32,
    },
}

fn two() -> u32 {
    2
}

fn three() -> u32 {
    3
}

/// One-way delay of a link within a data centre.
pub(super) const WITHIN: Dur = Dur::from_micros(5);

/// Maximum number of links of a preset.
pub(super) const MOST_LINKS: u64 = 1000;

impl Preset {
    /// Number of links.
    pub(super) fn count(&self) -> u64 {
        match self {
            Preset::ParkingLot { links } => u64::from(*links),
            Preset::Residential => 3,
            Preset::Cable => 2,
            Preset::Campus => 1,
            Preset::LeafSpine { leaves, spines } => u64::from(*leaves) * u64::from(*spines),
        }
    }

    /// Whether its links form a chain in their order, so that all of them are a path.
    pub(super) fn is_chain(&self) -> bool {
        match self {
            Preset::ParkingLot { .. } | Preset::Residential | Preset::Cable | Preset::Campus => {
                true
            }
            Preset::LeafSpine { .. } => false,
        }
    }

    /// Default one-way delay of its hosts' access paths, if it is not that of other networks. Servers in a rack are as near to their switch as it is to others.
    pub(super) fn access_delay(&self) -> Option<Dur> {
        match self {
            Preset::ParkingLot { .. } | Preset::Residential | Preset::Cable | Preset::Campus => {
                None
            }
            Preset::LeafSpine { .. } => Some(WITHIN),
        }
    }
}

/// A preset in a file: a name or a table.
pub type PresetSpec = Named<Preset>;

impl Short for Preset {
    const SPEC: &'static str = "PresetSpec";
    const KEY: &'static str = "kind";
    const WHAT: &'static str = "the name of a network";
}
