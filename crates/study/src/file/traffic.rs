//! The view that expressions have of the foreground or background in one direction of the bottleneck.

use rhai::{Array, Dynamic, Engine};
use swell_base::Tag;
use swell_experiment::observe::{Bin, Wait};

use super::script;
use super::tables::{self, DirectionView};

/// Maximum number of points of a series: more than a picture has pixels, far fewer than the limit on lists.
const SERIES: usize = 2000;

/// The packets of one side in one direction.
#[derive(Clone)]
pub(super) struct Traffic {
    way: DirectionView,
    side: Tag,
}

type Answer<T> = Result<T, Box<rhai::EvalAltResult>>;

impl Traffic {
    pub(super) fn of(way: &DirectionView, side: Tag) -> Traffic {
        Traffic {
            way: way.clone(),
            side,
        }
    }

    fn count(&self, of: impl Fn(&Bin) -> [u32; 2]) -> f64 {
        self.way.sum(|b| f64::from(of(b)[self.side as usize]))
    }

    /// The rows of the table of waiting times for this side and direction.
    fn rows(&self) -> Answer<impl Iterator<Item = &Wait>> {
        let name = match self.side {
            Tag::Foreground => "foreground",
            Tag::Background => "background",
        };
        let all = self.way.waits().or_else(script::wrong)?;
        let mine = move |w: &&Wait| w.direction == self.way.direction && w.traffic == name;
        Ok(all.iter().filter(mine))
    }

    fn sum(&self, of: impl Fn(&Wait) -> f64) -> Answer<f64> {
        Ok(self.rows()?.map(of).fold(0.0, |sum, x| sum + x))
    }

    /// Mean per packet sent; NaN without packets.
    fn mean(&self, of: impl Fn(&Wait) -> f64) -> Answer<f64> {
        let packets = self.sum(|w| w.packets as f64)?;
        Ok(self.sum(of)? / packets)
    }

    /// Arrival rate in bits per second.
    fn offered(&self) -> f64 {
        let bits = self.way.sum(|b| b.arrived[self.side as usize] as f64) * 8.0;
        bits / self.way.seconds()
    }

    /// Transmission rate in bits per second.
    fn carried(&self) -> Answer<f64> {
        Ok(self.sum(|w| w.bytes as f64)? * 8.0 / self.way.seconds())
    }

    /// `carried` as a share of the link's rate.
    fn load(&self) -> Answer<f64> {
        Ok(self.carried()? / self.way.rate)
    }

    /// Mean delay: waiting time, transmission at the link's rate and propagation, in seconds.
    fn delay(&self) -> Answer<f64> {
        let (wait, size) = (self.mean(|w| w.waited)?, self.mean(|w| w.bytes as f64)?);
        Ok(wait + size * 8.0 / self.way.rate + self.way.delay)
    }

    /// Mean residual transmission time of this side's packets, over all instants, in seconds.
    fn residual(&self) -> Answer<f64> {
        let bit = 8.0 / self.way.rate;
        Ok(self.sum(|w| w.squares)? * bit * bit / 2.0 / self.way.seconds())
    }

    /// The upper end of the histogram bucket in which the share `p` of the packets is reached.
    fn quantile(&self, p: f64) -> Answer<f64> {
        let rank = (p.clamp(0.0, 1.0) * self.sum(|w| w.packets as f64)?).ceil();
        let mut sum = 0.0;
        for row in self.rows()? {
            sum += row.packets as f64;
            if sum >= rank {
                return Ok(row.to);
            }
        }
        Ok(f64::NAN)
    }

    /// As `energy` of the direction. The foreground's is not kept.
    fn energy(&self, seconds: f64) -> Answer<f64> {
        match self.side {
            Tag::Background => tables::energy(&self.way, true, seconds),
            Tag::Foreground => script::wrong(
                "energies are known of everything (up.energy) and of the background (up.background.energy)",
            ),
        }
    }

    /// [seconds, share of the packets that waited longer].
    fn longer(&self) -> Answer<Array> {
        let all = self.sum(|w| w.packets as f64)?;
        let mut sum = 0.0;
        let points = self.rows()?.map(|row| {
            sum += row.packets as f64;
            point(row.to, 1.0 - sum / all)
        });
        Ok(points.collect())
    }

