//! The links of presets.

use swell_base::{Bytes, Dur, QueueLimit, Rate};
use swell_path::{FqCoDelConfig, Loss};

use super::named::Named;
use super::network::{LinkKeys, LinkOverrides, NamedLink};
use super::preset::{Preset, WITHIN};
use super::qdisc::Qdisc;

impl Preset {
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
                    queue: Some(QueueLimit::Bytes(Bytes(150_000))),
                    ..plain(10_000_000_000, WITHIN)
                },
            ),
            Preset::Campus => all(
                vec!["access".to_owned()],
                plain(100_000_000, Dur::from_millis(5)),
            ),
            Preset::Cable => {
                let access = LinkKeys {
                    queue: Some(QueueLimit::Bytes(Bytes(65_536))),
                    ..uneven(384_000, 6_000_000, Dur::from_millis(5))
                };
                let segment = LinkKeys {
                    queue: Some(QueueLimit::Time(Dur::from_millis(100))),
                    ..uneven(10_000_000, 38_000_000, Dur::from_millis(1))
                };
                [("access", keys.or(access)), ("segment", segment)]
                    .map(|(name, own)| NamedLink {
                        name: name.to_owned(),
                        keys: own,
                    })
                    .into()
            }
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

/// A link of one rate up and another one down.
fn uneven(up: u64, down: u64, delay: Dur) -> LinkKeys {
    let side = |bps| {
        Some(LinkOverrides {
            rate: Some(Rate::from_bps(bps)),
            ..LinkOverrides::default()
        })
    };
    LinkKeys {
        rate: None,
        up: side(up),
        down: side(down),
        ..plain(0, delay)
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
