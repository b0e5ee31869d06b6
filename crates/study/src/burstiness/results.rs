//! What the runs say, over their seeds.

use std::collections::BTreeMap;

use super::anchors::Metric;
use super::lineup::{PACKET, Profile};
use super::scenario::{LEFT_OUT, Outcome, Scenario, WARM_UP, poisson};
use crate::Estimate;

/// Runs that differ only in their seeds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Whose defaults.
    pub profile: Profile,
    /// Name of the transport.
    pub transport: String,
    /// Name of the queue.
    pub gateway: String,
    /// Clients.
    pub clients: u16,
    /// Reno clients besides.
    pub background: u16,
}

impl Key {
    /// In the homogeneous case.
    pub fn new(profile: Profile, transport: &str, gateway: &str, clients: u16) -> Key {
        Key {
            profile,
            transport: transport.into(),
            gateway: gateway.into(),
            clients,
            background: 0,
        }
    }
}

/// Somebody who has numbers of this scenario: we, or ns-2.
pub trait Source {
    /// Simulated seconds of every run.
    fn seconds(&self) -> u64;
    /// Numbers of clients that a line was run with in the homogeneous case, rising.
    fn clients(&self, profile: Profile, transport: &str, gateway: &str) -> Vec<u16>;
    /// A number, the mean over seeds.
    fn get(&self, key: &Key, metric: Metric) -> Option<Estimate>;
}

/// The numbers of clients among `keys` of a line of the homogeneous case.
pub(crate) fn clients_of<'k>(
    keys: impl Iterator<Item = &'k Key>,
    profile: Profile,
    transport: &str,
    gateway: &str,
) -> Vec<u16> {
    let line = (profile, transport, gateway, 0);
    keys.filter(|k| (k.profile, &*k.transport, &*k.gateway, k.background) == line)
        .map(|k| k.clients)
        .collect()
}

impl Source for Results {
    fn seconds(&self) -> u64 {
        self.seconds
    }

    fn clients(&self, profile: Profile, transport: &str, gateway: &str) -> Vec<u16> {
        clients_of(self.keys(), profile, transport, gateway)
    }

    fn get(&self, key: &Key, metric: Metric) -> Option<Estimate> {
        match metric {
            Metric::Cov => self.over(key, |o| o.cov[0]),
            Metric::CovWarm => self.over(key, |o| o.cov[warm()]),
            Metric::Delivered => self.over(key, |o| o.delivered[1]),
            Metric::Loss => self.over(key, |o| o.loss(1)),
            Metric::BackgroundDelivered => self.over(key, |o| o.delivered[0]),
            Metric::BackgroundLoss => self.over(key, |o| o.loss(0)),
            Metric::LossWarm => self.over(key, |o| share(o.warm[1], o.warm[0])),
        }
    }
}

/// Runs by their key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Simulated seconds of every run.
    pub seconds: u64,
    runs: BTreeMap<Key, Vec<Outcome>>,
}

impl Results {
    /// From runs of equal length, and what came of them.
    pub fn new<'s>(runs: impl IntoIterator<Item = (&'s Scenario, Outcome)>) -> Results {
        let mut results = Results::default();
        for (scenario, outcome) in runs {
            results.seconds = scenario.seconds;
            let key = Key {
                profile: scenario.profile,
                transport: scenario.transport.name.into(),
                gateway: scenario.gateway.name.into(),
                clients: scenario.clients,
                background: scenario.background,
            };
            results.runs.entry(key).or_default().push(outcome);
        }
        results
    }

    /// Every key, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.runs.keys()
    }

    /// The mean over seeds of `f`.
    pub fn over(&self, key: &Key, f: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
        Estimate::of(self.runs.get(key)?.iter().map(f))
    }

    /// How far the coefficient of variation is above the Poisson process's, as a share of it, with
    /// the seconds of `LEFT_OUT[left_out]` left out.
    pub fn excess(&self, key: &Key, left_out: usize) -> Option<Estimate> {
        let poisson = poisson(key.clients + key.background);
        self.over(key, |o| o.cov[left_out] / poisson - 1.0)
    }

    /// Rate at which packets were delivered to all receivers, bit/s of network-layer bytes.
    pub fn throughput(&self, key: &Key) -> Option<Estimate> {
        let seconds = self.seconds as f64;
        self.over(key, |o| rate(o.delivered[0] + o.delivered[1], seconds))
    }

    /// Rate at which packets were delivered to the receiver of one of the clients (one of the added
    /// clients), bit/s of network-layer bytes.
    pub fn throughput_each(&self, key: &Key) -> Option<Estimate> {
        let (seconds, clients) = (self.seconds as f64, f64::from(key.clients));
        self.over(key, |o| rate(o.delivered[1] / clients, seconds))
    }
}

fn rate(packets: f64, seconds: f64) -> f64 {
    packets * f64::from(PACKET) * 8.0 / seconds
}

/// Where in [`LEFT_OUT`] the start is left out.
pub fn warm() -> usize {
    LEFT_OUT.iter().position(|&s| s == WARM_UP).unwrap_or(0)
}

impl Outcome {
    /// Share dropped of the arrivals of the background (0) or the clients (1); zero of none.
    pub fn loss(&self, group: usize) -> f64 {
        share(self.drops[group], self.arrivals[group])
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