    /// [seconds, arrivals in bits per second] of the bins that begin in [`from`, `to`), at most [`SERIES`] points. If
    /// there are more bins, neighbours merge into one point: their mean, at the time of the first.
    fn series(&self, from: f64, to: f64) -> Array {
        let those = self.way.bins().filter(|b| b.time >= from && b.time < to);
        let those: Vec<&Bin> = those.collect();
        let together = those.len().div_ceil(SERIES).max(1);
        let each = those.chunks(together).map(|some| {
            let bytes: f64 = some
                .iter()
                .map(|b| b.arrived[self.side as usize] as f64)
                .sum();
            let seconds = self.way.width * some.len() as f64;
            point(some[0].time, bytes * 8.0 / seconds)
        });
        each.collect()
    }
}

fn point(x: f64, y: f64) -> Dynamic {
    Dynamic::from_array(vec![x.into(), y.into()])
}

/// Registers the traffic of a direction with the expression engine.
pub(super) fn register(engine: &mut Engine) {
    type T = Traffic;
    type D = DirectionView;
    engine
        .register_get("foreground", |d: &mut D| Traffic::of(d, Tag::Foreground))
        .register_get("background", |d: &mut D| Traffic::of(d, Tag::Background))
        .register_type_with_name::<T>("traffic")
        .register_get("arrived", |t: &mut T| t.count(|b| b.arrived_packets))
        .register_get("dropped", |t: &mut T| t.count(|b| b.dropped))
        .register_get("loss", |t: &mut T| {
            let arrived = t.count(|b| b.arrived_packets);
            t.count(|b| b.dropped) / arrived
        })
        .register_get("offered", |t: &mut T| t.offered())
        .register_get("packets", |t: &mut T| t.sum(|w| w.packets as f64))
        .register_get("carried", |t: &mut T| t.carried())
        .register_get("load", |t: &mut T| t.load())
        .register_get("size", |t: &mut T| t.mean(|w| w.bytes as f64))
        .register_get("residual", |t: &mut T| t.residual())
        .register_get("wait", |t: &mut T| t.mean(|w| w.waited))
        .register_get("delay", |t: &mut T| t.delay())
        .register_fn("quantile", |t: T, p: f64| t.quantile(p))
        .register_get("longer", |t: &mut T| t.longer())
        .register_fn("energy", |t: T, seconds: f64| t.energy(seconds))
        .register_fn("energy", |t: T, seconds: i64| t.energy(seconds as f64))
        .register_fn("series", |t: T, from: Dynamic, to: Dynamic| {
            let ends = script::number(&from).zip(script::number(&to));
            match ends {
                Some((begin, end)) => Ok(t.series(begin, end)),
                None => script::wrong("series(from, to) is between two numbers of seconds"),
            }
        });
}

#[cfg(test)]
mod tests {
    use rhai::Scope;
    use swell_experiment::observe::{LinkTotals, Observations};

    use super::*;
    use crate::file::tables::{Facts, Tables};

    #[test]
    fn a_series_of_many_bins_is_their_means() {
        let mut observed = Observations {
            links: vec![LinkTotals::default(), LinkTotals::default()],
            ..Observations::default()
        };
        // Arrivals cycle through 1, 2 ... 13 bytes. Thirteen bins merge into one point, so all points are equal.
        observed.bins.extend((0..13 * 1923_u32).map(|i| Bin {
            time: f64::from(i) * 0.01,
            arrived: [0, u64::from(i % 13) + 1],
            ..Bin::default()
        }));
        let facts = Facts {
            seconds: 250.0,
            width: 0.01,
            delays: [0.01; 2],
            ..Facts::default()
        };
        let mut engine = script::engine();
        register(&mut engine);
        let mut scope = Scope::new();
        scope.push("up", Tables::new(observed, &facts).up);
        let text = "up.background.series(0, 300)";
        let ast = script::compile(&engine, text).expect("it parses");
        let found = script::value(&engine, &ast, &mut scope, text).expect("not too long");
        let points = found.into_array().expect("a list");
        assert_eq!(points.len(), 1923);
        for (i, made) in points.into_iter().enumerate() {
            let pair = made.into_array().expect("a point");
            let [x, y] = [0, 1].map(|k: usize| script::number(&pair[k]).expect("a number"));
            assert!((x - i as f64 * 0.13).abs() < 1e-9, "{i}: {x}");
            assert!((y - 7.0 * 8.0 / 0.01).abs() < 1e-6, "{i}: {y}");
        }
    }
}
