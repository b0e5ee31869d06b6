//! The same scenario in ns-2.35, and how far we are from it, number by number.
//!
//! `data/ns2-burstiness.csv` holds means and standard deviations over three seeds of runs of ns-2.35
//! (Debian's package) on this scenario: a script of ours, its defaults as released ("modern") or
//! with the switches of 1999 and 2000 ("era": `tcpTick_` 0.1, `windowInit_` 1, `rtxcur_init_` 6,
//! `syn_`, `delay_growth_`, `singledup_`, `precisionReduce_`, `rfc2988_`, `timerfix_` and
//! `updated_rttvar_` off; RED with `q_weight_` 0.002, `gentle_`, `bytes_` and `queue_in_bytes_` off).
//! `delivered`, `loss` and their `background_` twins are packets that reached a receiver in order and
//! the share dropped at the gateway; `background` are the 20 Reno clients of the heterogeneous case.

use std::collections::BTreeMap;

use super::lineup::Profile;
use super::results::{Key, Results, Source, clients_of};
use crate::Estimate;

/// Measured with ns-2.35.
const TABLE: &str = include_str!("../../data/ns2-burstiness.csv");
/// For how many simulated seconds each time.
const SECONDS: u64 = 200;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Coefficient of variation over the whole run.
    Cov,
    /// Coefficient of variation without the first 10 s.
    CovWarm,
    /// Packets delivered to the clients' (the added clients') receivers.
    Delivered,
    /// Share dropped of the clients' (the added clients') arrivals.
    Loss,
    /// As delivered, of the 20 Reno clients.
    BackgroundDelivered,
    /// As loss, of the 20 Reno clients.
    BackgroundLoss,
    /// Share dropped of all arrivals after the first 10 s. ns-2's is not in the table.
    LossWarm,
}

impl Metric {
    /// Those of the table, in its order.
    pub const ALL: [Metric; 6] = [
        Metric::Cov,
        Metric::CovWarm,
        Metric::Delivered,
        Metric::Loss,
        Metric::BackgroundDelivered,
        Metric::BackgroundLoss,
    ];

    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Metric::Cov => "c.o.v.",
            Metric::CovWarm => "c.o.v. after 10 s",
            Metric::Delivered => "delivered",
            Metric::Loss => "loss",
            Metric::BackgroundDelivered => "delivered, background",
            Metric::BackgroundLoss => "loss, background",
            Metric::LossWarm => "loss after 10 s",
        }
    }

    /// Whether `ours` is as near to `ns2` as it should be: 5 % for coefficients of variation, 1 %
    /// for deliveries, 10 % or 0.2 points for loss.
    pub fn agrees(self, ours: f64, ns2: f64) -> bool {
        let apart = (ours - ns2).abs();
        match self {
            Metric::Cov | Metric::CovWarm => apart <= 0.05 * ns2,
            Metric::Delivered | Metric::BackgroundDelivered => apart <= 0.01 * ns2,
            Metric::Loss | Metric::BackgroundLoss | Metric::LossWarm => {
                apart <= 0.1 * ns2 || apart <= 0.002
            }
        }
    }
}

/// ns-2's numbers for one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor {
    /// Which runs.
    pub key: Key,
    /// In the order of [`Metric::ALL`].
    pub numbers: [Estimate; 6],
}

impl Anchor {
    /// ns-2's number; none where it is not in the table.
    pub fn get(&self, metric: Metric) -> Option<Estimate> {
        self.numbers.get(metric as usize).copied()
    }
}

/// ns-2 as a source of numbers.
#[derive(Clone, Debug)]
pub struct Ns2 {
    anchors: BTreeMap<Key, Anchor>,
}

impl Ns2 {
    /// All that was measured.
    pub fn new() -> Ns2 {
        let anchors = all().into_iter().map(|a| (a.key.clone(), a));
        Ns2 {
            anchors: anchors.collect(),
        }
    }
}

impl Default for Ns2 {
    fn default() -> Ns2 {
        Ns2::new()
    }
}

impl Source for Ns2 {
    fn seconds(&self) -> u64 {
        SECONDS
    }

    fn clients(&self, profile: Profile, transport: &str, gateway: &str) -> Vec<u16> {
        clients_of(
            self.anchors.keys(),
            udp(profile, transport),
            transport,
            gateway,
        )
    }

