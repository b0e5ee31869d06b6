//! nfdump's sampler records: the factors by which nfcapd multiplied the counters of sampled flows.
//!
//! Layouts and numbers are from nfdump's `exporter.h` and `id.h`. A sampler is chosen as in nfcapd (`netflow_v9.c`,
//! `ipfix.c`): first one that overrides all others, then the one that the flow names, then the exporter's generic
//! one, then the default.

use std::collections::BTreeMap;

use super::bytes::{LE, u64_at};
use crate::flow::record::{Sampling, SamplingSource};

/// Record types (`id.h`).
pub(super) const LEGACY: u16 = 9;
pub(super) const SAMPLER: u16 = 15;

/// nfcapd multiplies the counters of sampled flows and marks the flows. Only a sampler record gives the factor.
pub(super) const SCALED: Sampling = Sampling {
    interval: 1.0,
    source: SamplingSource::Record,
    scaled: true,
};

/// Sampler numbers with a special meaning.
const OVERWRITE: i64 = -3;
const DEFAULT: i64 = -2;
const GENERIC: i64 = -1;

/// Most stored samplers of a file, for all exporters together.
const MOST: usize = 1 << 16;

/// Packets observed per packet selected, by exporter and sampler.
#[derive(Debug, Default)]
pub(super) struct Samplers {
    by_id: BTreeMap<(u16, i64), f64>,
}

impl Samplers {
    /// Reads a sampler record; `None` if it is too short.
    pub(super) fn learn(&mut self, kind: u16, r: &[u8]) -> Option<()> {
        let (exporter, id, interval) = match kind {
            LEGACY => {
                let id = i64::from(LE.u32_at(r, 4)? as i32);
                let interval = f64::from(LE.u32_at(r, 8)?);
                (LE.u16_at(r, 14)?, id, interval)
            }
            _ => {
                let id = u64_at(r, 8)? as i64;
                let [packets, space] = [LE.u32_at(r, 16)?, LE.u32_at(r, 20)?].map(f64::from);
                // Zero selected packets give no valid sampling.
                (LE.u16_at(r, 4)?, id, (packets + space) / packets)
            }
        };
        let known = self.by_id.contains_key(&(exporter, id));
        if interval.is_finite() && interval >= 1.0 && (known || self.by_id.len() < MOST) {
            self.by_id.insert((exporter, id), interval);
        }
        Some(())
    }

    /// The sampling of a flow whose counters nfcapd has multiplied. The factor is unknown if no sampler is known, or
    /// several samplers disagree.
    pub(super) fn of(&self, exporter: u16, named: Option<u64>) -> Sampling {
        let of = |id: i64| self.by_id.get(&(exporter, id)).copied();
        let mut all = self
            .by_id
            .range((exporter, i64::MIN)..=(exporter, i64::MAX))
            .map(|(_, &interval)| interval);
        let only = || {
            let first = all.next()?;
            all.all(|interval| interval == first).then_some(first)
        };
        let found = of(OVERWRITE)
            .or_else(|| of(named? as i64))
            .or_else(|| of(GENERIC))
            .or_else(|| of(DEFAULT))
            .or_else(only);
        match found {
            Some(interval) => Sampling {
                interval,
                source: SamplingSource::Sampler,
                scaled: true,
            },
            None => SCALED,
        }
    }
}
