//! Sampling information in options data (RFC 3954 section 8, RFC 5476 section 6.5).

use std::collections::BTreeMap;

use super::draft::SamplingFields;
use super::record::{Sampling, SamplingSource};

/// Cisco's exporters name this sampler where packets are not sampled.
pub(crate) const NOT_SAMPLED: u64 = 0;

/// The samplers of an observation domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samplers {
    by_id: BTreeMap<u64, f64>,
    /// The interval for the whole domain.
    domain: Option<f64>,
    /// Whether some packets are left out, as far as options data said at any time.
    sampled: bool,
}

/// The sampling of a record, and why it is not known.
pub(crate) struct InForce {
    pub sampling: Sampling,
    /// There are several samplers.
    pub ambiguous: bool,
    /// The sampler that the record names is not known.
    pub stranger: bool,
}

impl Samplers {
    /// Whether some packets are left out, as far as options data said.
    pub(crate) fn sampled(&self) -> bool {
        self.sampled
    }

    pub(crate) fn knows(&self, id: u64) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Evaluates a record of options data.
    pub(crate) fn learn(&mut self, said: &SamplingFields) {
        let Some(interval) = said.interval() else {
            return;
        };
        self.sampled |= interval > 1.0;
        match said.sampler {
            Some(id) => {
                self.by_id.insert(id, interval);
            }
            None => self.domain = Some(interval),
        }
    }

    /// The sampling of a record that contains `said` itself.
    pub(crate) fn in_force(&self, said: &SamplingFields) -> InForce {
        let found = |interval, source| InForce {
            sampling: Sampling::found(interval, source).unwrap_or(Sampling::UNKNOWN),
            ambiguous: false,
            stranger: false,
        };
        if let Some(interval) = said.interval() {
            return found(interval, SamplingSource::Record);
        }
        if let Some(interval) = said.sampler.and_then(|id| self.by_id.get(&id)) {
            return found(*interval, SamplingSource::Sampler);
        }
        if let Some(interval) = self.domain {
            return found(interval, SamplingSource::Domain);
        }
        let mut all = self.by_id.values();
        match (said.sampler, all.next(), all.next()) {
            // The record names no sampler, and the domain has exactly one.
            (None, Some(interval), None) => found(*interval, SamplingSource::Domain),
            (None, Some(first), Some(second)) => {
                let same = first == second && all.all(|i| i == first);
                InForce {
                    sampling: same
                        .then(|| Sampling::found(*first, SamplingSource::Domain))
                        .flatten()
                        .unwrap_or(Sampling::UNKNOWN),
                    ambiguous: !same,
                    stranger: false,
                }
            }
            (sampler, ..) => InForce {
                sampling: Sampling::UNKNOWN,
                ambiguous: false,
                stranger: sampler.is_some_and(|id| id != NOT_SAMPLED),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(sampler: Option<u64>, interval: Option<u64>) -> SamplingFields {
        SamplingFields {
            sampler,
            plain: interval,
            ..SamplingFields::default()
        }
    }

    #[test]
    fn the_nearest_word_counts() {
        let mut s = Samplers::default();
        let of = |all: &Samplers, said: SamplingFields| {
            let found = all.in_force(&said);
            (found.sampling.interval, found.sampling.source)
        };
        assert_eq!(of(&s, says(None, None)), (1.0, SamplingSource::Unknown));
        s.learn(&says(Some(7), Some(100)));
        assert_eq!(
            of(&s, says(Some(7), None)),
            (100.0, SamplingSource::Sampler)
        );
        assert_eq!(of(&s, says(Some(8), None)), (1.0, SamplingSource::Unknown));
        assert_eq!(of(&s, says(None, None)), (100.0, SamplingSource::Domain));
        let stranger = |id| s.in_force(&says(id, None)).stranger;
        assert!(stranger(Some(8)) && !stranger(Some(7)) && !stranger(Some(0)) && !stranger(None));
        assert_eq!(
            of(&s, says(Some(7), Some(5))),
            (5.0, SamplingSource::Record)
        );
        s.learn(&says(Some(8), Some(1000)));
        assert!(s.in_force(&says(None, None)).ambiguous);
        s.learn(&says(None, Some(10)));
        assert_eq!(of(&s, says(None, None)), (10.0, SamplingSource::Domain));
        assert_eq!(of(&s, says(Some(9), None)), (10.0, SamplingSource::Domain));
    }

    #[test]
    fn one_interval_above_one_means_sampling() {
        let mut s = Samplers::default();
        s.learn(&says(Some(1), Some(1)));
        s.learn(&says(Some(2), None));
        assert!(!s.sampled());
        for later in [says(Some(2), Some(2)), says(Some(2), Some(1))] {
            s.learn(&later);
            assert!(s.sampled());
        }
    }

    #[test]
    fn every_way_to_say_one_in_n() {
        let base = SamplingFields::default;
        let interval = |said: SamplingFields| said.interval();
        assert_eq!(interval(base()), None);
        let packets = SamplingFields {
            packets: Some(2),
            space: Some(18),
            ..base()
        };
        assert_eq!(interval(packets), Some(10.0));
        let alone = SamplingFields {
            packets: Some(1),
            ..base()
        };
        assert_eq!(
            interval(alone),
            None,
            "305 alone does not say how many are left out"
        );
        let n_of = SamplingFields {
            size: Some(3),
            population: Some(10),
            ..base()
        };
        assert_eq!(interval(n_of), Some(10.0 / 3.0));
        let probable = SamplingFields {
            probability: Some(0.25),
            ..base()
        };
        assert_eq!(interval(probable), Some(4.0));
        let never = SamplingFields {
            probability: Some(0.0),
            ..base()
        };
        assert_eq!(interval(never), None);
        let both = SamplingFields {
            plain: Some(1),
            random: Some(512),
            ..base()
        };
        assert_eq!(interval(both), Some(512.0), "the sampler's own field");
    }
}