    fn get(&self, key: &Key, metric: Metric) -> Option<Estimate> {
        let key = Key {
            profile: udp(key.profile, &key.transport),
            ..key.clone()
        };
        self.anchors.get(&key)?.get(metric)
    }
}

/// ns-2 of both profiles treats UDP alike, so that it was run once.
fn udp(profile: Profile, transport: &str) -> Profile {
    match profile {
        Profile::Era if transport == "udp" => Profile::Modern,
        _ => profile,
    }
}

/// Everything that ns-2 was run on.
pub fn all() -> Vec<Anchor> {
    TABLE.lines().skip(1).filter_map(anchor).collect()
}

fn anchor(line: &str) -> Option<Anchor> {
    let fields: Vec<&str> = line.split(',').collect();
    let profile = Profile::ALL
        .into_iter()
        .find(|p| fields.first() == Some(&p.name()))?;
    let number = |i: usize| -> Option<f64> { fields.get(i)?.parse().ok() };
    let seeds = number(5)? as usize;
    let mut numbers = Vec::new();
    for metric in 0..Metric::ALL.len() {
        numbers.push(Estimate::known(
            number(6 + 2 * metric)?,
            number(7 + 2 * metric)?,
            seeds,
        ));
    }
    Some(Anchor {
        key: Key {
            profile,
            transport: (*fields.get(1)?).into(),
            gateway: (*fields.get(2)?).into(),
            clients: number(3)? as u16,
            background: number(4)? as u16,
        },
        numbers: numbers.try_into().ok()?,
    })
}

/// One number of ours beside ns-2's.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Which runs.
    pub key: Key,
    /// Which number.
    pub metric: Metric,
    /// Ours.
    pub ours: Estimate,
    /// ns-2's.
    pub ns2: Estimate,
    /// No bar: ns-2 itself is bistable (M = 38), or it pins connections (deliveries of Vegas, M from
    /// 35 to 42).
    pub exempt: bool,
    /// Within the bar.
    pub agrees: bool,
}

impl Comparison {
    /// The difference in its own standard errors; none where both do not vary.
    pub fn errors(&self) -> Option<f64> {
        let variance = self.ours.variance_of_mean() + self.ns2.variance_of_mean();
        (variance > 0.0).then(|| (self.ours.value - self.ns2.value) / variance.sqrt())
    }
}

/// Every number that both have; none of runs that are not as long as ns-2's were.
pub fn compare(results: &Results) -> Vec<Comparison> {
    let mut out = Vec::new();
    if results.seconds != SECONDS {
        return out;
    }
    for anchor in all() {
        for metric in Metric::ALL {
            let mixed = anchor.key.background > 0;
            let only_mixed = matches!(metric, Metric::BackgroundDelivered | Metric::BackgroundLoss);
            if only_mixed && !mixed {
                continue;
            }
            let both = results.get(&anchor.key, metric).zip(anchor.get(metric));
            let Some((ours, ns2)) = both else {
                continue;
            };
            let m = anchor.key.clients;
            let bistable = !mixed && m == 38 && anchor.key.transport != "udp";
            let pinned = !mixed
                && anchor.key.transport == "vegas"
                && metric == Metric::Delivered
                && (35..=42).contains(&m);
            out.push(Comparison {
                key: anchor.key.clone(),
                metric,
                ours,
                ns2,
                exempt: bistable || pinned,
                agrees: metric.agrees(ours.value, ns2.value),
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_reads() {
        let all = all();
        assert_eq!(all.len(), TABLE.lines().count() - 1);
        // Six lines under two profiles, UDP under one, at twelve numbers of clients; four queues,
        // two transports and five numbers of added clients under two profiles.
        assert_eq!(all.len(), 11 * 12 + 4 * 2 * 5 * 2);
        assert!(all.iter().flat_map(|a| a.numbers).all(|n| n.n == 3));
    }

    #[test]
    fn bars() {
        assert!(Metric::Cov.agrees(0.105, 0.1) && !Metric::Cov.agrees(0.0949, 0.1));
        assert!(Metric::Delivered.agrees(99.0, 100.0) && !Metric::Delivered.agrees(98.9, 100.0));
        assert!(Metric::Loss.agrees(0.0019, 0.0) && Metric::Loss.agrees(0.11, 0.1));
        assert!(!Metric::Loss.agrees(0.0131, 0.011) && !Metric::Loss.agrees(0.12, 0.1));
    }
}
