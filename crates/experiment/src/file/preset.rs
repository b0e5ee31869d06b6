//! Presets: named networks of several links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, QueueLimit, Rate};
use swell_path::FqCoDelConfig;

use super::named::{Named, Short};
use super::qdisc::Qdisc;
use super::{LinkKeys, LinkOverrides, Loss, NamedLink};

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
const WITHIN: Dur = Dur::from_micros(5);

/// Maximum number of links of a preset.
pub(super) const MOST_LINKS: u64 = 1000;

impl Preset {
    /// Number of links.
    pub(super) fn count(&self) -> u64 {
        match self {
            Preset::ParkingLot { links } => u64::from(*links),
            Preset::Residential => 3,
            Preset::LeafSpine { leaves, spines } => u64::from(*leaves) * u64::from(*spines),
        }
    }

    /// Whether its links form a chain in their order, so that all of them are a path.
    pub(super) fn is_chain(&self) -> bool {
        match self {
            Preset::ParkingLot { .. } | Preset::Residential => true,
            Preset::LeafSpine { .. } => false,
        }
    }

    /// Default one-way delay of its hosts' access paths, if it is not that of other networks. Servers in a rack are as near to their switch as it is to others.
    pub(super) fn access_delay(&self) -> Option<Dur> {
        match self {
            Preset::ParkingLot { .. } | Preset::Residential => None,
            Preset::LeafSpine { .. } => Some(WITHIN),
        }
    }

    /// Its links, with the settings in `keys`.
    pub(super) fn links(&self, keys: &LinkKeys) -> Vec<NamedLink> {
        let all = |names: Vec<String>, default: LinkKeys| -> Vec<NamedLink> {
            let keys = keys.or(default);
            let named = names.into_iter().map(|name| NamedLink {
                name,
                keys: keys.clone(),
            });
            named.collect()
        };
        match *self {
            Preset::ParkingLot { links } => all(
                (1..=links).map(|i| format!("link{i}")).collect(),
                plain(10_000_000, Dur::from_millis(10)),
            ),
            Preset::LeafSpine { leaves, spines } => all(
                (1..=leaves)
                    .flat_map(|leaf| {
                        (1..=spines).map(move |spine| format!("leaf{leaf}-spine{spine}"))
                    })
                    .collect(),
                LinkKeys {
                    queue: Some(QueueLimit::Bytes(swell_base::Bytes(150_000))),
                    ..plain(10_000_000_000, WITHIN)
                },
            ),
            Preset::Residential => {
                let wifi = LinkKeys {
                    queue: Some(QueueLimit::Time(Dur::from_millis(100))),
                    // One packet in 2000 begins a lossy period of four packets on average: residual loss after MAC
                    // retransmissions.
                    loss: Some(Loss::GilbertElliott {
                        to_bad: 0.0005,
                        to_good: 0.25,
                        loss_bad: 0.5,
                        loss_good: 0.0,
                    }),
                    ..plain(50_000_000, Dur::from_millis(2))
                };
                let access = LinkKeys {
                    rate: None,
                    queue: Some(QueueLimit::Time(Dur::from_millis(100))),
                    up: Some(LinkOverrides {
                        rate: Some(Rate::from_bps(10_000_000)),
                        qdisc: Some(Named(Qdisc::FqCoDel(FqCoDelConfig::default()))),
                        ..LinkOverrides::default()
                    }),
                    down: Some(LinkOverrides {
                        rate: Some(Rate::from_bps(100_000_000)),
                        ..LinkOverrides::default()
                    }),
                    ..plain(0, Dur::from_millis(8))
                };
                let core = plain(1_000_000_000, Dur::from_millis(10));
                [("wifi", wifi), ("access", keys.or(access)), ("core", core)]
                    .map(|(name, keys)| NamedLink {
                        name: name.to_owned(),
                        keys,
                    })
                    .into()
            }
        }
    }
}

fn plain(bps: u64, delay: Dur) -> LinkKeys {
    LinkKeys {
        rate: Some(Rate::from_bps(bps)),
        delay: Some(delay),
        ..LinkKeys::default()
    }
}

impl LinkKeys {
    /// These settings, with missing ones taken from `default`.
    fn or(&self, default: LinkKeys) -> LinkKeys {
        // A common rate or trace in these settings replaces the default ones of each direction.
        let (mut up, mut down) = (default.up, default.down);
        let carries = self.rate.is_some() || self.deliveries.is_some();
        for side in [&mut up, &mut down].into_iter().flatten() {
            if carries {
                (side.rate, side.deliveries) = (None, None);
            }
            if self.qdisc.is_some() {
                side.qdisc = None;
            }
            if self.queue.is_some() {
                side.queue = None;
            }
        }
        LinkKeys {
            rate: self.rate.or(default.rate.filter(|_| !carries)),
            deliveries: self.deliveries.clone(),
            delay: self.delay.or(default.delay),
            queue: self.queue.or(default.queue),
            qdisc: self.qdisc.clone().or(default.qdisc),
            loss: self.loss.or(default.loss),
            overhead: self.overhead.or(default.overhead),
            up: overridden(self.up.as_ref(), up),
            down: overridden(self.down.as_ref(), down),
            change: self.change.clone(),
        }
    }
}

fn overridden(
    own: Option<&LinkOverrides>,
    default: Option<LinkOverrides>,
) -> Option<LinkOverrides> {
    let Some(own) = own else {
        return default;
    };
    let default = default.unwrap_or_default();
    let carries = own.rate.is_some() || own.deliveries.is_some();
    Some(LinkOverrides {
        rate: own.rate.or(default.rate.filter(|_| !carries)),
        deliveries: own.deliveries.clone(),
        delay: own.delay.or(default.delay),
        queue: own.queue.or(default.queue),
        qdisc: own.qdisc.clone().or(default.qdisc),
        loss: own.loss.or(default.loss),
        overhead: own.overhead.or(default.overhead),
    })
}

/// A preset in a file: a name or a table.
pub type PresetSpec = Named<Preset>;

impl Short for Preset {
    const SPEC: &'static str = "PresetSpec";
    const KEY: &'static str = "kind";
    const WHAT: &'static str = "the name of a network";
}
